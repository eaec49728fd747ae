/**
 * Everything that the page shows, and how each thing that happens changes it. Pure: no clock, no network, no storage.
 *
 * Invariant: `receive` applied twice to the same envelope changes nothing the second time.
 */
import type { BootData, FoldedAnewFields, IndicatorFields, SettingsFields, WorkData } from '../api/generated';
import type { Envelope } from '../api/live';
import type { OutboxEntry } from './outbox';
import { withMessage, withReplyPiece, withStep, timelineOf, type Message, type Page, type Timeline } from './timeline';
import { noWork, withAction, withOutput, withTask, withTaskEntry, workOf, type Seen, type Work } from './work';

/**
 * `starting` nothing is loaded yet · `unreachable` nothing is loaded and nobody answers · `signedOut` a sign-in is needed ·
 * `outdated` the server does not understand this page · `foreign` it does not take the page's address for its own ·
 * `ready` the conversation is loaded.
 */
export type Phase = 'starting' | 'unreachable' | 'signedOut' | 'outdated' | 'foreign' | 'ready';

/**
 * `opening` until the first link stands; `lost` from its end until the next one stands. While it is lost, `waiting` says that
 * the next try has not begun, and `reachable` that plain requests are answered all the same.
 */
export type Link = { state: 'opening' | 'live' } | { state: 'lost'; waiting: boolean; reachable: boolean };

export type Settings = SettingsFields;
export type Viewer = BootData['viewer'];

export type State = {
  phase: Phase;
  viewer: Viewer | null;
  settings: Settings | null;
  indicator: IndicatorFields | null;
  model: BootData['system']['model'] | null;
  /** When all that is shown was last read anew from a changed log. */
  foldedAnew: FoldedAnewFields | null;
  timeline: Timeline | null;
  work: Work;
  /** Where the next subscription continues. */
  cursor: string | null;
  link: Link;
  loadingOlder: boolean;
  outbox: readonly OutboxEntry[];
  /** Up to where the owner has read, as a number that only grows; null until it is known. */
  readThrough: number | null;
  /** Which results and failures the owner has seen; null until it is known. */
  seen: Seen | null;
};

export const initialState: State = {
  phase: 'starting',
  viewer: null,
  settings: null,
  indicator: null,
  model: null,
  foldedAnew: null,
  timeline: null,
  work: noWork,
  cursor: null,
  link: { state: 'opening' },
  loadingOlder: false,
  outbox: [],
  readThrough: null,
  seen: null,
};

/** Takes a whole fresh reading in: at the start, and after a resync. */
export function loaded(state: State, boot: BootData, page: Page, work: WorkData): State {
  return {
    ...state,
    phase: 'ready',
    viewer: boot.viewer,
    settings: newerSettings(state.settings, boot.settings, state.viewer?.account === boot.viewer.account),
    indicator: boot.indicator,
    model: boot.system.model,
    foldedAnew: boot.system.foldedAnew,
    timeline: timelineOf(page),
    work: workOf(work, state.work),
    cursor: boot.agent.position,
    loadingOlder: false,
  };
}

/** Takes one update in. A `Resync` changes nothing here: whoever holds the link reads everything afresh. */
export function receive(state: State, envelope: Envelope): State {
  const cursor = envelope.cursor ?? state.cursor;
  const changed = withChange(state, envelope.change);
  return cursor === changed.cursor ? changed : { ...changed, cursor };
}

function withChange(state: State, change: Envelope['change']): State {
  const { timeline } = state;
  switch (change.__typename) {
    case 'MessageUpserted':
      return withTimeline(state, timeline && withMessage(timeline, change.message));
    case 'ReplyPiece':
      return withTimeline(state, timeline && withReplyPiece(timeline, change));
    case 'StepNamed':
      return withTimeline(state, timeline && withStep(timeline, change.conversationId, change.step));
    case 'SettingsUpserted':
      return withSettings(state, change.settings);
    case 'IndicatorChanged':
      return sameIndicator(state.indicator, change.indicator) ? state : { ...state, indicator: change.indicator };
    case 'TaskUpserted':
      return withWork(state, withTask(state.work, change.task));
    case 'TaskEntryUpserted':
      return withWork(state, withTaskEntry(state.work, change.entry));
    case 'ActionUpserted':
      return withWork(state, withAction(state.work, change.action));
    case 'OutputUpserted':
      return withWork(state, withOutput(state.work, change.output));
    case 'ConversationUpserted':
    case 'Resync':
      return state;
  }
}

export function withWork(state: State, work: Work): State {
  return work === state.work ? state : { ...state, work };
}

/** What was seen never becomes less. */
export function withSeen(state: State, seen: Seen): State {
  const before = state.seen ?? { result: 0, failure: 0 };
  const next = { result: Math.max(before.result, seen.result), failure: Math.max(before.failure, seen.failure) };
  return state.seen && next.result === before.result && next.failure === before.failure ? state : { ...state, seen: next };
}

function sameIndicator(a: IndicatorFields | null, b: IndicatorFields): boolean {
  return a !== null && JSON.stringify(a) === JSON.stringify(b);
}

export function withTimeline(state: State, timeline: Timeline | null): State {
  return timeline === state.timeline ? state : { ...state, timeline };
}

/** Takes a message in that a mutation answered with. */
export function withAnsweredMessage(state: State, message: Message): State {
  return withTimeline(state, state.timeline && withMessage(state.timeline, message));
}

export function withSettings(state: State, settings: Settings): State {
  const newer = newerSettings(state.settings, settings, true);
  return newer === state.settings ? state : { ...state, settings: newer };
}

/** The link ended: what only a live link can know is no longer shown. */
export function linkLost(state: State, reachable: boolean): State {
  const timeline = state.timeline && state.timeline.step !== null ? { ...state.timeline, step: null } : state.timeline;
  return { ...state, timeline, link: { state: 'lost', waiting: true, reachable } };
}

/** What was read never becomes less. */
export function withReadThrough(state: State, readThrough: number): State {
  return state.readThrough !== null && state.readThrough >= readThrough ? state : { ...state, readThrough };
}

function newerSettings(known: Settings | null, next: Settings, sameAccount: boolean): Settings {
  return known && sameAccount && known.version > next.version ? known : next;
}
