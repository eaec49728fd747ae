/** The conversation: messages that scroll, and below them what the agent does now, the state of the link, and the composer. */
import { useMemo, type ReactNode } from 'react';
import { unarrived } from '../state/outbox';
import { rowsOf, type Row } from '../state/rows';
import { useStore } from '../state/store';
import { writingReply, type Timeline } from '../state/timeline';
import { useText } from '../text/text';
import { Announcer } from './Announcer';
import { Composer } from './Composer';
import { EmptyConversation } from './EmptyConversation';
import { ConversationNote, LinkNote } from './Notes';
import { MessageBubble } from './MessageBubble';
import { OutgoingBubble } from './OutgoingBubble';
import { NeedsBar } from './NeedsBar';
import { Older } from './Older';
import { usePage } from './context';
import { DownIcon } from './icons';
import { useFollowing } from './useFollowing';
import { useRovingFocus } from './useRovingFocus';

export function Conversation(): ReactNode {
  const { store } = usePage();
  const timeline = useStore(store, (state) => state.timeline);
  const link = useStore(store, (state) => state.link.state);
  if (!timeline) return null;
  return (
    <>
      <main className="stage">
        <ConversationNote />
        <Messages timeline={timeline} />
        <div className="dock">
          <div className="dock-inner">
            <p className="step" data-testid="step" role="status">
              {link === 'live' && timeline.step !== null && writingReply(timeline) && <StepLine code={timeline.step} />}
            </p>
            <NeedsBar />
            <LinkNote />
            <Composer />
          </div>
        </div>
      </main>
      <Announcer timeline={timeline} />
    </>
  );
}

function StepLine({ code }: { code: string }): ReactNode {
  const { step } = useText();
  return (
    <>
      <span className="step-mark" aria-hidden="true" />
      {step(code)}
    </>
  );
}

function Messages({ timeline }: { timeline: Timeline }): ReactNode {
  const { t, timeZone } = useText();
  const { store, sender } = usePage();
  const outbox = useStore(store, (state) => state.outbox);
  const outgoing = useMemo(() => unarrived(outbox, timeline.messages), [outbox, timeline.messages]);
  const rows = useMemo(() => rowsOf(timeline.messages, outgoing, timeZone), [timeline.messages, outgoing, timeZone]);
  const following = useFollowing(timeline, outgoing);
  const roving = useRovingFocus();
  return (
    <div className="scroll-frame">
      <div className="scroll" ref={following.scroller} onScroll={following.onScroll} data-testid="messages">
        {rows.length === 0 ? (
          <EmptyConversation />
        ) : (
          <>
            <Older timeline={timeline} />
            <ol className="messages" aria-label={t('conversation.label')} {...roving}>
              {rows.map((row) => (
                <RowItem key={row.key} row={row} draft={row.kind === 'message' ? timeline.drafts[row.message.id]?.text : undefined} sender={sender} />
              ))}
            </ol>
          </>
        )}
      </div>
      {!following.atBottom && <ToNewest unread={following.unread} onClick={following.toBottom} />}
    </div>
  );
}

function RowItem({ row, draft, sender }: { row: Row; draft: string | undefined; sender: { drop: (key: string) => void } }): ReactNode {
  switch (row.kind) {
    case 'day':
      return <DayLine at={row.at} />;
    case 'message':
      return <MessageBubble row={row} draft={draft} />;
    case 'outgoing':
      return <OutgoingBubble entry={row.entry} joined={row.joined} drop={sender.drop.bind(sender)} />;
  }
}

function DayLine({ at }: { at: Date }): ReactNode {
  const { day } = useText();
  return (
    <li className="day-line">
      <span>{day(at, new Date())}</span>
    </li>
  );
}

function ToNewest({ unread, onClick }: { unread: number; onClick: () => void }): ReactNode {
  const { t, count } = useText();
  const label = unread > 0 ? count('conversation.newBelow', unread) : t('conversation.toNewest');
  return (
    <button type="button" className={`to-newest ${unread > 0 ? 'fresh' : ''}`} onClick={onClick} aria-label={label}>
      <DownIcon />
      {unread > 0 && <span>{label}</span>}
    </button>
  );
}
