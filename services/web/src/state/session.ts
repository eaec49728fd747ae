/**
 * Keeps the page in step with the agent: reads everything at the start, follows the live link, and comes back by itself.
 *
 * Invariants: there is at most one link; a new one continues after the last position seen, so nothing is missed and nothing
 * doubles; after a loss a plain request goes first, which tells "nobody there" from "signed out".
 */
import { Boot, Conversation, Probe, Work } from '../api/generated';
import type { Envelope, LinkEnd, OpenLink } from '../api/live';
import { RequestError, type Request } from '../api/request';
import type { Sender } from './sender';
import { linkLost, loaded, receive, type State } from './state';
import type { Store } from './store';
import { withOlderPage } from './timeline';
import { noWork } from './work';

/** One screen and a good part of the next, so that scrolling up does not stop at once. */
const PAGE_SIZE = 50;
/** Tasks and outputs of the first reading; older ones come on demand. */
const TASKS_FIRST = 50;
const OUTPUTS_FIRST = 30;
const RETRY_FIRST_MS = 500;
const RETRY_LAST_MS = 15_000;
/** A link that ended this soon after it stood counts as one more failure, so a broken server is not asked without pause. */
const LINK_SETTLED_MS = 5_000;

export type SessionParts = {
  store: Store<State>;
  request: Request;
  openLink: OpenLink;
  sender: Sender;
  /** Called when another account has signed in in this browser. */
  accountChanged: () => void;
  /** Called after everything was read afresh. */
  loaded?: () => void;
  random?: () => number;
  now?: () => number;
};

export class Session {
  readonly #parts: SessionParts;
  #closeLink: (() => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #busy = false;
  #connecting: Promise<void> | null = null;
  #openedAt = 0;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** Starts, or tries again at once: the network is back, the tab is looked at again, the reader pressed the button. Ends when there is an answer or none. */
  async wake(): Promise<void> {
    if (this.#connecting) return this.#connecting;
    if (this.#busy || (this.#closeLink && this.#parts.store.get().phase === 'ready')) return;
    // A request may have learned of a lost sign-in before the link did.
    this.#closeLink?.();
    this.#closeLink = null;
    clearTimeout(this.#timer);
    this.#busy = true;
    this.#connecting = this.#connect().finally(() => {
      this.#busy = false;
      this.#connecting = null;
    });
    await this.#connecting;
  }

  /** This browser's session was ended: nothing of the conversation stays in the page. */
  signedOut(): void {
    this.#noteSignOut(new RequestError('signedOut', 'the reader signed out'));
    this.#parts.store.update((state) => ({ ...state, timeline: null, work: noWork, cursor: null }));
  }

  /** The device says that it is offline: what is shown as live would not be. */
  drop(): void {
    if (!this.#closeLink) return;
    this.#closeLink();
    this.#closeLink = null;
    this.#retryLater(false);
  }

  /** Reads the next older page; answers false when nobody answered, so that the caller does not ask on and on. */
  async loadOlder(): Promise<boolean> {
    const { store, request } = this.#parts;
    const { timeline, loadingOlder } = store.get();
    if (!timeline?.olderCursor || loadingOlder) return true;
    store.update((state) => ({ ...state, loadingOlder: true }));
    try {
      const before = timeline.olderCursor;
      const { conversation } = await request(Conversation, { id: timeline.conversationId, last: PAGE_SIZE, before });
      store.update((state) => {
        // A resync in between has replaced the run that this page belongs to.
        if (!conversation || state.timeline?.olderCursor !== before) return state;
        return { ...state, timeline: withOlderPage(state.timeline, conversation) };
      });
      return true;
    } catch (cause) {
      this.#noteSignOut(cause);
      return false;
    } finally {
      store.update((state) => ({ ...state, loadingOlder: false }));
    }
  }

  async #connect(): Promise<void> {
    const { store } = this.#parts;
    store.update((state) => (state.link.state === 'lost' ? { ...state, link: { ...state.link, waiting: false } } : state));
    try {
      if (store.get().phase === 'ready') await this.#probe();
      else await this.#load();
      this.#answered();
      this.#open();
    } catch (cause) {
      this.#failed(cause);
    }
  }

  /** Requests are answered: what waits to be sent can go, also while the link itself does not stand. */
  #answered(): void {
    const { store, sender } = this.#parts;
    store.update((state) => (state.link.state === 'lost' ? { ...state, link: { ...state.link, reachable: true } } : state));
    sender.wake();
  }

