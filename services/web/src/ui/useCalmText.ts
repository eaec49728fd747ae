/**
 * Slows the drawing of a long text that grows, so that each drawing may take only a small part of the time.
 *
 * Short texts are drawn at once, piece by piece; the finished text always is.
 */
import { useEffect, useReducer, useRef } from 'react';

/** Up to here a drawing takes a few milliseconds. */
const SHORT_LENGTH = 6_000;
/** One more millisecond between drawings for so many characters: 60,000 characters are drawn about twice a second. */
const CHARACTERS_PER_MS = 120;

export function useCalmText(text: string, growing: boolean): string {
  const shown = useRef(text);
  const drawnAt = useRef(0);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const calm = growing && text.length > SHORT_LENGTH && text.startsWith(shown.current);
  useEffect(() => {
    if (!calm) {
      shown.current = text;
      return;
    }
    if (shown.current === text) return;
    const waitMs = Math.max(0, drawnAt.current + text.length / CHARACTERS_PER_MS - performance.now());
    const timer = setTimeout(() => {
      drawnAt.current = performance.now();
      shown.current = text;
      redraw();
    }, waitMs);
    return () => clearTimeout(timer);
  }, [text, calm]);
  return calm ? shown.current : text;
}
