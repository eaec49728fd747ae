/**
 * Messages that were sent and are not decided yet, kept in this browser until they are.
 *
 * Invariants: an entry keeps its request key, so sending it again can't double it; it leaves the outbox only when the log has
 * decided it or the owner takes it back; an entry that may have gone out is never taken back silently.
 */
import type { UserErrorCode } from '../api/generated';
import type { Uploaded } from '../api/upload';
import type { Storage } from './storage';
import type { Message } from './timeline';

export type Refusal = UserErrorCode | 'UNKNOWN';

export type OutboxEntry = {
  requestKey: string;
  text: string;
  attachments: Uploaded[];
  createdAt: number;
  /** The place of the newest message when it was sent: its own message lies behind it. */
  afterPlace: number;
  /** How often it went out without an answer. */
  tries: number;
  triedAt: number;
  /** The tab that sends it. */
  tab: string;
  refused: Refusal | null;
};

/** A tab that has not tried an entry for so long is taken for closed; longer than a request can take. */
export const ABANDONED_AFTER_MS = 45_000;

const PREFIX = 'pa.outbox.';

const keyOf = (account: string, requestKey: string) => `${PREFIX}${account}.${requestKey}`;

/** Reads all entries of an account, oldest first. Each lies under a key of its own, so tabs don't overwrite each other. */
export function readOutbox(storage: Storage, account: string): OutboxEntry[] {
  const entries = storage.keys(keyOf(account, '')).map((key) => parsed(storage.read(key)));
  return entries.filter((entry) => entry !== null).sort((a, b) => a.createdAt - b.createdAt);
}

export function keepEntry(storage: Storage, account: string, entry: OutboxEntry): void {
  storage.write(keyOf(account, entry.requestKey), JSON.stringify(entry));
}

export function dropEntry(storage: Storage, account: string, requestKey: string): void {
  storage.remove(keyOf(account, requestKey));
}

export function isOutboxKey(key: string | null): boolean {
  return key !== null && key.startsWith(PREFIX);
}

/** The entry that this tab should send now: its own oldest open one, or one that another tab has left behind. */
export function nextToSend(entries: readonly OutboxEntry[], tab: string, now: number): OutboxEntry | null {
  const open = entries.filter((entry) => entry.refused === null);
  return open.find((entry) => entry.tab === tab || now - Math.max(entry.triedAt, entry.createdAt) > ABANDONED_AFTER_MS) ?? null;
}

/** An entry that never went out can still be taken back for sure. */
export function canTakeBack(entry: OutboxEntry): boolean {
  return entry.refused !== null || entry.tries === 0;
}

/**
 * The entries to show as bubbles: all but those whose message has already arrived over the live link. Until the answer tells
 * its id, an arrived message is recognised by its text and files; this only decides what is drawn.
 */
export function unarrived(entries: readonly OutboxEntry[], messages: readonly Message[]): readonly OutboxEntry[] {
  if (entries.length === 0) return entries;
  const claimed = new Set<string>();
  return entries.filter((entry) => {
    if (entry.refused !== null) return true;
    const own = messages.find((message) => !claimed.has(message.id) && looksLike(message, entry));
    if (own) claimed.add(own.id);
    return !own;
  });
}

function looksLike(message: Message, entry: OutboxEntry): boolean {
  if (message.role !== 'OWNER' || message.place <= entry.afterPlace || message.text !== entry.text) return false;
  const ids = message.attachments.map((attachment) => attachment.id);
  return ids.length === entry.attachments.length && entry.attachments.every((attachment) => ids.includes(attachment.id));
}

function parsed(stored: string | null): OutboxEntry | null {
  if (stored === null) return null;
  try {
    const entry = JSON.parse(stored) as OutboxEntry;
    return typeof entry.requestKey === 'string' && typeof entry.text === 'string' ? entry : null;
  } catch {
    return null; // not written by this page: nothing to send
  }
}
