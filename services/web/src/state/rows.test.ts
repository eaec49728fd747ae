/** Proves D41 for the page: each waiting message keeps its own state. */
import { expect, test } from 'vitest';
import { message } from '../testing/things';
import { rowsOf, type MessageRow } from './rows';

const rows = (...messages: ReturnType<typeof message>[]) => rowsOf(messages, [], 'UTC');
const messageRows = (...messages: ReturnType<typeof message>[]) => rows(...messages).filter((row): row is MessageRow => row.kind === 'message');

test('a day line stands before the first message of each day in the reader’s zone', () => {
  const late = message({ place: 1, createdAt: '2026-01-10T23:30:00Z' });
  const next = message({ place: 2, createdAt: '2026-01-11T00:30:00Z' });
  expect(rowsOf([late, next], [], 'UTC').map(({ kind }) => kind)).toEqual(['day', 'message', 'day', 'message']);
  expect(rowsOf([late, next], [], 'Asia/Shanghai').map(({ kind }) => kind)).toEqual(['day', 'message', 'message']);
});

test('a reply names its message only when another one stands between them', () => {
  const near = messageRows(message({ place: 1 }), message({ place: 2, role: 'AGENT', status: 'POSTED', replyToId: 'm1' }));
  expect(near[1]?.answers).toBeNull();
  const far = messageRows(message({ place: 1 }), message({ place: 2 }), message({ place: 3, role: 'AGENT', status: 'POSTED', replyToId: 'm1' }));
  expect(far[2]?.answers?.id).toBe('m1');
});

test('the message that is being answered is told from those that wait', () => {
  const found = messageRows(
    message({ place: 1, status: 'PENDING' }),
    message({ place: 2, status: 'PENDING' }),
    message({ place: 3, role: 'AGENT', status: 'WRITING', text: '', replyToId: 'm1' }),
  );
  expect(found.map(({ beingAnswered }) => beingAnswered)).toEqual([true, false, false]);
});

test('a message that was answered with another says so', () => {
  const found = messageRows(
    message({ place: 1, replyId: 'm3' }),
    message({ place: 2, replyId: 'm3' }),
    message({ place: 3, role: 'AGENT', status: 'POSTED', replyToId: 'm2' }),
  );
  expect(found.map(({ answeredTogether }) => answeredTogether)).toEqual([true, false, false]);
});

test('a reply that ended without a word is not shown', () => {
  expect(messageRows(message({ place: 1, role: 'AGENT', status: 'STOPPED', text: '' }))).toHaveLength(0);
});

test('a stop is said once: under the reply that it cut short, or under the message when there is none', () => {
  const stopped = message({ place: 1, status: 'STOPPED' });
  const reply = message({ place: 2, role: 'AGENT', status: 'STOPPED', text: 'These words', replyToId: 'm1', incomplete: true });
  expect(messageRows(stopped, reply).map(({ saidBelow, stopped }) => [saidBelow, stopped?.id ?? null])).toEqual([
    [true, null],
    [false, 'm1'],
  ]);
  expect(messageRows(stopped, { ...reply, text: '' }).map(({ saidBelow }) => saidBelow)).toEqual([false]);
  // Tried again and stopped again: the newest reply says it.
  const second = { ...reply, id: 'm3', place: 3 };
  expect(messageRows(stopped, reply, second).map(({ stopped }) => stopped?.id ?? null)).toEqual([null, null, 'm1']);
  // Answered after all: nothing is left to ask for.
  expect(messageRows({ ...stopped, status: 'ANSWERED' }, reply).map(({ saidBelow, stopped }) => saidBelow || stopped !== null)).toEqual([false, false]);
});
