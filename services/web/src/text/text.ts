/**
 * The page's texts in the reader's language, with the formats that belong to it.
 *
 * Invariant: codes from the server become sentences here and nowhere else; a code without a sentence never reaches the reader.
 */
import { createContext, useContext } from 'react';
import { en, type Dictionary, type TextKey } from './en';
import { zhCN } from './zh-CN';

export type Language = 'en' | 'zh-CN';
export type Values = Record<string, string | number>;

const dictionaries: Record<Language, Dictionary> = { en, 'zh-CN': zhCN };

export type Text = {
  language: Language;
  timeZone: string | undefined;
  t: (key: TextKey, values?: Values) => string;
  count: (key: 'conversation.newBelow' | 'action.count', count: number) => string;
  notice: (code: string, params: Array<{ name: string; value: string }>) => string;
  step: (code: string) => string;
  problem: (code: string) => string;
  /** The sentence for a code of a family such as `task.reason`; `otherwise` for one that is not known. */
  coded: (family: string, code: string, otherwise: TextKey) => string;
  /** The name of a field of an action; one that has no word is shown by its own name, so that nothing is left out. */
  field: (name: string) => string;
  number: (value: number) => string;
  money: (micros: number, currency: string) => string;
  clock: (at: Date) => string;
  day: (at: Date, now: Date) => string;
  size: (bytes: number) => string;
};

/** The language to use: the chosen one, or the first of the browser's that we have. */
export function chooseLanguage(chosen: string, browser: readonly string[]): Language {
  for (const wanted of [chosen, ...browser]) {
    const lower = wanted.toLowerCase();
    if (lower.startsWith('zh')) return 'zh-CN';
    if (lower.startsWith('en')) return 'en';
  }
  return 'en';
}

/** Makes the texts of one language, with times in one zone. */
export function textIn(language: Language, timeZone?: string): Text {
  const dictionary = dictionaries[language];
  const zone = timeZone && isZone(timeZone) ? timeZone : undefined;
  const t = (key: TextKey, values: Values = {}) => filled(dictionary[key], values);
  const known = (prefix: string, code: string, otherwise: TextKey, values: Values = {}) => {
    const key = `${prefix}.${code}`;
    return t(key in dictionary ? (key as TextKey) : otherwise, values);
  };
  const plural = new Intl.PluralRules(language);
  const clock = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', timeZone: zone });
  const thisYear = new Intl.DateTimeFormat(language, { weekday: 'long', month: 'long', day: 'numeric', timeZone: zone });
  const otherYear = new Intl.DateTimeFormat(language, { year: 'numeric', month: 'long', day: 'numeric', timeZone: zone });
  return {
    language,
    timeZone: zone,
    t,
    count: (key, count) => t(plural.select(count) === 'one' ? `${key}.one` : `${key}.other`, { count }),
    notice: (code, params) => known('notice', code, 'notice.unknown', Object.fromEntries(params.map(({ name, value }) => [name, value]))),
    step: (code) => known('step', code, 'step.unknown'),
    problem: (code) => known('problem', code, 'problem.unknown'),
    coded: known,
    field: (name) => {
      const key = `action.field.${name}`;
      return key in dictionary ? t(key as TextKey) : name;
    },
    number: (value) => value.toLocaleString(language),
    money: (micros, currency) => moneyOf(micros / 1_000_000, currency, language),
    clock: (at) => clock.format(at),
    day: (at, now) => {
      const date = dateIn(zone, at);
      if (date === dateIn(zone, now)) return t('day.today');
      if (date === dayBefore(dateIn(zone, now))) return t('day.yesterday');
      return date.slice(0, 4) === dateIn(zone, now).slice(0, 4) ? thisYear.format(at) : otherYear.format(at);
    },
    size: (bytes) => sizeOf(bytes, language),
  };
}

/** The calendar date of a moment in a zone, as `2026-01-31`. */
export function dateIn(zone: string | undefined, at: Date): string {
  let format = dateFormats.get(zone ?? '');
  if (!format) {
    format = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit', timeZone: zone });
    dateFormats.set(zone ?? '', format);
  }
  return format.format(at);
}

const dateFormats = new Map<string, Intl.DateTimeFormat>();

export const TextContext = createContext<Text>(textIn('en'));
export const useText = (): Text => useContext(TextContext);

function filled(template: string, values: Values): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

function isZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false; // a zone that this browser does not know yet: its own zone is used
  }
}

function dayBefore(date: string): string {
  const noon = new Date(`${date}T12:00:00Z`);
  noon.setUTCDate(noon.getUTCDate() - 1);
  return noon.toISOString().slice(0, 10);
}

function moneyOf(value: number, currency: string, language: Language): string {
  try {
    // Single requests cost fractions of a cent.
    return value.toLocaleString(language, { style: 'currency', currency, maximumFractionDigits: value !== 0 && Math.abs(value) < 0.1 ? 4 : 2 });
  } catch {
    return `${value.toLocaleString(language)} ${currency}`; // not a currency that this browser knows
  }
}

const UNITS = ['B', 'KiB', 'MiB'] as const;

function sizeOf(bytes: number, language: Language): string {
  const step = bytes < 1024 ? 0 : bytes < 1024 * 1024 ? 1 : 2;
  const value = bytes / 1024 ** step;
  const digits = step === 0 || value >= 10 ? 0 : 1;
  return `${value.toLocaleString(language, { maximumFractionDigits: digits })} ${UNITS[step]}`;
}
