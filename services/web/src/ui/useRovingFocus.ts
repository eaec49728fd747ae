/**
 * One tab stop for the whole list of messages: the arrow keys move between them, so that the composer is never fifty Tabs away.
 *
 * What is inside of a message (copy, links, wide code) can be reached by Tab from that message only.
 */
import { useEffect, useRef, type KeyboardEvent, type RefObject } from 'react';

const ITEM = '[data-message]';
const INSIDE = 'a[href], button, pre, .markdown-table';

export function useRovingFocus(): { ref: RefObject<HTMLOListElement | null>; onKeyDown: (event: KeyboardEvent) => void; onFocus: () => void } {
  const ref = useRef<HTMLOListElement>(null);
  // After every drawing the tab stop is the focused message, or else the newest.
  useEffect(() => placeStop(ref.current));
  const onKeyDown = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (!target.matches(ITEM)) return;
    const items = itemsOf(ref.current);
    const next = items[destination(event.key, items.indexOf(target), items.length)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return { ref, onKeyDown, onFocus: () => placeStop(ref.current) };
}

function placeStop(list: HTMLElement | null): void {
  const items = itemsOf(list);
  const focused = document.activeElement?.closest(ITEM);
  const stop = items.find((item) => item === focused) ?? items.at(-1);
  for (const item of items) {
    const reach = item === stop ? 0 : -1;
    if (item.tabIndex !== reach || !item.hasAttribute('tabindex')) item.tabIndex = reach;
    for (const inside of item.querySelectorAll<HTMLElement>(INSIDE)) inside.tabIndex = reach;
  }
}

function itemsOf(list: HTMLElement | null): HTMLElement[] {
  return list ? [...list.querySelectorAll<HTMLElement>(ITEM)] : [];
}

function destination(key: string, at: number, length: number): number {
  if (key === 'ArrowUp') return at - 1;
  if (key === 'ArrowDown') return at + 1;
  if (key === 'Home') return 0;
  return key === 'End' ? length - 1 : -1;
}
