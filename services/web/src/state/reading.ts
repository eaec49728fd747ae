/**
 * What the owner has read, kept in this browser for each account.
 *
 * Invariant: the mark never moves back, also not by another tab.
 */
import { withReadThrough, withSeen, type State } from './state';
import type { Storage } from './storage';
import type { Store } from './store';
import { newestChange } from './timeline';
import { ordinalOf, type Seen } from './work';

const keyOf = (account: string) => `pa.read.${account}`;
const seenKeyOf = (account: string) => `pa.read.seen.${account}`;

/** Takes over what this browser remembers; on first use everything that is there counts as read. */
export function recallReading(store: Store<State>, storage: Storage): void {
  const { viewer, timeline } = store.get();
  if (!viewer || !timeline) return;
  const stored = Number(storage.read(keyOf(viewer.account)) ?? Number.NaN);
  const readThrough = Number.isFinite(stored) ? stored : newestChange(timeline.messages);
  store.update((state) => withSeen(withReadThrough(state, readThrough), recalledSeen(store.get(), storage.read(seenKeyOf(viewer.account)))));
}

/** What this browser remembers; on first use everything that is over by now counts as seen. */
function recalledSeen({ indicator }: State, stored: string | null): Seen {
  const [result, failure] = (stored ?? '').split(' ').map(Number);
  if (stored !== null && Number.isFinite(result) && Number.isFinite(failure)) return { result: result ?? 0, failure: failure ?? 0 };
  return { result: indicator?.lastResult ? ordinalOf(indicator.lastResult.position) : 0, failure: indicator?.lastFailure ? ordinalOf(indicator.lastFailure.position) : 0 };
}

/** Notes what was seen, for the other tabs too. */
function markSeen(store: Store<State>, storage: Storage, seen: Seen): void {
  const { viewer, seen: before } = store.get();
  if (!viewer || !before) return;
  store.update((state) => withSeen(state, seen));
  const now = store.get().seen;
  if (now && now !== before) storage.write(seenKeyOf(viewer.account), `${now.result} ${now.failure}`);
}

/** The details of a failed task were looked at. */
export function markFailureSeen(store: Store<State>, storage: Storage, taskId: string): void {
  const failure = store.get().indicator?.lastFailure;
  if (failure?.taskId === taskId) markSeen(store, storage, { result: 0, failure: ordinalOf(failure.position) });
}

/** Notes that the newest loaded messages were on screen. */
export function markRead(store: Store<State>, storage: Storage): void {
  const { viewer, timeline, readThrough, indicator } = store.get();
  if (!viewer || !timeline) return;
  // A result is seen once the reply that tells it was on screen, and a reply's failure with its notice.
  const result = indicator?.lastResult?.delivered ? ordinalOf(indicator.lastResult.position) : 0;
  const failure = indicator?.lastFailure?.messageId ? ordinalOf(indicator.lastFailure.position) : 0;
  markSeen(store, storage, { result, failure });
  const newest = newestChange(timeline.messages);
  if (readThrough !== null && newest <= readThrough) return;
  const stored = Number(storage.read(keyOf(viewer.account)) ?? 0);
  storage.write(keyOf(viewer.account), String(Math.max(newest, Number.isFinite(stored) ? stored : 0)));
  store.update((state) => withReadThrough(state, newest));
}
