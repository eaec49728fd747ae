/**
 * What the reader can ask for besides sending: stop or retry a reply, change settings.
 *
 * Invariant: a request whose answer was lost is repeated with its own request key a few times, then reported; it is never
 * repeated later behind the reader's back.
 */
import { RetryMessage, StopReply, UpdateSettings, type MessageOutcome, type SettingsOutcome, type UpdateSettingsInput, type UserErrorCode } from '../api/generated';
import { RequestError, type Request } from '../api/request';
import { withAnsweredMessage, withSettings, type State } from './state';
import { randomId } from './storage';
import type { Store } from './store';

export type ActionResult = 'done' | 'unreached' | 'unconfirmed' | 'unknown' | UserErrorCode;
export type SettingsChange = Omit<UpdateSettingsInput, 'requestKey' | 'version'>;

const TRIES = 3;
const PAUSE_MS = 900;

type Outcome = { decided: boolean; userErrors: Array<{ code: UserErrorCode }> };

export class Actions {
  constructor(
    private readonly store: Store<State>,
    private readonly request: Request,
    private readonly pause: (ms: number) => Promise<void> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  ) {}

  async stopReply(messageId: string): Promise<ActionResult> {
    const input = { requestKey: randomId(), messageId };
    return this.#message(async () => (await this.request(StopReply, { input })).stopReply);
  }

  async retryMessage(messageId: string): Promise<ActionResult> {
    const input = { requestKey: randomId(), messageId };
    return this.#message(async () => (await this.request(RetryMessage, { input })).retryMessage);
  }

  async changeSettings(change: SettingsChange): Promise<ActionResult> {
    const version = this.store.get().settings?.version ?? 0;
    const input = { ...change, requestKey: randomId(), version };
    return this.#decided<SettingsOutcome>(
      async () => (await this.request(UpdateSettings, { input })).updateSettings,
      ({ settings }) => settings && this.store.update((state) => withSettings(state, settings)),
    );
  }

  #message(ask: () => Promise<MessageOutcome>): Promise<ActionResult> {
    return this.#decided(ask, ({ message }) => message && this.store.update((state) => withAnsweredMessage(state, message)));
  }

  async #decided<Answer extends Outcome>(ask: () => Promise<Answer>, take: (answer: Answer) => void): Promise<ActionResult> {
    let result: ActionResult = 'unconfirmed';
    for (let tried = 0; tried < TRIES; tried += 1) {
      if (tried > 0) await this.pause(PAUSE_MS);
      try {
        const answer = await ask();
        const refusal = answer.userErrors[0];
        if (refusal) return refusal.code;
        take(answer);
        if (answer.decided) return 'done';
        result = 'unconfirmed';
      } catch (cause) {
        const failure = cause instanceof RequestError ? cause.failure : 'unclear';
        if (failure === 'refused' || failure === 'tooLarge' || failure === 'foreign') return 'unknown';
        result = failure === 'unreached' ? 'unreached' : 'unconfirmed';
        if (cause instanceof RequestError && cause.failure === 'signedOut') {
          this.store.update((state) => ({ ...state, phase: 'signedOut' }));
          return result;
        }
      }
    }
    return result;
  }
}
