/**
 * A reply's Markdown as it is read aloud: its words without its marks.
 *
 * Pure. What is not recognised is left as it stands: a mark too many is better than a word too few.
 */

const FENCE = /^\s*(```|~~~)/;
const TABLE_RULE = /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/;

export function spoken(markdown: string): string {
  const said: string[] = [];
  let inCode = false;
  for (const line of markdown.split('\n')) {
    if (FENCE.test(line)) {
      inCode = !inCode;
    } else if (inCode) {
      said.push(line.trim());
    } else if (!TABLE_RULE.test(line)) {
      said.push(withoutMarks(line));
    }
  }
  return said
    .filter((line) => line !== '')
    .join('\n')
    .trim();
}

function withoutMarks(line: string): string {
  const isRow = /^\s*\|.*\|\s*$/.test(line);
  const words = isRow ? line.trim().slice(1, -1).split('|').map((cell) => cell.trim()).join(', ') : line;
  return words
    .replace(/^\s*(?:>\s?)+/, '')
    .replace(/^\s*(?:#{1,6}|[-*+])\s+/, '')
    .replace(/!?\[([^\]]*)\]\([^)\s]*(?:\s+"[^"]*")?\)/g, '$1')
    .replace(/`+([^`]+)`+/g, '$1')
    .replace(/(\*\*|__|~~)(?=\S)(.+?)(?<=\S)\1/g, '$2')
    .replace(/(?<![\w*\\])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])/g, '$1')
    .replace(/(?<![\w_\\])_(?=\S)([^_]+?)(?<=\S)_(?![\w_])/g, '$1')
    .replace(/\\([\\`*_{}[\]()#+.!|>~-])/g, '$1')
    .trim();
}
