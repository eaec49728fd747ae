/**
 * One tab stop for the whole list of messages: the arrow keys move between them, so that the composer is never fifty Tabs away.
 */
import { useEffect, useRef, type KeyboardEvent, type RefObject } from 'react';

const ITEM = '[data-message]';

export function useRovingFocus(): { ref: RefObject<HTMLOListElement | null>; onKeyDown: (event: KeyboardEvent) => void } {
  const ref = useRef<HTMLOListElement>(null);
  // After every drawing the tab stop is the focused message, or else the newest.
  useEffect(() => {
    const items = itemsOf(ref.current);
    const focused = document.activeElement?.closest(ITEM);
    const stop = items.find((item) => item === focused) ?? items.at(-1);
    for (const item of items) item.tabIndex = item === stop ? 0 : -1;
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (!target.matches(ITEM)) return;
    const items = itemsOf(ref.current);
    const next = items[destination(event.key, items.indexOf(target), items.length)];
    if (!next) return;
    event.preventDefault();
    for (const item of items) item.tabIndex = item === next ? 0 : -1;
    next.focus();
  };
  return { ref, onKeyDown };
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
