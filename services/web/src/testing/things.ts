/** Things that tests are made of: messages, pages, a server that answers as it is told. */
import type { BootData, MessageOutcome, WorkData } from '../api/generated';
import type { Envelope, LinkEvents, OpenLink } from '../api/live';
import { RequestError, type Request } from '../api/request';
import { loaded, initialState, type State } from '../state/state';
import type { Message, Page } from '../state/timeline';
import type { Action, Task, TaskEntry } from '../state/work';

export function message(given: Partial<Message> & { place: number }): Message {
  return {
    id: `m${given.place}`,
    conversationId: 'main',
    changed: given.place,
    role: 'OWNER',
    author: null,
    text: `text ${given.place}`,
    status: 'ANSWERED',
    createdAt: new Date(Date.UTC(2026, 0, 10, 12, 0, given.place)).toISOString(),
    replyToId: null,
    replyId: null,
    incomplete: false,
    notice: null,
    attachments: [],
    ...given,
  };
}

export function pageOf(messages: Message[], olderCursor: string | null = null): Page {
  return { id: 'main', messages: { pageInfo: { hasPreviousPage: olderCursor !== null, startCursor: olderCursor }, nodes: messages } };
}

export function bootOf(position: string, account = 'a1'): BootData {
  return {
    viewer: { account, name: 'owner', role: 'OWNER', language: '' },
    agent: { id: account, name: 'Ada', position },
    settings: { version: 1, timeZone: 'UTC', language: '', model: '', effort: 'FAST', name: 'Ada', availableModels: [] },
    indicator: { needsInput: false, running: false, lastFailure: null, lastResult: null },
    system: { model: { name: 'rehearsal', rehearsal: true }, foldedAnew: null },
  };
}

export function readyState(messages: Message[] = [], olderCursor: string | null = null): State {
  return loaded(initialState, bootOf('10'), pageOf(messages, olderCursor), workRead());
}

const NO_OLDER = { hasPreviousPage: false, startCursor: null };

/** What there is of background work. */
export function workRead(tasks: Task[] = [], actions: Action[] = []): WorkData {
  return { tasks: { pageInfo: NO_OLDER, nodes: tasks }, pendingActions: actions, outputs: { pageInfo: NO_OLDER, nodes: [] } };
}

export function task(given: Partial<Task> & { place: number }): Task {
  const at = new Date(Date.UTC(2026, 0, 10, 12, 0, given.place)).toISOString();
  return {
    id: `t${given.place}`,
    title: `task ${given.place}`,
    goal: 'Do it.',
    state: 'RUNNING',
    reason: null,
    active: true,
    run: 1,
    outputs: 0,
    changed: given.place,
    createdAt: at,
    changedAt: at,
    endedAt: null,
    ...given,
  };
}

export function action(given: Partial<Action> & { place: number }): Action {
  return {
    id: `a${given.place}`,
    taskId: 't1',
    taskTitle: 'task 1',
    kind: 'APPROVAL',
    state: 'PENDING',
    gate: 'EMAIL',
    tool: 'pa_email_send',
    target: 'kim@example.org',
    content: { to: ['kim@example.org'], subject: 'Numbers', body: 'Here they are.' },
    scope: null,
    validUntil: null,
    changed: given.place,
    ...given,
  };
}

export function entry(given: Partial<TaskEntry> & { place: number }): TaskEntry {
  return {
    id: `e${given.place}`,
    taskId: 't1',
    changed: given.place,
    kind: 'WORDS',
    origin: 'AGENT',
    status: 'POSTED',
    text: `entry ${given.place}`,
    length: 7,
    tool: null,
    action: null,
    code: null,
    cut: false,
    createdAt: new Date(Date.UTC(2026, 0, 10, 12, 0, given.place)).toISOString(),
    attachments: [],
    ...given,
  };
}

export function upsert(changed: Message, cursor: string | null = String(changed.changed)): Envelope {
  return { cursor, change: { __typename: 'MessageUpserted', message: changed } };
}

export function outcome(given: Partial<MessageOutcome>): MessageOutcome {
  return { decided: true, position: '1', message: null, userErrors: [], ...given };
}

export type Answer = { data: unknown } | { failure: RequestError['failure'] };

/** A server that answers each operation by what was told, and keeps what it was asked. */
export class FakeServer {
  readonly asked: Array<{ name: string; variables: unknown }> = [];
  readonly #answers = new Map<string, (variables: never) => Answer>([['Work', () => ({ data: workRead() })]]);

  on<Variables>(name: string, answer: (variables: Variables) => Answer): void {
    this.#answers.set(name, answer as (variables: never) => Answer);
  }

  request: Request = async (operation, variables) => {
    this.asked.push({ name: operation.name, variables });
    const answer = this.#answers.get(operation.name)?.(variables as never);
    if (!answer) throw new Error(`nobody told what ${operation.name} answers`);
    if ('failure' in answer) throw new RequestError(answer.failure, 'as told');
    return answer.data as never;
  };

  count(name: string): number {
    return this.asked.filter((asked) => asked.name === name).length;
  }
}

/** Links that open, bring and end as a test says. */
export class FakeLinks {
  readonly opened: Array<{ after: string | null; events: LinkEvents; closed: boolean }> = [];

  open: OpenLink = (after, events) => {
    const link = { after, events, closed: false };
    this.opened.push(link);
    return () => {
      link.closed = true;
    };
  };

  get newest(): { after: string | null; events: LinkEvents; closed: boolean } {
    const link = this.opened.at(-1);
    if (!link) throw new Error('no link was opened');
    return link;
  }
}
