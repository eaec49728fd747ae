/** Proves RUN-10 and RUN-28 for the page: reloading and paging keep the order. */
import { expect, test } from 'vitest';
import { message, pageOf } from '../testing/things';
import { timelineOf, unreadCount, withMessage, withOlderPage, withReplyPiece, writingReply } from './timeline';

const places = (timeline: { messages: readonly { place: number }[] }) => timeline.messages.map(({ place }) => place);

test('messages stand in the order of their place, however they come', () => {
  let timeline = timelineOf(pageOf([message({ place: 4 }), message({ place: 2 })]));
  for (const place of [9, 3, 7]) timeline = withMessage(timeline, message({ place }));
  expect(places(timeline)).toEqual([2, 3, 4, 7, 9]);
});

test('an older copy of a message never replaces a newer one', () => {
  const posted = withMessage(timelineOf(pageOf([])), message({ place: 2, changed: 8, text: 'new' }));
  expect(withMessage(posted, message({ place: 2, changed: 5, text: 'old' }))).toBe(posted);
  expect(withMessage(posted, message({ place: 2, changed: 8, text: 'same' }))).toBe(posted);
});

test('a change of a message that is not loaded yet makes no hole', () => {
  const timeline = timelineOf(pageOf([message({ place: 60 })], 'c60'));
  expect(withMessage(timeline, message({ place: 3, changed: 99 }))).toBe(timeline);
});

test('an older page comes in before what is loaded and keeps newer copies', () => {
  const timeline = withMessage(timelineOf(pageOf([message({ place: 5 }), message({ place: 6 })], 'c5')), message({ place: 5, changed: 20, text: 'newer' }));
  const paged = withOlderPage(timeline, pageOf([message({ place: 3 }), message({ place: 4 }), message({ place: 5 })], 'c3'));
  expect(places(paged)).toEqual([3, 4, 5, 6]);
  expect(paged.messages[2]?.text).toBe('newer');
  expect(paged.olderCursor).toBe('c3');
});

test('a message of another conversation is not taken in', () => {
  const timeline = timelineOf(pageOf([]));
  expect(withMessage(timeline, message({ place: 1, conversationId: 'other' }))).toBe(timeline);
});

test('a posted reply takes the place of its pieces, and later pieces are void', () => {
  const writing = message({ place: 3, role: 'AGENT', status: 'WRITING', text: '' });
  let timeline = withMessage(timelineOf(pageOf([])), writing);
  timeline = withReplyPiece(timeline, { messageId: 'm3', attempt: 1, offset: 0, text: 'Half' });
  expect(timeline.drafts['m3']?.text).toBe('Half');
  expect(writingReply(timeline)?.id).toBe('m3');
  timeline = withMessage(timeline, { ...writing, changed: 9, status: 'POSTED', text: 'Half and half' });
  expect(timeline.drafts).toEqual({});
  expect(withReplyPiece(timeline, { messageId: 'm3', attempt: 2, offset: 0, text: 'Late' })).toBe(timeline);
});

test('pieces that come before their row are kept for it', () => {
  const early = withReplyPiece(timelineOf(pageOf([])), { messageId: 'm3', attempt: 1, offset: 0, text: 'Hi' });
  const timeline = withMessage(early, message({ place: 3, role: 'AGENT', status: 'WRITING', text: '' }));
  expect(timeline.drafts['m3']?.text).toBe('Hi');
});

test('only finished words of the agent count as unread', () => {
  const messages = [
    message({ place: 1 }),
    message({ place: 2, role: 'AGENT', status: 'POSTED', changed: 4 }),
    message({ place: 3, role: 'AGENT', status: 'WRITING', changed: 5 }),
    message({ place: 6, role: 'NOTICE', status: 'POSTED' }),
  ];
  expect(unreadCount(messages, 3)).toBe(2);
  expect(unreadCount(messages, 4)).toBe(1);
  expect(unreadCount(messages, 6)).toBe(0);
});
