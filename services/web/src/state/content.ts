/**
 * What an action would do, as lines to show: every field of its content, the known ones first and in their usual order.
 *
 * Invariant: nothing of the content is left out. What has no form of its own is shown as it is.
 */

export type Step = { number: number; parts: Array<{ name: string; value: string }>; long: string | null };
export type Line = { name: string; value: string; kind: 'short' | 'long' };
export type Content = { lines: Line[]; steps: Step[] };

/** Typed text beyond this stands whole below its step. */
export const STEP_TEXT_CHARACTERS = 80;

const ORDER = ['from', 'to', 'cc', 'bcc', 'subject', 'body', 'text', 'attachments', 'files', 'device', 'computer', 'application', 'app', 'window', 'title', 'session', 'operation', 'path'];
const LONG = new Set(['body', 'text', 'content', 'message']);
const STEPS = ['steps', 'actions'];

export function contentOf(content: unknown): Content {
  if (!isRecord(content)) return { lines: [{ name: '', value: shown(content), kind: 'long' }], steps: [] };
  const stepsName = STEPS.find((name) => Array.isArray(content[name]) && (content[name] as unknown[]).every(isRecord));
  const steps = stepsName === undefined ? [] : (content[stepsName] as Array<Record<string, unknown>>).map(stepOf);
  const names = Object.keys(content).filter((name) => name !== stepsName);
  const rank = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  names.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  return { lines: names.map((name) => lineOf(name, content[name])), steps };
}

function lineOf(name: string, value: unknown): Line {
  const text = shown(value);
  return { name, value: text, kind: LONG.has(name) || text.includes('\n') || text.length > 120 ? 'long' : 'short' };
}

function stepOf(step: Record<string, unknown>, index: number): Step {
  let long: string | null = null;
  const parts = Object.entries(step).map(([name, value]) => {
    const text = shown(value);
    if ([...text].length <= STEP_TEXT_CHARACTERS) return { name, value: text };
    long = long === null ? text : `${long}\n\n${text}`;
    return { name, value: `${[...text].slice(0, STEP_TEXT_CHARACTERS).join('')}…` };
  });
  return { number: index + 1, parts, long };
}

/** Whether everything that a target names stands in the content anyway. */
export function isSaid(target: string, content: Content): boolean {
  const values = content.lines.map(({ value }) => value);
  return target.split(/\n|, | \/ | · /).every((piece) => values.some((value) => value.includes(piece.trim())));
}

/** A value in words: text as it is, a list of plain values with commas, one of files line by line, anything else as JSON. */
function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string' || typeof item === 'number')) return value.join(', ');
  if (Array.isArray(value) && value.length > 0 && value.every((item) => isRecord(item) && typeof item['name'] === 'string' && Object.values(item).every(isPlain))) {
    return (value as Array<Record<string, unknown>>).map(named).join('\n');
  }
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  return JSON.stringify(value, null, 2) ?? '';
}

/** A file, say: its name, and what else is known of it. */
function named({ name, ...rest }: Record<string, unknown>): string {
  const known = Object.entries(rest).map(([key, value]) => `${key} ${String(value)}`);
  return known.length === 0 ? String(name) : `${String(name)} (${known.join(', ')})`;
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
