/**
 * Reads a task's details: the newest entries when it is opened, older ones on demand, and all again after a resync.
 *
 * Invariant: an answer for a task that is no longer open is dropped.
 */
import { OlderOutputs, OlderTasks, TaskPage, WholeEntry } from '../api/generated';
import { RequestError, type Request } from '../api/request';
import type { State } from './state';
import type { Store } from './store';
import { closed, opened, withNewestEntries, withOlderEntries, withOlderOutputs, withOlderTasks, withOpen, withTask, type OpenTask, type Work } from './work';

/** One screen and a good part of the next. */
const PAGE_SIZE = 50;

export class TaskReader {
  constructor(
    private readonly store: Store<State>,
    private readonly request: Request,
  ) {}

  open(id: string): void {
    this.#work((work) => opened(work, id));
    void this.read();
  }

  close(): void {
    this.#work(closed);
  }

  /** Reads the newest entries of the open task. */
  async read(): Promise<void> {
    const id = this.store.get().work.open?.id;
    if (id === undefined) return;
    try {
      const { task } = await this.request(TaskPage, { id, last: PAGE_SIZE, atLeast: this.store.get().cursor });
      this.#work((work) => {
        const known = task ? withTask(work, task) : work;
        return withOpen(known, id, (open) => (task ? withNewestEntries(open, task) : { ...open, reading: 'gone' }));
      });
    } catch (cause) {
      this.#failed(cause);
      this.#work((work) => withOpen(work, id, (open) => ({ ...open, reading: 'failed' })));
    }
  }

  async older(): Promise<void> {
    const open = this.store.get().work.open;
    if (!open?.olderCursor || open.loadingOlder) return;
    const { id, olderCursor: before } = open;
    const change = (next: (open: OpenTask) => OpenTask) => this.#work((work) => withOpen(work, id, next));
    change((now) => ({ ...now, loadingOlder: true }));
    try {
      const { task } = await this.request(TaskPage, { id, last: PAGE_SIZE, before });
      change((now) => (task && now.olderCursor === before ? withOlderEntries(now, task) : now));
    } catch (cause) {
      this.#failed(cause);
    } finally {
      change((now) => ({ ...now, loadingOlder: false }));
    }
  }

  /** The whole text of an entry of which only the beginning is loaded; null when nobody answers. */
  async whole(id: string): Promise<string | null> {
    try {
      return (await this.request(WholeEntry, { id })).taskEntry?.text ?? null;
    } catch (cause) {
      this.#failed(cause);
      return null;
    }
  }

  async olderTasks(): Promise<void> {
    const before = this.store.get().work.olderTasks;
    if (before === null) return;
    try {
      const { tasks } = await this.request(OlderTasks, { last: PAGE_SIZE, before });
      this.#work((work) => (work.olderTasks === before ? withOlderTasks(work, tasks) : work));
    } catch (cause) {
      this.#failed(cause);
    }
  }

  async olderOutputs(): Promise<void> {
    const before = this.store.get().work.olderOutputs;
    if (before === null) return;
    try {
      const { outputs } = await this.request(OlderOutputs, { last: PAGE_SIZE, before });
      this.#work((work) => (work.olderOutputs === before ? withOlderOutputs(work, outputs) : work));
    } catch (cause) {
      this.#failed(cause);
    }
  }

  #work(change: (work: Work) => Work): void {
    this.store.update((state) => {
      const work = change(state.work);
      return work === state.work ? state : { ...state, work };
    });
  }

  #failed(cause: unknown): void {
    if (cause instanceof RequestError && cause.failure === 'signedOut') this.store.update((state) => ({ ...state, phase: 'signedOut' }));
  }
}
