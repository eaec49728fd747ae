/**
 * What this browser keeps for itself: messages that are not decided yet, the text in the composer, what was read, the theme.
 *
 * Invariant: works without a usable `localStorage` (private windows, full disk); then things last as long as the tab.
 */
export interface Storage {
  read(key: string): string | null;
  write(key: string, value: string): void;
  remove(key: string): void;
  keys(prefix: string): string[];
}

/** Keeps things in `localStorage`, and what does not fit there in memory. */
export function browserStorage(): Storage {
  const memory = new Map<string, string>();
  const guarded = <Result>(act: () => Result, otherwise: Result): Result => {
    try {
      return act();
    } catch {
      return otherwise; // storage that is blocked or full: the memory copy stands in
    }
  };
  return {
    read: (key) => memory.get(key) ?? guarded(() => localStorage.getItem(key), null),
    write: (key, value) => {
      const kept = guarded(() => (localStorage.setItem(key, value), true), false);
      if (kept) memory.delete(key);
      else memory.set(key, value);
    },
    remove: (key) => {
      memory.delete(key);
      guarded(() => localStorage.removeItem(key), undefined);
    },
    keys: (prefix) => {
      const stored = guarded(() => Object.keys(localStorage), []);
      return [...new Set([...stored, ...memory.keys()])].filter((key) => key.startsWith(prefix));
    },
  };
}

/** Keeps things in memory only; for tests. */
export function memoryStorage(): Storage {
  const memory = new Map<string, string>();
  return {
    read: (key) => memory.get(key) ?? null,
    write: (key, value) => void memory.set(key, value),
    remove: (key) => void memory.delete(key),
    keys: (prefix) => [...memory.keys()].filter((key) => key.startsWith(prefix)),
  };
}

/** A random id; also where the page is not served securely and `crypto.randomUUID` is missing. */
export function randomId(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
