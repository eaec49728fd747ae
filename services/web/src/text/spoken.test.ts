import { expect, test } from 'vitest';
import { spoken } from './spoken';

test('a reply is read aloud without the marks of its Markdown', () => {
  expect(spoken('**Rehearsal model** (no real model is configured).\n\nType `help`.')).toBe('Rehearsal model (no real model is configured).\nType help.');
  expect(spoken('# Plan\n\n- one *thing*\n- another_thing_here\n\n> a quote')).toBe('Plan\none thing\nanother_thing_here\na quote');
  expect(spoken('1. First, __bold__ and _thin_\n2. ~~gone~~ [here](https://example.org "title")')).toBe('1. First, bold and thin\n2. gone here');
  expect(spoken('| Planet | Moons |\n|---|---:|\n| Mars | 2 |')).toBe('Planet, Moons\nMars, 2');
  expect(spoken('So:\n\n```rust\nfn main() {}\n```\n\nand ![a cat](https://x/y.png)')).toBe('So:\nfn main() {}\nand a cat');
  expect(spoken('**演练模型**（尚未接入真正的模型）。')).toBe('演练模型（尚未接入真正的模型）。');
});

test('what only looks like a mark is kept', () => {
  expect(spoken('2 * 3 * 4 = 24, a_b_c, 5 > 3 and **')).toBe('2 * 3 * 4 = 24, a_b_c, 5 > 3 and **');
  expect(spoken('\\*not thin\\*')).toBe('*not thin*');
});
