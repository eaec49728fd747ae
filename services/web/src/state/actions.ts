/**
 * What the reader can ask for besides sending: stop or retry a reply, steer tasks, decide on actions, change settings.
 *
 * Invariant: a request whose answer was lost is repeated with its own request key a few times, then reported; it is never
 * repeated later behind the reader's back.
 */
import {
  DecideAction, PauseTask, ReconcileAction, ResumeTask, RetryMessage, StopReply, StopTask, UpdateSettings,
  type ActionDecision, type ActionOutcome, type ActionOutcomeFields, type MessageOutcome, type SettingsOutcome, type TaskOutcome, type UpdateSettingsInput, type UserErrorCode,
} from '../api/generated';
import { RequestError, type Request } from '../api/request';
import { withAnsweredMessage, withSettings, withWork, type State } from './state';
import { randomId } from './storage';
import type { Store } from './store';
import { withAction, withTask } from './work';

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

  async stopTask(taskId: string): Promise<ActionResult> {
    const input = { requestKey: randomId(), taskId };
    return this.#task(async () => (await this.request(StopTask, { input })).stopTask);
  }

  async pauseTask(taskId: string): Promise<ActionResult> {
    const input = { requestKey: randomId(), taskId };
    return this.#task(async () => (await this.request(PauseTask, { input })).pauseTask);
  }

  async resumeTask(taskId: string): Promise<ActionResult> {
    const input = { requestKey: randomId(), taskId };
    return this.#task(async () => (await this.request(ResumeTask, { input })).resumeTask);
  }

  /** Decides on exactly the action that is shown: other content has another id. */
  async decideAction(actionId: string, decision: ActionDecision): Promise<ActionResult> {
    const input = { requestKey: randomId(), actionId, decision };
    return this.#action(async () => (await this.request(DecideAction, { input })).decideAction);
  }

  async reconcileAction(actionId: string, outcome: ActionOutcome): Promise<ActionResult> {
    const input = { requestKey: randomId(), actionId, outcome };
    return this.#action(async () => (await this.request(ReconcileAction, { input })).reconcileAction);
  }

  #task(ask: () => Promise<TaskOutcome>): Promise<ActionResult> {
    return this.#decided(ask, ({ task }) => task && this.store.update((state) => withWork(state, withTask(state.work, task))));
  }

  #action(ask: () => Promise<ActionOutcomeFields>): Promise<ActionResult> {
    return this.#decided(ask, ({ action }) => action && this.store.update((state) => withWork(state, withAction(state.work, action))));
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
