import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { bootOf, FakeLinks, FakeServer, message, pageOf, upsert } from '../testing/things';
import { Sender } from './sender';
import { Session } from './session';
import { initialState, type State } from './state';
import { memoryStorage } from './storage';
import { Store } from './store';

let server: FakeServer;
let links: FakeLinks;
let store: Store<State>;
let session: Session;
let accountChanged: ReturnType<typeof vi.fn<() => void>>;

beforeEach(() => {
  vi.useFakeTimers();
  server = new FakeServer();
  links = new FakeLinks();
  store = new Store(initialState);
  accountChanged = vi.fn<() => void>();
  const sender = new Sender(store, server.request, memoryStorage(), 'tab-1');
  session = new Session({ store, request: server.request, openLink: links.open, sender, accountChanged, random: () => 0.5 });
  server.on('Boot', () => ({ data: bootOf('10') }));
  server.on('Probe', () => ({ data: { viewer: { account: 'a1' } } }));
  server.on('Conversation', () => ({ data: { conversation: pageOf([message({ place: 9 })], 'c9') } }));
});

afterEach(() => {
  vi.useRealTimers();
});

const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
async function live(): Promise<void> {
  session.wake();
  await settle();
  links.newest.events.opened();
}

test('the page reads at least up to the position after which it follows', async () => {
  await live();
  const asked = server.asked.find(({ name }) => name === 'Conversation');
  expect(asked?.variables).toMatchObject({ atLeast: '10' });
  expect(links.newest.after).toBe('10');
  expect(store.get().link.state).toBe('live');
});

test('a new link continues after the last position seen', async () => {
  await live();
  links.newest.events.received(upsert(message({ place: 12 })));
  links.newest.events.ended('lost');
  expect(store.get().link.state).toBe('lost');
  await settle(1_000);
  expect(links.opened).toHaveLength(2);
  expect(links.newest.after).toBe('12');
  expect(server.count('Boot')).toBe(1);
});

test('a server that is away is asked again, ever more slowly, until it answers', async () => {
  server.on('Boot', () => ({ failure: 'unreached' }));
  session.wake();
  await settle();
  expect(store.get().phase).toBe('unreachable');
  await settle(60_000);
  const asked = server.count('Boot');
  expect(asked).toBeGreaterThan(5);
  expect(asked).toBeLessThan(14);
  server.on('Boot', () => ({ data: bootOf('10') }));
  await settle(15_000);
  expect(store.get().phase).toBe('ready');
});

test('a resync reads everything afresh and follows after the new position', async () => {
  await live();
  const old = links.newest;
  server.on('Boot', () => ({ data: bootOf('900') }));
  server.on('Conversation', () => ({ data: { conversation: pageOf([message({ place: 800 })]) } }));
  old.events.received({ cursor: null, change: { __typename: 'Resync', reason: 'too_far_behind' } });
  await settle();
  expect(old.closed).toBe(true);
  expect(links.newest.after).toBe('900');
  expect(store.get().timeline?.messages.map(({ place }) => place)).toEqual([800]);
});

test('nothing that a resync takes back stays on the page', async () => {
  await live();
  store.update((state) => ({ ...state, settings: { ...bootOf('10').settings, version: 7, timeZone: 'Europe/Berlin' } }));
  links.newest.events.received(upsert(message({ place: 12 })));
  server.on('Boot', () => ({ data: bootOf('4') }));
  server.on('Conversation', () => ({ data: { conversation: pageOf([message({ place: 3 })]) } }));
  links.newest.events.received({ cursor: '4', change: { __typename: 'Resync', reason: 'ahead of the history' } });
  await settle();
  expect(links.newest.after).toBe('4');
  expect(store.get().timeline?.messages.map(({ place }) => place)).toEqual([3]);
  expect(store.get().settings).toEqual(bootOf('4').settings);
});

test('a link that is closed for a missing sign-in asks for one and does not try on', async () => {
  await live();
  links.newest.events.ended('signedOut');
  expect(store.get().phase).toBe('signedOut');
  await settle(120_000);
  expect(links.opened).toHaveLength(1);
});

test('a refused upgrade is told from a lost connection by a plain request', async () => {
  await live();
  server.on('Probe', () => ({ failure: 'signedOut' }));
  links.newest.events.ended('lost');
  await settle(2_000);
  expect(store.get().phase).toBe('signedOut');
});

test('after signing in again the page is where it was', async () => {
  await live();
  links.newest.events.ended('signedOut');
  session.wake();
  await settle();
  expect(store.get().phase).toBe('ready');
  expect(links.opened).toHaveLength(2);
});

test('another account in the same browser is never shown what belongs to the first', async () => {
  await live();
  links.newest.events.ended('lost');
  server.on('Probe', () => ({ data: { viewer: { account: 'a2' } } }));
  await settle(2_000);
  expect(accountChanged).toHaveBeenCalled();
});

/** Proves RUN-28 for the page. */
test('older messages come by pages and a failed page is not asked for on and on', async () => {
  await live();
  server.on('Conversation', () => ({ failure: 'unreached' }));
  expect(await session.loadOlder()).toBe(false);
  expect(store.get().loadingOlder).toBe(false);
  server.on('Conversation', () => ({ data: { conversation: pageOf([message({ place: 4 })]) } }));
  expect(await session.loadOlder()).toBe(true);
  expect(store.get().timeline?.messages.map(({ place }) => place)).toEqual([4, 9]);
  expect(server.asked.at(-1)?.variables).toMatchObject({ before: 'c9', id: 'main' });
});

test('a device that goes offline shows it at once', async () => {
  await live();
  session.drop();
  expect(store.get().link).toMatchObject({ state: 'lost', reachable: false });
  expect(links.newest.closed).toBe(true);
});

test('a server that does not understand the page is not asked on and on', async () => {
  server.on('Boot', () => ({ failure: 'refused' }));
  session.wake();
  await settle(60_000);
  expect(store.get().phase).toBe('outdated');
  expect(server.count('Boot')).toBe(1);
});

test('a sign-in that a request found lost is taken up again although the old link still stood', async () => {
  await live();
  const old = links.newest;
  store.update((state) => ({ ...state, phase: 'signedOut' }));
  session.wake();
  await settle();
  expect(old.closed).toBe(true);
  expect(store.get().phase).toBe('ready');
  expect(links.opened).toHaveLength(2);
});

test('a check of the sign-in ends with its answer, and a sign-out leaves nothing of the conversation', async () => {
  server.on('Boot', () => ({ failure: 'signedOut' }));
  await session.wake();
  expect(store.get().phase).toBe('signedOut');
  server.on('Boot', () => ({ data: bootOf('10') }));
  await session.wake();
  expect(store.get().phase).toBe('ready');
  const link = links.newest;
  session.signedOut();
  expect(store.get()).toMatchObject({ phase: 'signedOut', timeline: null });
  expect(link.closed).toBe(true);
  await settle(60_000);
  expect(server.count('Boot')).toBe(2);
});
