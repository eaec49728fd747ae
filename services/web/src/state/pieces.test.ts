/** Proves USE-26 for the page: a reply appears as it is written, whatever order its pieces come in. */
import { expect, test } from 'vitest';
import { withPiece, type Draft, type Piece } from './pieces';

const piece = (attempt: number, offset: number, text: string): Piece => ({ messageId: 'r', attempt, offset, text });
const all = (...pieces: Piece[]): Draft => pieces.reduce<Draft | undefined>(withPiece, undefined) as Draft;

test('pieces in order make the text', () => {
  expect(all(piece(1, 0, 'Hel'), piece(1, 3, 'lo')).text).toBe('Hello');
});

test('a piece that comes twice changes nothing', () => {
  const draft = all(piece(1, 0, 'Hel'), piece(1, 3, 'lo'));
  expect(withPiece(draft, piece(1, 3, 'lo'))).toBe(draft);
});

test('the whole text so far never makes the text shorter', () => {
  const draft = all(piece(1, 0, 'Hello'), piece(1, 0, 'Hel'));
  expect(draft.text).toBe('Hello');
});

test('a piece that comes early waits for the hole before it', () => {
  const early = all(piece(1, 0, 'a'), piece(1, 2, 'c'));
  expect(early.text).toBe('a');
  expect(withPiece(early, piece(1, 1, 'b')).text).toBe('abc');
});

test('a tab that opens in the middle shows the whole text so far and then goes on', () => {
  expect(all(piece(2, 5, ' you'), piece(2, 0, 'Hello you'), piece(2, 9, '!')).text).toBe('Hello you!');
});

test('a higher attempt begins again and a lower one is void', () => {
  const second = all(piece(1, 0, 'First try'), piece(2, 0, 'Sec'));
  expect(second.text).toBe('Sec');
  expect(withPiece(second, piece(1, 9, ' goes on'))).toBe(second);
});

test('offsets count UTF-16 units', () => {
  expect(all(piece(1, 0, '😀'), piece(1, 2, '!')).text).toBe('😀!');
});

test('every order of the same pieces gives the same text', () => {
  const pieces = [piece(1, 0, 'ab'), piece(1, 2, 'cd'), piece(1, 4, 'ef'), piece(1, 6, 'gh')];
  for (const order of permutations(pieces)) expect(all(...order).text).toBe('abcdefgh');
});

function permutations<Item>(items: Item[]): Item[][] {
  if (items.length < 2) return [items];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}
