/** A value that components can watch: one state, changed by pure functions. */
import { useSyncExternalStore } from 'react';

export class Store<State> {
  readonly #watchers = new Set<() => void>();
  #state: State;

  constructor(initial: State) {
    this.#state = initial;
  }

  get = (): State => this.#state;

  update(change: (state: State) => State): void {
    const next = change(this.#state);
    if (next === this.#state) return;
    this.#state = next;
    for (const watcher of [...this.#watchers]) watcher();
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };
}

/** Watches a part of the state; `select` must give the same object for the same state. */
export function useStore<State, Part>(store: Store<State>, select: (state: State) => Part): Part {
  return useSyncExternalStore(store.watch, () => select(store.get()));
}
