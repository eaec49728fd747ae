import { expect, test } from 'vitest';
import { FakeServer, message, outcome, readyState } from '../testing/things';
import { Actions } from './actions';
import type { State } from './state';
import { Store } from './store';

function given(): { server: FakeServer; store: Store<State>; actions: Actions } {
  const server = new FakeServer();
  const store = new Store(readyState([message({ place: 3, status: 'FAILED' })]));
  return { server, store, actions: new Actions(store, server.request, async () => {}) };
}

test('a lost answer is asked for again with the same key', async () => {
  const { server, store, actions } = given();
  let tries = 0;
  server.on('RetryMessage', () => {
    tries += 1;
    return tries === 1 ? { failure: 'unreached' } : { data: { retryMessage: outcome({ message: message({ place: 3, changed: 8, status: 'PENDING' }) }) } };
  });
  expect(await actions.retryMessage('m3')).toBe('done');
  const keys = server.asked.map(({ variables }) => (variables as { input: { requestKey: string } }).input.requestKey);
  expect(new Set(keys).size).toBe(1);
  expect(store.get().timeline?.messages[0]?.status).toBe('PENDING');
});

test('a refusal is told by its code', async () => {
  const { server, actions } = given();
  server.on('StopReply', () => ({ data: { stopReply: outcome({ userErrors: [{ code: 'NOT_FOUND', message: '', field: null }] }) } }));
  expect(await actions.stopReply('m3')).toBe('NOT_FOUND');
});

test('an action that nobody answers is reported and not repeated later', async () => {
  const { server, actions } = given();
  server.on('StopReply', () => ({ failure: 'unreached' }));
  expect(await actions.stopReply('m3')).toBe('unreached');
  expect(server.count('StopReply')).toBe(3);
});

test('an action whose fate is unknown is asked for again with the same key, and never said to have failed', async () => {
  const { server, actions } = given();
  server.on('StopReply', () => ({ failure: 'unclear' }));
  expect(await actions.stopReply('m3')).toBe('unconfirmed');
  expect(server.count('StopReply')).toBe(3);
  const keys = server.asked.map(({ variables }) => (variables as { input: { requestKey: string } }).input.requestKey);
  expect(new Set(keys).size).toBe(1);
});

test('an action that can’t succeed is not repeated', async () => {
  const { server, actions } = given();
  server.on('StopReply', () => ({ failure: 'refused' }));
  expect(await actions.stopReply('m3')).toBe('unknown');
  expect(server.count('StopReply')).toBe(1);
});

test('a change of the settings names the version that was shown', async () => {
  const { server, actions } = given();
  server.on('UpdateSettings', () => ({ data: { updateSettings: { decided: true, position: '11', settings: null, userErrors: [] } } }));
  await actions.changeSettings({ timeZone: 'Asia/Shanghai' });
  expect(server.asked[0]?.variables).toMatchObject({ input: { version: 1, timeZone: 'Asia/Shanghai' } });
});
