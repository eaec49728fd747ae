/**
 * The loaded part of the conversation: a run of messages without holes that ends at the newest.
 *
 * Invariants: messages stand in the order of `place`; an older copy of a message never replaces a newer one; a message that
 * lies before the loaded part is left to paging, which will bring it.
 */
import type { MessageFields } from '../api/generated';
import { withPiece, type Draft, type Piece } from './pieces';

export type Message = MessageFields;

export type Timeline = {
  conversationId: string;
  messages: readonly Message[];
  /** Where the next older page ends; null when everything is loaded. */
  olderCursor: string | null;
  drafts: Readonly<Record<string, Draft>>;
  step: string | null;
};

export type Page = {
  id: string;
  messages: { pageInfo: { hasPreviousPage: boolean; startCursor: string | null }; nodes: Message[] };
};

/** Starts with the newest page. */
export function timelineOf(page: Page): Timeline {
  return {
    conversationId: page.id,
    messages: inOrder(page.messages.nodes),
    olderCursor: olderCursorOf(page),
    drafts: {},
    step: null,
  };
}

/** Puts an older page before what is loaded. */
export function withOlderPage(timeline: Timeline, page: Page): Timeline {
  const messages = page.messages.nodes.reduce(upserted, timeline.messages);
  return { ...timeline, messages, olderCursor: olderCursorOf(page) };
}

/** Takes a new or changed message in. */
export function withMessage(timeline: Timeline, message: Message): Timeline {
  if (message.conversationId !== timeline.conversationId) return timeline;
  const first = timeline.messages[0];
  if (first && timeline.olderCursor !== null && message.place < first.place) return timeline;
  const messages = upserted(timeline.messages, message);
  if (messages === timeline.messages) return timeline;
  const drafts = message.status === 'WRITING' ? timeline.drafts : without(timeline.drafts, message.id);
  return { ...timeline, messages, drafts };
}

/** Takes a piece of a reply in; void when the reply is no longer being written. */
export function withReplyPiece(timeline: Timeline, piece: Piece): Timeline {
  const message = timeline.messages.find((candidate) => candidate.id === piece.messageId);
  if (message && message.status !== 'WRITING') return timeline;
  const before = timeline.drafts[piece.messageId];
  const after = withPiece(before, piece);
  return after === before ? timeline : { ...timeline, drafts: { ...timeline.drafts, [piece.messageId]: after } };
}

export function withStep(timeline: Timeline, conversationId: string, step: string | null): Timeline {
  return conversationId === timeline.conversationId ? { ...timeline, step: step === '' ? null : step } : timeline;
}

/** The reply that is being written now, if any. */
export function writingReply(timeline: Timeline): Message | null {
  return timeline.messages.findLast((message) => message.role === 'AGENT' && message.status === 'WRITING') ?? null;
}

/** The newest message with a number that only grows, for marking what was read. */
export function newestChange(messages: readonly Message[]): number {
  return messages.reduce((newest, message) => Math.max(newest, message.changed), 0);
}

/** How many finished replies and notices came after what was read. */
export function unreadCount(messages: readonly Message[], readThrough: number): number {
  return messages.filter((message) => isFromAgent(message) && message.status !== 'WRITING' && message.changed > readThrough).length;
}

export function isFromAgent(message: Message): boolean {
  return message.role === 'AGENT' || message.role === 'NOTICE';
}

function olderCursorOf(page: Page): string | null {
  return page.messages.pageInfo.hasPreviousPage ? page.messages.pageInfo.startCursor : null;
}

function upserted(messages: readonly Message[], message: Message): readonly Message[] {
  const index = messages.findIndex((candidate) => candidate.id === message.id);
  const known = messages[index];
  if (known && known.changed >= message.changed) return messages;
  if (known && known.place === message.place) return messages.with(index, message);
  return inOrder([...messages.filter((candidate) => candidate.id !== message.id), message]);
}

function inOrder(messages: readonly Message[]): readonly Message[] {
  return [...messages].sort((a, b) => a.place - b.place);
}

function without(drafts: Readonly<Record<string, Draft>>, id: string): Readonly<Record<string, Draft>> {
  if (!(id in drafts)) return drafts;
  const { [id]: _gone, ...rest } = drafts;
  return rest;
}
