/**
 * The page's one set of parts, joined: what the components get to see and to ask for.
 *
 * Invariant: everything that reaches the outside from a component goes through here.
 */
import { linkOpener } from '../api/live';
import { requester, type Request } from '../api/request';
import { upload } from '../api/upload';
import { System, type SystemData } from '../api/generated';
import { signerOut } from '../api/signOut';
import { Actions } from './actions';
import { ComposerDraft } from './draft';
import { isPicture } from './files';
import { isOutboxKey } from './outbox';
import { markFailureSeen, markRead, recallReading } from './reading';
import { Sender } from './sender';
import { Session } from './session';
import { initialState, type State } from './state';
import { browserStorage, randomId, type Storage } from './storage';
import { Store } from './store';
import { TaskReader } from './taskReader';

export type Page = {
  store: Store<State>;
  storage: Storage;
  session: Session;
  sender: Sender;
  draft: ComposerDraft;
  actions: Actions;
  tasks: TaskReader;
  /** Notes that a failed task's details were looked at. */
  markFailureSeen: (taskId: string) => void;
  readSystem: () => Promise<SystemData['system']>;
  markRead: () => void;
  /** Answers whether it took effect. */
  signOut: (everywhere: boolean) => Promise<boolean>;
};

/** Joins the parts and starts them. */
export function openPage(): Page {
  const store = new Store<State>(initialState);
  const storage = browserStorage();
  const request: Request = requester('/graphql');
  const sender = new Sender(store, request, storage, tabId());
  const actions = new Actions(store, request);
  const tasks = new TaskReader(store, request);
  const draft = new ComposerDraft({ storage, upload, makePreview: previewOf, dropPreview: URL.revokeObjectURL });
  const socket = new URL('/graphql/ws', window.location.href);
  socket.protocol = socket.protocol === 'https:' ? 'wss:' : 'ws:';
  const session = new Session({
    store,
    request,
    openLink: linkOpener(socket.href),
    sender,
    accountChanged: () => window.location.reload(),
    loaded: () => void tasks.read(),
  });
  watchFirstLoad(store, storage, actions, draft);
  watchBrowser(store, storage, session, sender);
  void session.wake();
  const signOut = signerOut('/sign-out');
  return {
    store,
    storage,
    session,
    sender,
    draft,
    actions,
    tasks,
    markFailureSeen: (taskId) => markFailureSeen(store, storage, taskId),
    readSystem: async () => (await request(System, {})).system,
    markRead: () => markRead(store, storage),
    signOut: async (everywhere) => {
      const ended = await signOut(everywhere);
      if (ended) session.signedOut();
      return ended;
    },
  };
}

/** Names this tab; kept over a reload, so that a reloaded tab goes on sending its own messages at once. */
function tabId(): string {
  const fresh = randomId();
  try {
    const known = sessionStorage.getItem('pa.tab');
    if (known !== null) return known;
    sessionStorage.setItem('pa.tab', fresh);
  } catch {
    // Blocked storage: the name lasts until the reload.
  }
  return fresh;
}

/** Once everything is there: recall what was read, and on first use tell the agent the browser's time zone. */
function watchFirstLoad(store: Store<State>, storage: Storage, actions: Actions, draft: ComposerDraft): void {
  const stop = store.watch(() => {
    const { phase, settings, viewer } = store.get();
    if (phase !== 'ready' || !settings || !viewer) return;
    stop();
    draft.open(viewer.account);
    recallReading(store, storage);
    const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    // When another tab was first, the change is refused for its version, which is just right.
    if (settings.timeZone === '' && timeZone) void actions.changeSettings({ timeZone });
  });
}

/** Pictures that a browser draws from its own memory, for the composer. */
function previewOf(file: File): string | null {
  return isPicture(file.type) ? URL.createObjectURL(file) : null;
}

function watchBrowser(store: Store<State>, storage: Storage, session: Session, sender: Sender): void {
  const wake = () => void session.wake();
  window.addEventListener('online', wake);
  window.addEventListener('offline', () => session.drop());
  window.addEventListener('focus', wake);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') wake();
  });
  window.addEventListener('storage', (event) => {
    if (isOutboxKey(event.key)) sender.refresh();
    if (event.key?.startsWith('pa.read.')) recallReading(store, storage);
  });
}
