/**
 * What the owner has read, kept in this browser for each account.
 *
 * Invariant: the mark never moves back, also not by another tab.
 */
import { withReadThrough, type State } from './state';
import type { Storage } from './storage';
import type { Store } from './store';
import { newestChange } from './timeline';

const keyOf = (account: string) => `pa.read.${account}`;

/** Takes over what this browser remembers; on first use everything that is there counts as read. */
export function recallReading(store: Store<State>, storage: Storage): void {
  const { viewer, timeline } = store.get();
  if (!viewer || !timeline) return;
  const stored = Number(storage.read(keyOf(viewer.account)) ?? Number.NaN);
  const readThrough = Number.isFinite(stored) ? stored : newestChange(timeline.messages);
  store.update((state) => withReadThrough(state, readThrough));
}

/** Notes that the newest loaded messages were on screen. */
export function markRead(store: Store<State>, storage: Storage): void {
  const { viewer, timeline, readThrough } = store.get();
  if (!viewer || !timeline) return;
  const newest = newestChange(timeline.messages);
  if (readThrough !== null && newest <= readThrough) return;
  const stored = Number(storage.read(keyOf(viewer.account)) ?? 0);
  storage.write(keyOf(viewer.account), String(Math.max(newest, Number.isFinite(stored) ? stored : 0)));
  store.update((state) => withReadThrough(state, newest));
}
