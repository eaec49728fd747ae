/**
 * Follows the newest message while the reader is at the bottom, and leaves the reader alone elsewhere.
 *
 * Invariants: what the reader looks at does not move when older messages come in above; only what was on screen at the bottom
 * counts as read.
 */
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';
import type { OutboxEntry } from '../state/outbox';
import { useStore } from '../state/store';
import { unreadCount, type Timeline } from '../state/timeline';
import { usePage } from './context';

/** Being this close counts as the bottom, so that half a line does not end the following. */
const BOTTOM_SLACK_PX = 64;

export type Following = {
  scroller: RefObject<HTMLDivElement | null>;
  atBottom: boolean;
  unread: number;
  onScroll: () => void;
  toBottom: () => void;
};

export function useFollowing(timeline: Timeline, outgoing: readonly OutboxEntry[]): Following {
  const scroller = useRef<HTMLDivElement>(null);
  const fromEnd = useRef(0);
  const bottom = useRef(true);
  const [atBottom, setAtBottom] = useState(true);
  const page = usePage();
  const readThrough = useStore(page.store, (state) => state.readThrough);
  const unread = readThrough === null ? 0 : unreadCount(timeline.messages, readThrough);

  const onScroll = useCallback(() => {
    const area = scroller.current;
    if (!area) return;
    fromEnd.current = area.scrollHeight - area.scrollTop;
    bottom.current = fromEnd.current - area.clientHeight < BOTTOM_SLACK_PX;
    setAtBottom(bottom.current);
  }, []);
  const settle = useCallback(() => {
    const area = scroller.current;
    if (!area) return;
    if (bottom.current) area.scrollTop = area.scrollHeight;
    fromEnd.current = area.scrollHeight - area.scrollTop;
  }, []);
  const toBottom = useCallback(() => {
    bottom.current = true;
    setAtBottom(true);
    settle();
  }, [settle]);

  // Older messages came in above: what was on screen stays where it was.
  const first = timeline.messages[0]?.id;
  useLayoutEffect(() => {
    const area = scroller.current;
    if (area && !bottom.current) area.scrollTop = area.scrollHeight - fromEnd.current;
  }, [first]);

  // The owner's own message always comes into view.
  const sent = outgoing.length;
  const sentBefore = useRef(sent);
  useLayoutEffect(() => {
    if (sent > sentBefore.current) toBottom();
    sentBefore.current = sent;
  }, [sent, toBottom]);

  useLayoutEffect(settle, [settle, timeline, outgoing]);
  useEffect(() => watchSize(scroller.current, settle), [settle, timeline.conversationId]);
  useReadMark(atBottom, timeline);
  return { scroller, atBottom, unread: atBottom ? 0 : unread, onScroll, toBottom };
}

/** A picture that finished loading, or a keyboard that opened, must not push the newest message out of view. */
function watchSize(area: HTMLElement | null, settle: () => void): (() => void) | undefined {
  if (!area) return undefined;
  const observer = new ResizeObserver(settle);
  observer.observe(area);
  for (const child of area.children) observer.observe(child);
  return () => observer.disconnect();
}

function useReadMark(atBottom: boolean, timeline: Timeline): void {
  const { markRead, store } = usePage();
  // That a result was told may be heard of a moment after the reply that tells it.
  const indicator = useStore(store, (state) => state.indicator);
  useEffect(() => {
    if (!atBottom) return;
    const mark = () => {
      if (document.visibilityState === 'visible') markRead();
    };
    mark();
    document.addEventListener('visibilitychange', mark);
    return () => document.removeEventListener('visibilitychange', mark);
  }, [atBottom, timeline.messages, indicator, markRead]);
}
