import { expect, test } from 'vitest';
import { message, readyState, upsert } from '../testing/things';
import { linkLost, receive, withReadThrough, type State } from './state';
import type { Envelope } from '../api/live';

const reply = message({ place: 4, role: 'AGENT', status: 'WRITING', text: '' });
const story: Envelope[] = [
  upsert(message({ place: 3, status: 'PENDING' })),
  upsert(reply),
  { cursor: null, change: { __typename: 'ReplyPiece', messageId: 'm4', attempt: 1, offset: 0, text: 'Hel' } },
  { cursor: null, change: { __typename: 'ReplyPiece', messageId: 'm4', attempt: 1, offset: 3, text: 'lo' } },
  upsert({ ...reply, changed: 5, status: 'POSTED', text: 'Hello' }),
  upsert(message({ place: 3, changed: 6, status: 'ANSWERED' })),
];
const shown = (state: State) => state.timeline?.messages.map(({ id, status, text }) => [id, status, text]);

test('an update that comes twice changes nothing', () => {
  let state = readyState();
  for (const envelope of story) {
    state = receive(state, envelope);
    expect(receive(state, envelope)).toBe(state);
  }
});

/** Proves RUN-10 for two tabs. */
test('two tabs that got the same updates in another order, or twice, show the same', () => {
  const straight = story.reduce(receive, readyState());
  const twice = [...story, ...story].reduce(receive, readyState());
  const backwards = [...story].reverse().reduce(receive, readyState());
  expect(shown(twice)).toEqual(shown(straight));
  expect(shown(backwards)).toEqual(shown(straight));
  expect(backwards.timeline?.drafts).toEqual({});
});

test('the cursor moves with what has one, and pieces leave it alone', () => {
  const state = story.slice(0, 3).reduce(receive, readyState());
  expect(state.cursor).toBe('4');
});

test('a resync leaves what is shown until the fresh reading is there', () => {
  const state = readyState([message({ place: 1 })]);
  expect(receive(state, { cursor: null, change: { __typename: 'Resync', reason: 'too_far_behind' } })).toBe(state);
});

test('older settings never replace newer ones', () => {
  const state = readyState();
  const settings = state.settings;
  if (!settings) throw new Error('no settings');
  const newer = receive(state, { cursor: '11', change: { __typename: 'SettingsUpserted', settings: { ...settings, version: 3, name: 'Bea' } } });
  const after = receive(newer, { cursor: '12', change: { __typename: 'SettingsUpserted', settings: { ...settings, version: 2, name: 'Old' } } });
  expect(after.settings?.name).toBe('Bea');
});

test('a lost link ends what only a live link can know', () => {
  const stepping = receive(readyState(), { cursor: null, change: { __typename: 'StepNamed', conversationId: 'main', step: 'pa_history' } });
  expect(stepping.timeline?.step).toBe('pa_history');
  expect(linkLost(stepping, false).timeline?.step).toBeNull();
});

test('the read mark never moves back', () => {
  const state = withReadThrough(readyState(), 9);
  expect(withReadThrough(state, 4)).toBe(state);
});
