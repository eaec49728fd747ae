import { expect, test } from 'vitest';
import { action, entry, readyState, task, workRead } from '../testing/things';
import { contentOf, isSaid } from './content';
import { receive, type State } from './state';
import { indicatorKind, inOrderOfInterest, noWork, opened, waiting, withNewestEntries, withOpen, withTaskEntry, workOf } from './work';
import type { Envelope } from '../api/live';

const started = task({ place: 1 });
const held = action({ place: 3 });
const story: Envelope[] = [
  { cursor: '1', change: { __typename: 'TaskUpserted', task: started } },
  { cursor: '2', change: { __typename: 'TaskEntryUpserted', entry: entry({ place: 2, kind: 'TOOL', status: 'STARTED' }) } },
  { cursor: '3', change: { __typename: 'ActionUpserted', action: held } },
  { cursor: '4', change: { __typename: 'TaskEntryUpserted', entry: entry({ place: 2, changed: 4, kind: 'TOOL', status: 'RETURNED' }) } },
  { cursor: '5', change: { __typename: 'TaskUpserted', task: { ...started, changed: 5, state: 'WAITING', reason: 'APPROVAL' } } },
  { cursor: '6', change: { __typename: 'ActionUpserted', action: { ...held, changed: 6, state: 'APPROVED' } } },
];

const open = (state: State): State => ({ ...state, work: opened(state.work, 't1') });

/** Proves RUN-10 for tasks in two tabs. */
test('updates of tasks that come twice or in another order end in the same', () => {
  const straight = story.reduce(receive, open(readyState()));
  const backwards = [...story].reverse().reduce(receive, open(readyState()));
  for (const envelope of story) expect(receive(straight, envelope).work).toBe(straight.work);
  expect(backwards.work).toEqual(straight.work);
  expect(straight.work.tasks.map(({ state }) => state)).toEqual(['WAITING']);
  expect(straight.work.open?.entries.map(({ status }) => status)).toEqual(['RETURNED']);
  expect(waiting(straight.work)).toEqual([]);
});

test('entries of another task, and those before what is loaded, are left alone', () => {
  const page = { ...started, usage: null as never, entries: { pageInfo: { hasPreviousPage: true, startCursor: '10' }, nodes: [entry({ place: 10 }), entry({ place: 11 })] } };
  const work = withOpen(opened(noWork, 't1'), 't1', (now) => withNewestEntries(now, page));
  expect(withTaskEntry(work, entry({ place: 12, taskId: 't2' }))).toBe(work);
  expect(withTaskEntry(work, entry({ place: 4, changed: 40 }))).toBe(work);
  expect(withTaskEntry(work, entry({ place: 12 })).open?.entries.map(({ place }) => place)).toEqual([10, 11, 12]);
});

test('what came live while a page was read stays where it is newer', () => {
  const live = withTaskEntry(withTaskEntry(opened(noWork, 't1'), entry({ place: 11, changed: 20, text: 'newer' })), entry({ place: 12 }));
  const page = { ...started, usage: null as never, entries: { pageInfo: { hasPreviousPage: false, startCursor: null }, nodes: [entry({ place: 10 }), entry({ place: 11 })] } };
  const read = withOpen(live, 't1', (now) => withNewestEntries(now, page));
  expect(read.open?.entries.map(({ place, text }) => [place, text])).toEqual([[10, 'entry 10'], [11, 'newer'], [12, 'entry 12']]);
});

/** Proves SID-12, SID-13. */
test('an unknown outcome is asked about only while its task is not at work', () => {
  const unknown = action({ place: 4, kind: 'EFFECT', state: 'UNKNOWN' });
  const under = action({ place: 5, kind: 'EFFECT', state: 'STARTED' });
  const of = (state: 'RUNNING' | 'QUEUED' | 'WAITING' | 'STOPPED') => waiting(workOf(workRead([task({ place: 1, state })], [held, unknown, under]), noWork)).map(({ id }) => id);
  expect(of('RUNNING')).toEqual(['a3']);
  expect(of('QUEUED')).toEqual(['a3']);
  expect(of('WAITING')).toEqual(['a3', 'a4']);
  expect(of('STOPPED')).toEqual(['a3', 'a4']);
});

