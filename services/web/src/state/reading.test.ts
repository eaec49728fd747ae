import { expect, test } from 'vitest';
import { message, readyState } from '../testing/things';
import { markFailureSeen, markRead, recallReading } from './reading';
import type { State } from './state';
import { memoryStorage } from './storage';
import { Store } from './store';

const facts = (given: Partial<NonNullable<State['indicator']>>): NonNullable<State['indicator']> => ({ needsInput: false, running: false, lastFailure: null, lastResult: null, ...given });
const ready = (indicator: NonNullable<State['indicator']>): Store<State> => new Store({ ...readyState([message({ place: 3 })]), indicator });

/** Proves SID-11: on first use what is over counts as seen, and later things do not. */
test('on first use everything that is over counts as seen', () => {
  const storage = memoryStorage();
  const store = ready(facts({ lastResult: { taskId: 't', position: '5', delivered: true }, lastFailure: { messageId: null, taskId: 'u', position: '4@s' } }));
  recallReading(store, storage);
  expect(store.get().seen).toEqual({ result: 5, failure: 4 });
});

/** Proves SID-5, SID-7: a result is seen once it was told and what was told was on screen. */
test('a result that was not told yet is not seen by reading', () => {
  const storage = memoryStorage();
  const store = ready(facts({}));
  recallReading(store, storage);
  store.update((state) => ({ ...state, indicator: facts({ lastResult: { taskId: 't', position: '9', delivered: false } }) }));
  markRead(store, storage);
  expect(store.get().seen?.result).toBe(0);
  store.update((state) => ({ ...state, indicator: facts({ lastResult: { taskId: 't', position: '9', delivered: true } }) }));
  markRead(store, storage);
  expect(store.get().seen?.result).toBe(9);
  // Another tab of this browser, or the page after a reload, knows it too.
  const again = ready(facts({ lastResult: { taskId: 't', position: '9', delivered: true } }));
  recallReading(again, storage);
  expect(again.get().seen?.result).toBe(9);
});

/** Proves SID-6: looking at a failed task's details is what clears its sign. */
test('a failed task is seen by its details, not by reading the conversation', () => {
  const storage = memoryStorage();
  const store = ready(facts({}));
  recallReading(store, storage);
  store.update((state) => ({ ...state, indicator: facts({ lastFailure: { messageId: null, taskId: 'u', position: '9' } }) }));
  markRead(store, storage);
  markFailureSeen(store, storage, 'another');
  expect(store.get().seen?.failure).toBe(0);
  markFailureSeen(store, storage, 'u');
  expect(store.get().seen?.failure).toBe(9);
});
