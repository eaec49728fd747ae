/** Proves D24: the page speaks English and Simplified Chinese, both whole. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { en, type TextKey } from './en';
import { chooseLanguage, textIn } from './text';
import { zhCN } from './zh-CN';

const holes = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([hole]) => hole).sort();

test('both languages have the same texts with the same holes', () => {
  expect(Object.keys(zhCN).sort()).toEqual(Object.keys(en).sort());
  for (const key of Object.keys(en) as TextKey[]) {
    expect(holes(zhCN[key]), key).toEqual(holes(en[key]));
    expect(zhCN[key].trim(), key).not.toBe('');
  }
});

test('the chosen language wins over the browser’s, and the browser’s over English', () => {
  expect(chooseLanguage('zh-CN', ['en-US'])).toBe('zh-CN');
  expect(chooseLanguage('', ['zh-TW', 'en'])).toBe('zh-CN');
  expect(chooseLanguage('', ['fr-FR', 'zh'])).toBe('zh-CN');
  expect(chooseLanguage('', ['fr-FR'])).toBe('en');
});

/** Proves RUN-30 for notices and steps. */
test('a code without a sentence never reaches the reader', () => {
  const { notice, step, problem } = textIn('en');
  expect(notice('SOME_NEW_CODE', [])).not.toContain('SOME_NEW_CODE');
  expect(step('pa_internal_thing')).not.toContain('pa_internal_thing');
  expect(problem('SOME_NEW_CODE')).not.toContain('SOME_NEW_CODE');
});

/** The names that stand between quotes in a piece of a source of the product. */
const codesIn = (path: string, from: RegExp, to: RegExp): string[] => {
  const source = readFileSync(new URL(path, import.meta.url), 'utf8');
  const rest = source.slice(source.search(from));
  const codes = [...rest.slice(0, rest.search(to)).matchAll(/^\s+(?:pub const \w+: &str = "(\w+)";|([A-Z_]+))$/gm)].map(([, quoted, bare]) => quoted ?? bare ?? '');
  expect(codes.length, path).toBeGreaterThan(5);
  return codes.sort();
};
const worded = (prefix: string) => (Object.keys(en) as TextKey[]).filter((key) => key.startsWith(`${prefix}.`)).map((key) => key.slice(prefix.length + 1));
const onlyCodes = (keys: string[]) => keys.filter((key) => key === key.toUpperCase()).sort();

test('every notice of the rules has its sentence, and no sentence lacks its notice', () => {
  expect(onlyCodes(worded('notice'))).toEqual(codesIn('../../../domain/src/codes.rs', /pub mod notice/, /^}/m));
});

test('every refusal of a request has its sentence, and no sentence lacks its refusal', () => {
  expect(onlyCodes(worded('problem'))).toEqual(codesIn('../../../../schemas/read_model.graphql', /^enum UserErrorCode/m, /^}/m));
});

/** Codes of an enum as the read model stores them. */
const stored = (name: string): string[] => {
  const source = readFileSync(new URL('../../../../projections/src/code.rs', import.meta.url), 'utf8');
  const entry = source.slice(source.indexOf(`  ${name}, "`));
  return [...entry.slice(0, entry.indexOf(';')).matchAll(/= "(\w+)"/g)].map(([, code]) => code ?? '');
};

test('every reason of a task and of a call that was not made has its words', () => {
  const has = (key: string) => expect(Object.keys(en), key).toContain(key);
  const reasons = [...stored('WaitReason'), ...stored('PauseReason')];
  const skips = stored('SkipReason');
  expect([reasons.length, skips.length]).toEqual([6, 6]);
  for (const code of reasons) has(`task.reason.${code}`);
  for (const code of skips) has(`call.skip.${code}`);
});

test('a field of an action without a word is shown by its own name', () => {
  const { field } = textIn('en');
  expect([field('subject'), field('x_custom')]).toEqual(['Subject', 'x_custom']);
});

test('money is shown in its currency, and small amounts are not rounded away', () => {
  const { money } = textIn('en');
  expect(money(41_200, 'USD')).toBe('$0.0412');
  expect(money(1_500_000, 'USD')).toBe('$1.50');
  expect(money(1_000_000, 'no currency')).toBe('1 no currency');
});

test('a known notice is told in the reader’s language', () => {
  expect(textIn('en').notice('REPLY_INTERRUPTED', [])).toContain('interrupted');
  expect(textIn('zh-CN').notice('REPLY_INTERRUPTED', [])).toContain('中断');
});

test('days are named from where the reader is', () => {
  const { day } = textIn('en', 'Asia/Tokyo');
  const now = new Date('2026-03-01T16:00:00Z'); // already the second of March in Tokyo
  expect(day(new Date('2026-03-01T15:30:00Z'), now)).toBe('Today');
  expect(day(new Date('2026-03-01T14:30:00Z'), now)).toBe('Yesterday');
});

test('a zone that the browser does not know falls back to its own', () => {
  expect(textIn('en', 'Mars/Olympus').timeZone).toBeUndefined();
});
