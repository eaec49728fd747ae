/**
 * Sends what is in the outbox, one message at a time and in order, until each is decided.
 *
 * Invariants: a later message never overtakes an earlier one of the same tab; every try uses the entry's own request key;
 * a refusal stays on the page until the owner settles it.
 */
import { SendMessage, type MessageOutcome } from '../api/generated';
import { RequestError, type Request } from '../api/request';
import type { Uploaded } from '../api/upload';
import { dropEntry, keepEntry, nextToSend, readOutbox, type OutboxEntry, type Refusal } from './outbox';
import { withAnsweredMessage, type State } from './state';
import { randomId, type Storage } from './storage';
import type { Store } from './store';

/** The first retry comes soon because most gaps are short; later ones leave a busy server alone. */
const RETRY_FIRST_MS = 1_000;
const RETRY_LAST_MS = 30_000;
/** An accepted message that is not decided yet is asked for again after this long. */
const UNDECIDED_RETRY_MS = 700;

export class Sender {
  #sending = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #retryMs = RETRY_FIRST_MS;

  constructor(
    private readonly store: Store<State>,
    private readonly request: Request,
    private readonly storage: Storage,
    private readonly tab: string,
    private readonly now: () => number = Date.now,
  ) {}

  /** Puts a message into the outbox and sends it as soon as its turn comes. */
  send(text: string, attachments: Uploaded[]): void {
    const messages = this.store.get().timeline?.messages ?? [];
    this.#keep({
      requestKey: randomId(),
      text,
      attachments,
      createdAt: this.now(),
      afterPlace: messages.at(-1)?.place ?? 0,
      tries: 0,
      triedAt: 0,
      tab: this.tab,
      refused: null,
    });
    this.pump();
  }

  /** Sends a refused message once more, as a new request: the old key would only bring the old refusal. */
  sendAgain(entry: OutboxEntry): void {
    this.drop(entry.requestKey);
    this.send(entry.text, entry.attachments);
  }

  drop(requestKey: string): void {
    const account = this.#account();
    if (account) dropEntry(this.storage, account, requestKey);
    this.refresh();
  }

  /** Reads the outbox from the browser's storage again, as another tab may have changed it. */
  refresh(): void {
    const account = this.#account();
    const outbox = account ? readOutbox(this.storage, account) : [];
    this.store.update((state) => (state.outbox.length === 0 && outbox.length === 0 ? state : { ...state, outbox }));
  }

  /** Tries again at once: the connection is back. */
  wake(): void {
    clearTimeout(this.#timer);
    this.#retryMs = RETRY_FIRST_MS;
    this.pump();
  }

  /** Sends the next entry if none is on its way. */
  pump(): void {
    const { phase, link } = this.store.get();
    // While nobody answers, an entry that never went out stays one that can be taken back for sure.
    if (this.#sending || phase !== 'ready' || (link.state === 'lost' && !link.reachable)) return;
    const entry = nextToSend(this.store.get().outbox, this.tab, this.now());
    if (!entry) {
      // What another tab is sending is looked at again later: that tab may be gone.
      if (this.store.get().outbox.some((other) => other.refused === null)) this.#again(RETRY_LAST_MS);
      return;
    }
    this.#sending = true;
    void this.#attempt({ ...entry, tab: this.tab, triedAt: this.now() }).finally(() => {
      this.#sending = false;
    }).then((waitMs) => (waitMs === 0 ? this.pump() : this.#again(waitMs)));
  }

  /** Tries one entry; answers how long to wait before the next try of anything. */
  async #attempt(entry: OutboxEntry): Promise<number> {
    this.#keep({ ...entry, tries: entry.tries + 1 });
    try {
      const { sendMessage } = await this.request(SendMessage, {
        input: { requestKey: entry.requestKey, text: entry.text, attachmentIds: entry.attachments.map(({ id }) => id) },
      });
      return this.#settle(entry, sendMessage);
    } catch (cause) {
      return this.#failed(entry, cause);
    }
  }

  #settle(entry: OutboxEntry, outcome: MessageOutcome): number {
    this.#retryMs = RETRY_FIRST_MS;
    const refusal = outcome.userErrors[0];
    if (refusal) {
      this.#refuse(entry, refusal.code);
      return 0;
    }
    const { message } = outcome;
    if (!message) return UNDECIDED_RETRY_MS;
    this.store.update((state) => withAnsweredMessage(state, message));
    this.drop(entry.requestKey);
    return 0;
  }

  #failed(entry: OutboxEntry, cause: unknown): number {
    const failure = cause instanceof RequestError ? cause.failure : 'unclear';
    if (failure === 'refused' || failure === 'foreign' || failure === 'tooLarge') {
      this.#refuse(entry, failure === 'tooLarge' ? 'TEXT_TOO_LONG' : 'UNKNOWN');
      return 0;
    }
    if (failure === 'signedOut') this.store.update((state) => ({ ...state, phase: 'signedOut' }));
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(waitMs * 2, RETRY_LAST_MS);
    return waitMs;
  }

  #refuse(entry: OutboxEntry, refused: Refusal): void {
    this.#keep({ ...entry, refused });
  }

  #keep(entry: OutboxEntry): void {
    const account = this.#account();
    if (account) keepEntry(this.storage, account, entry);
    this.refresh();
  }

  #again(waitMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.pump(), waitMs);
  }

  #account(): string | null {
    return this.store.get().viewer?.account ?? null;
  }
}