test('open tasks stand before ended ones, each newest first', () => {
  const ended = (place: number, changed: number) => task({ place, changed, state: 'COMPLETED', endedAt: '2026-01-10T12:00:00Z' });
  const tasks = [ended(1, 90), task({ place: 2 }), ended(3, 20), task({ place: 4, state: 'PAUSED' })];
  expect(inOrderOfInterest(tasks).map(({ place }) => place)).toEqual([4, 2, 1, 3]);
});

/** Proves SID-3, SID-5, SID-6, SID-7. */
test('asking goes before an unseen failure, that before work, that before an unread result', () => {
  const facts = {
    needsInput: true,
    running: true,
    lastFailure: { messageId: null, taskId: 't1', position: '7@read_1' },
    lastResult: { taskId: 't2', position: '9', delivered: false },
  };
  const nothing = { result: 0, failure: 0 };
  expect(indicatorKind(facts, nothing)).toBe('input');
  expect(indicatorKind({ ...facts, needsInput: false }, nothing)).toBe('failure');
  expect(indicatorKind({ ...facts, needsInput: false }, { result: 0, failure: 7 })).toBe('running');
  const idle = { ...facts, needsInput: false, running: false };
  expect(indicatorKind(idle, { result: 0, failure: 7 })).toBe('result');
  expect(indicatorKind(idle, { result: 8, failure: 7 })).toBe('result');
  expect(indicatorKind(idle, { result: 9, failure: 7 })).toBe(null);
  expect(indicatorKind(idle, null)).toBe(null);
});

/** Proves USE-18, USE-19: everything that would be done is shown, and long typed text stands whole below its step. */
test('a card leaves nothing of its action out', () => {
  const email = contentOf({ zeta: { deep: [1, 2] }, body: 'Here they are.', to: ['kim@example.org', 'lee@example.org'], subject: 'Numbers', urgent: true });
  expect(email.lines.map(({ name, value, kind }) => [name, value, kind])).toEqual([
    ['to', 'kim@example.org, lee@example.org', 'short'],
    ['subject', 'Numbers', 'short'],
    ['body', 'Here they are.', 'long'],
    ['urgent', 'true', 'short'],
    ['zeta', '{\n  "deep": [\n    1,\n    2\n  ]\n}', 'long'],
  ]);
  const typed = 'x'.repeat(81);
  const batch = contentOf({ device: 'Mac', window: 'Inbox', steps: [{ element: 4, action: 'click' }, { action: 'type', text: typed }, { action: 'type', text: 'y'.repeat(80) }] });
  expect(batch.lines.map(({ name }) => name)).toEqual(['device', 'window']);
  expect(batch.steps.map(({ number, long }) => [number, long])).toEqual([[1, null], [2, typed], [3, null]]);
  expect(batch.steps[1]?.parts).toEqual([{ name: 'action', value: 'type' }, { name: 'text', value: `${'x'.repeat(80)}…` }]);
  expect(batch.steps[2]?.parts[1]?.value).toBe('y'.repeat(80));
  const files = contentOf({ attachments: [{ name: 'march.xlsx', size: 18, sha256: 'ab' }, { name: 'b.txt' }] });
  expect(files.lines[0]?.value).toBe('march.xlsx (size 18, sha256 ab)\nb.txt');
  expect(isSaid('kim@example.org, lee@example.org\nNumbers', email)).toBe(true);
  expect(isSaid('kim@example.org, eve@example.org\nNumbers', email)).toBe(false);
  expect(isSaid('Mac / Inbox', batch)).toBe(true);
  expect(contentOf('plain').lines).toEqual([{ name: '', value: 'plain', kind: 'long' }]);
  expect(contentOf({ steps: 'none' }).lines).toEqual([{ name: 'steps', value: 'none', kind: 'short' }]);
});
