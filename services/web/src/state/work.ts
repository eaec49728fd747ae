/**
 * Background work: tasks, what waits for the owner, files that were handed over, and the entries of the task that is open.
 *
 * Invariants: rows stand by `place`; an older copy never replaces a newer one, so an update that comes twice or late changes
 * nothing; entries are one run without holes that ends at the newest.
 */
import type { ActionFields, IndicatorFields, OutputFields, TaskEntryFields, TaskFields, TaskPageData, WorkData } from '../api/generated';

export type Task = TaskFields;
export type TaskEntry = TaskEntryFields;
export type Action = ActionFields;
export type Output = OutputFields;
export type Usage = NonNullable<TaskPageData['task']>['usage'];

/** The task whose details are shown. */
export type OpenTask = {
  id: string;
  /** `reading` until its newest entries are there; `gone` when there is no such task. */
  reading: 'reading' | 'read' | 'failed' | 'gone';
  entries: readonly TaskEntry[];
  olderCursor: string | null;
  loadingOlder: boolean;
  usage: Usage | null;
};

export type Work = {
  tasks: readonly Task[];
  olderTasks: string | null;
  actions: readonly Action[];
  outputs: readonly Output[];
  olderOutputs: string | null;
  open: OpenTask | null;
};

export const noWork: Work = { tasks: [], olderTasks: null, actions: [], outputs: [], olderOutputs: null, open: null };

/** Takes a whole fresh reading in; the open task stays open, to be read again. */
export function workOf(read: WorkData, before: Work): Work {
  return {
    tasks: byPlace(read.tasks.nodes),
    olderTasks: cursorOf(read.tasks.pageInfo),
    actions: byPlace(read.pendingActions),
    outputs: byPlace(read.outputs.nodes),
    olderOutputs: cursorOf(read.outputs.pageInfo),
    open: before.open && { ...before.open, reading: 'reading' },
  };
}

export function withTask(work: Work, task: Task): Work {
  const tasks = upserted(work.tasks, task);
  return tasks === work.tasks ? work : { ...work, tasks };
}

export function withAction(work: Work, action: Action): Work {
  const actions = upserted(work.actions, action);
  return actions === work.actions ? work : { ...work, actions };
}

/** An output never changes. */
export function withOutput(work: Work, output: Output): Work {
  if (work.outputs.some(({ id }) => id === output.id)) return work;
  return { ...work, outputs: byPlace([...work.outputs, output]) };
}

export function withTaskEntry(work: Work, entry: TaskEntry): Work {
  const { open } = work;
  if (!open || open.id !== entry.taskId) return work;
  const first = open.entries[0];
  if (first && open.olderCursor !== null && entry.place < first.place) return work;
  const entries = upserted(open.entries, entry);
  return entries === open.entries ? work : { ...work, open: { ...open, entries } };
}

export function opened(work: Work, id: string): Work {
  if (work.open?.id === id) return work;
  return { ...work, open: { id, reading: 'reading', entries: [], olderCursor: null, loadingOlder: false, usage: null } };
}

export function closed(work: Work): Work {
  return work.open ? { ...work, open: null } : work;
}

/** Changes the open task, if it is still this one. */
export function withOpen(work: Work, id: string, change: (open: OpenTask) => OpenTask): Work {
  return work.open?.id === id ? { ...work, open: change(work.open) } : work;
}

/** Takes the newest page of the open task in; what came live meanwhile stays where it is newer. */
export function withNewestEntries(open: OpenTask, page: NonNullable<TaskPageData['task']>): OpenTask {
  const first = page.entries.nodes[0]?.place ?? 0;
  const live = open.entries.filter((entry) => entry.place >= first);
  const entries = live.reduce(upserted, byPlace(page.entries.nodes));
  return { ...open, reading: 'read', entries, olderCursor: cursorOf(page.entries.pageInfo), usage: page.usage };
}

/** Puts an older page before what is loaded. */
export function withOlderEntries(open: OpenTask, page: NonNullable<TaskPageData['task']>): OpenTask {
  return { ...open, entries: page.entries.nodes.reduce(upserted, open.entries), olderCursor: cursorOf(page.entries.pageInfo) };
}

export function withOlderTasks(work: Work, page: WorkData['tasks']): Work {
  return { ...work, tasks: page.nodes.reduce(upserted, work.tasks), olderTasks: cursorOf(page.pageInfo) };
}

export function withOlderOutputs(work: Work, page: WorkData['outputs']): Work {
  return { ...page.nodes.reduce(withOutput, work), olderOutputs: cursorOf(page.pageInfo) };
}

// --- What is shown ---

export function isEnded(task: Task): boolean {
  return task.state === 'COMPLETED' || task.state === 'FAILED' || task.state === 'STOPPED';
}

/** Open tasks, those that started last first; then the ended ones, those that ended last first. */
export function inOrderOfInterest(tasks: readonly Task[]): Task[] {
  const rank = (task: Task) => (isEnded(task) ? 1 : 0);
  return [...tasks].sort((a, b) => rank(a) - rank(b) || (isEnded(a) ? b.changed - a.changed : b.place - a.place));
}

/**
 * What waits for the owner's word: cards, and effects of which nobody knows the outcome. While a task is at work its worker may
 * still find out, so it is not asked about then.
 */
export function waiting(work: Work): Action[] {
  const atWork = new Set(work.tasks.filter(({ state }) => state === 'QUEUED' || state === 'RUNNING').map(({ id }) => id));
  return work.actions.filter(({ state, taskId }) => state === 'PENDING' || (state === 'UNKNOWN' && !(taskId !== null && atWork.has(taskId))));
}

export function hasWork(work: Work): boolean {
  return work.tasks.length > 0 || work.outputs.length > 0;
}

export type IndicatorKind = 'input' | 'failure' | 'running' | 'result';

/** How far this browser has seen results and failures, as numbers that only grow. */
export type Seen = { result: number; failure: number };

/** One sign for everything: what asks goes before a failure that nobody saw, that before work under way, that before an unread result. */
export function indicatorKind(indicator: IndicatorFields | null, seen: Seen | null): IndicatorKind | null {
  if (!indicator) return null;
  if (indicator.needsInput) return 'input';
  if (seen && indicator.lastFailure && ordinalOf(indicator.lastFailure.position) > seen.failure) return 'failure';
  if (indicator.running) return 'running';
  if (seen && indicator.lastResult && ordinalOf(indicator.lastResult.position) > seen.result) return 'result';
  return null;
}

/** The ordinal in a position. */
export function ordinalOf(position: string): number {
  return Number(position.split('@')[0]);
}

function cursorOf(page: { hasPreviousPage: boolean; startCursor: string | null }): string | null {
  return page.hasPreviousPage ? page.startCursor : null;
}

function byPlace<Row extends { place: number }>(rows: readonly Row[]): readonly Row[] {
  return [...rows].sort((a, b) => a.place - b.place);
}

function upserted<Row extends { id: string; place: number; changed: number }>(rows: readonly Row[], row: Row): readonly Row[] {
  const index = rows.findIndex(({ id }) => id === row.id);
  const known = rows[index];
  if (!known) return byPlace([...rows, row]);
  return known.changed >= row.changed ? rows : rows.with(index, row);
}