  /** `afresh`: what the page knew may never have been, as after a restore, so nothing of it outlives the reading. */
  async #load(afresh = false): Promise<void> {
    const { store, request, sender } = this.#parts;
    const boot = await request(Boot, {});
    const known = store.get().viewer?.account;
    if (known !== undefined && known !== boot.viewer.account) return this.#parts.accountChanged();
    const atLeast = boot.agent.position;
    const [{ conversation }, work] = await Promise.all([
      request(Conversation, { last: PAGE_SIZE, atLeast }),
      request(Work, { tasks: TASKS_FIRST, outputs: OUTPUTS_FIRST, atLeast }),
    ]);
    if (!conversation) throw new RequestError('unclear', 'the main conversation is not there yet');
    store.update((state) => loaded(afresh ? { ...state, settings: null } : state, boot, conversation, work));
    this.#parts.loaded?.();
    sender.refresh();
  }

  async #probe(): Promise<void> {
    const { viewer } = await this.#parts.request(Probe, {});
    if (viewer.account !== this.#parts.store.get().viewer?.account) this.#parts.accountChanged();
  }

  #open(): void {
    const { store, openLink } = this.#parts;
    this.#closeLink = openLink(store.get().cursor, {
      opened: () => {
        this.#openedAt = this.#now();
        store.update((state) => ({ ...state, link: { state: 'live' } }));
      },
      received: (envelope) => this.#received(envelope),
      ended: (end) => this.#ended(end),
    });
  }

  #received(envelope: Envelope): void {
    this.#parts.store.update((state) => receive(state, envelope));
    if (envelope.change.__typename === 'Resync') this.#resync();
  }

  /** Everything is read afresh, and a new link continues after that reading. */
  #resync(): void {
    this.#closeLink?.();
    this.#closeLink = null;
    this.#busy = true;
    void this.#load(true)
      .then(() => this.#open())
      .catch((cause: unknown) => this.#failed(cause))
      .finally(() => {
        this.#busy = false;
      });
  }

  #ended(end: LinkEnd): void {
    this.#closeLink = null;
    if (end === 'signedOut') return this.#failed(new RequestError('signedOut', 'the link was closed'));
    const settled = this.#openedAt > 0 && this.#now() - this.#openedAt > LINK_SETTLED_MS;
    if (settled) this.#failures = 0;
    this.#openedAt = 0;
    this.#retryLater(true);
  }

  #failed(cause: unknown): void {
    const { store } = this.#parts;
    if (this.#noteSignOut(cause)) return;
    const failure = cause instanceof RequestError ? cause.failure : 'unclear';
    if (failure === 'refused' || failure === 'foreign') {
      store.update((state) => ({ ...state, phase: failure === 'foreign' ? 'foreign' : 'outdated' }));
      return;
    }
    store.update((state) => (state.phase === 'starting' ? { ...state, phase: 'unreachable' } : state));
    this.#retryLater(false);
  }

  #retryLater(reachable: boolean): void {
    this.#parts.store.update((state) => linkLost(state, reachable));
    const ceiling = Math.min(RETRY_FIRST_MS * 2 ** this.#failures, RETRY_LAST_MS);
    this.#failures += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.wake(), ceiling * (0.5 + this.#random() / 2));
  }

  #noteSignOut(cause: unknown): boolean {
    if (!(cause instanceof RequestError) || cause.failure !== 'signedOut') return false;
    this.#closeLink?.();
    this.#closeLink = null;
    clearTimeout(this.#timer);
    this.#parts.store.update((state) => ({ ...state, phase: 'signedOut', link: { state: 'opening' } }));
    return true;
  }

  #random(): number {
    return (this.#parts.random ?? Math.random)();
  }

  #now(): number {
    return (this.#parts.now ?? Date.now)();
  }
}
