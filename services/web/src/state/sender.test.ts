/** Proves REP-30 and REP-31 for the page: what was sent is kept until it is decided, and is never doubled. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FakeServer, message, outcome, readyState } from '../testing/things';
import { ABANDONED_AFTER_MS, readOutbox, unarrived } from './outbox';
import { Sender } from './sender';
import { linkLost, receive, type State } from './state';
import { memoryStorage, type Storage } from './storage';
import { Store } from './store';
import { upsert } from '../testing/things';

type Sent = { input: { requestKey: string; text: string } };

let server: FakeServer;
let storage: Storage;
let store: Store<State>;
let sender: Sender;

beforeEach(() => {
  vi.useFakeTimers();
  server = new FakeServer();
  storage = memoryStorage();
  store = new Store(readyState());
  sender = new Sender(store, server.request, storage, 'tab-1');
});

afterEach(() => {
  vi.useRealTimers();
});

const accept = () => {
  let place = 20;
  server.on<Sent>('SendMessage', ({ input }) => ({ data: { sendMessage: outcome({ message: message({ place: (place += 1), text: input.text, status: 'PENDING' }) }) } }));
};
const keys = () => server.asked.map(({ variables }) => (variables as Sent).input.requestKey);
const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

test('a decided message leaves the outbox and stands in the conversation', async () => {
  accept();
  sender.send('hello', []);
  expect(store.get().outbox).toHaveLength(1);
  await settle();
  expect(store.get().outbox).toHaveLength(0);
  expect(readOutbox(storage, 'a1')).toHaveLength(0);
  expect(store.get().timeline?.messages.at(-1)?.text).toBe('hello');
});

test('a message whose answer was lost is sent again with the same key', async () => {
  server.on('SendMessage', () => ({ failure: 'unreached' }));
  sender.send('hello', []);
  await settle();
  expect(readOutbox(storage, 'a1')).toHaveLength(1);
  accept();
  await settle(1_100);
  expect(store.get().outbox).toHaveLength(0);
  expect(server.count('SendMessage')).toBe(2);
  expect(new Set(keys()).size).toBe(1);
});

test('a message that is not decided yet is asked for with the same key until it is', async () => {
  server.on('SendMessage', () => ({ data: { sendMessage: outcome({ decided: false, position: null }) } }));
  sender.send('hello', []);
  await settle(2_000);
  expect(server.count('SendMessage')).toBeGreaterThan(2);
  expect(store.get().outbox).toHaveLength(1);
  accept();
  await settle(1_000);
  expect(store.get().outbox).toHaveLength(0);
  expect(new Set(keys()).size).toBe(1);
});

test('a later message does not overtake an earlier one', async () => {
  server.on('SendMessage', () => ({ failure: 'unclear' }));
  sender.send('first', []);
  sender.send('second', []);
  await settle(5_000);
  expect(server.asked.every(({ variables }) => (variables as Sent).input.text === 'first')).toBe(true);
  accept();
  await settle(40_000);
  expect(store.get().timeline?.messages.map(({ text }) => text)).toEqual(['first', 'second']);
});

test('after a reload the kept message goes out once with its own key', async () => {
  server.on('SendMessage', () => ({ failure: 'unreached' }));
  sender.send('hello', []);
  await settle();
  const key = keys()[0];
  accept();
  const reloaded = new Store(readyState());
  const second = new Sender(reloaded, server.request, storage, 'tab-2');
  second.refresh();
  expect(reloaded.get().outbox).toHaveLength(1);
  await settle(ABANDONED_AFTER_MS + 1);
  second.wake();
  await settle();
  expect(reloaded.get().outbox).toHaveLength(0);
  expect(keys().every((used) => used === key)).toBe(true);
});

test('another tab leaves alone what this tab is sending', async () => {
  server.on('SendMessage', () => ({ failure: 'unreached' }));
  sender.send('hello', []);
  await settle();
  const other = new FakeServer();
  const otherStore = new Store(readyState());
  const second = new Sender(otherStore, other.request, storage, 'tab-2');
  second.refresh();
  second.wake();
  await settle(1_000);
  expect(other.asked).toHaveLength(0);
});

test('a refused message stays with its reason and goes again as a new request', async () => {
  server.on('SendMessage', () => ({ data: { sendMessage: outcome({ position: null, userErrors: [{ code: 'QUEUE_FULL', message: '', field: null }] }) } }));
  sender.send('hello', []);
  await settle();
  const entry = store.get().outbox[0];
  expect(entry?.refused).toBe('QUEUE_FULL');
  await settle(60_000);
  expect(server.count('SendMessage')).toBe(1);
  accept();
  if (entry) sender.sendAgain(entry);
  await settle();
  expect(new Set(keys()).size).toBe(2);
  expect(store.get().outbox).toHaveLength(0);
});

test('while nobody answers nothing goes out, and the message can still be taken back', async () => {
  accept();
  store.update((state) => linkLost(state, false));
  sender.send('hello', []);
  await settle(60_000);
  expect(server.asked).toHaveLength(0);
  expect(store.get().outbox[0]?.tries).toBe(0);
});

test('a lost sign-in keeps the message', async () => {
  server.on('SendMessage', () => ({ failure: 'signedOut' }));
  sender.send('hello', []);
  await settle();
  expect(store.get().phase).toBe('signedOut');
  expect(readOutbox(storage, 'a1')).toHaveLength(1);
});

test('a message that arrived over the link before its answer is drawn once', async () => {
  server.on('SendMessage', () => ({ failure: 'unreached' }));
  sender.send('hello', []);
  await settle();
  store.update((state) => receive(state, upsert(message({ place: 21, text: 'hello', status: 'PENDING' }))));
  const { outbox, timeline } = store.get();
  expect(unarrived(outbox, timeline?.messages ?? [])).toHaveLength(0);
});

test('two equal messages on their way are two bubbles until each has arrived', () => {
  server.on('SendMessage', () => ({ failure: 'unreached' }));
  sender.send('yes', []);
  sender.send('yes', []);
  const arrived = [message({ place: 21, text: 'yes', status: 'PENDING' })];
  expect(unarrived(store.get().outbox, arrived)).toHaveLength(1);
});

test('an equal message from before is not taken for the new one', () => {
  store = new Store(readyState([message({ place: 7, text: 'yes' })]));
  sender = new Sender(store, server.request, storage, 'tab-1');
  server.on('SendMessage', () => ({ failure: 'unreached' }));
  sender.send('yes', []);
  expect(unarrived(store.get().outbox, store.get().timeline?.messages ?? [])).toHaveLength(1);
});
