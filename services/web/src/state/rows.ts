/**
 * What stands in the conversation from top to bottom: day lines, messages, and what is not decided yet.
 *
 * Pure: the same messages give the same rows, so reloading and a second tab show the same.
 */
import { dateIn } from '../text/text';
import type { OutboxEntry } from './outbox';
import { isFromAgent, type Message } from './timeline';

export type MessageRow = {
  kind: 'message';
  key: string;
  message: Message;
  /** It stands directly below one of the same side: drawn closer. */
  joined: boolean;
  /** The message that a reply answers, when another one stands between. */
  answers: Message | null;
  /** The reply to this message is being written. */
  beingAnswered: boolean;
  /** It was answered by the reply to another message. */
  answeredTogether: boolean;
  /** Of a stopped message: its reply, cut short, stands below and says so. */
  saidBelow: boolean;
  /** Of a reply that was cut short by a stop: the message that it was for, which still waits for another answer. */
  stopped: Message | null;
};

export type Row = { kind: 'day'; key: string; at: Date } | MessageRow | { kind: 'outgoing'; key: string; entry: OutboxEntry; joined: boolean };

/** Messages of one side within this time belong together. */
const JOINED_WITHIN_MS = 5 * 60_000;

export function rowsOf(messages: readonly Message[], outgoing: readonly OutboxEntry[], timeZone: string | undefined): Row[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const writingFor = new Set(messages.filter((message) => message.status === 'WRITING').map((message) => message.replyToId));
  const cutShort = stoppedReplies(messages, byId);
  const rows: Row[] = [];
  let previous: { side: string; at: number; date: string } | null = null;
  let lastAsked: string | null = null;

  const open = (at: Date, side: string): boolean => {
    const date = dateIn(timeZone, at);
    if (date !== previous?.date) rows.push({ kind: 'day', key: `day-${date}-${rows.length}`, at });
    const joined = previous !== null && previous.date === date && previous.side === side && at.getTime() - previous.at < JOINED_WITHIN_MS;
    previous = { side, at: at.getTime(), date };
    return joined;
  };

  for (const message of messages) {
    if (!isShown(message)) continue;
    const joined = open(new Date(message.createdAt), sideOf(message));
    const asked = message.replyToId === null ? undefined : byId.get(message.replyToId);
    const answers = message.role === 'AGENT' && asked && asked.id !== lastAsked ? asked : null;
    const reply = message.replyId === null ? undefined : byId.get(message.replyId);
    rows.push({
      kind: 'message',
      key: message.id,
      message,
      joined: joined && !answers,
      answers,
      beingAnswered: writingFor.has(message.id),
      answeredTogether: message.status === 'ANSWERED' && reply !== undefined && reply.replyToId !== null && reply.replyToId !== message.id,
      saidBelow: cutShort.has(message.id),
      stopped: asked && cutShort.get(asked.id) === message.id ? asked : null,
    });
    if (!isFromAgent(message)) lastAsked = message.id;
  }
  for (const entry of outgoing) {
    rows.push({ kind: 'outgoing', key: entry.requestKey, entry, joined: open(new Date(entry.createdAt), 'owner') });
  }
  return rows;
}

/** The newest reply of each stopped message, where it got as far as a word. */
function stoppedReplies(messages: readonly Message[], byId: ReadonlyMap<string, Message>): Map<string, string> {
  const replies = new Map<string, string>();
  for (const message of messages) {
    const asked = message.replyToId === null ? undefined : byId.get(message.replyToId);
    if (message.role === 'AGENT' && message.status === 'STOPPED' && isShown(message) && asked?.status === 'STOPPED') replies.set(asked.id, message.id);
  }
  return replies;
}

/** A reply that ended without a word says nothing: the message that it was for says what happened. */
function isShown(message: Message): boolean {
  return message.role !== 'AGENT' || message.status === 'WRITING' || message.text !== '' || message.attachments.length > 0;
}

function sideOf(message: Message): string {
  if (message.role === 'NOTICE') return `notice-${message.id}`;
  return isFromAgent(message) ? 'agent' : 'owner';
}
