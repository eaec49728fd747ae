/** One message: its bubble, its files, the copy button beside it, and what became of it. */
import { memo, type ReactNode } from 'react';
import type { MessageRow } from '../state/rows';
import type { Message } from '../state/timeline';
import { useText } from '../text/text';
import { FileCards } from './FileCards';
import { Markdown } from './Markdown';
import { MessageStatusLine, StoppedLine } from './MessageStatusLine';
import { useCopy } from './clipboard';
import { AlertIcon, CheckIcon, CopyIcon, ReplyIcon } from './icons';
import { useCalmText } from './useCalmText';

type Props = { row: MessageRow; draft: string | undefined };

export const MessageBubble = memo(
  function MessageBubble({ row, draft }: Props): ReactNode {
    const { message } = row;
    if (message.role === 'NOTICE') return <NoticeLine message={message} />;
    return message.role === 'AGENT' ? <AgentBubble row={row} draft={draft} /> : <PersonBubble row={row} />;
  },
  (before, after) =>
    before.draft === after.draft &&
    before.row.message === after.row.message &&
    before.row.joined === after.row.joined &&
    before.row.answers?.id === after.row.answers?.id &&
    before.row.beingAnswered === after.row.beingAnswered &&
    before.row.answeredTogether === after.row.answeredTogether &&
    before.row.saidBelow === after.row.saidBelow &&
    before.row.stopped?.id === after.row.stopped?.id,
);

function AgentBubble({ row, draft }: Props): ReactNode {
  const { t } = useText();
  const { message, joined, answers } = row;
  const writing = message.status === 'WRITING';
  const text = useCalmText(writing ? (draft ?? '') : message.text, writing);
  return (
    <li className={`row agent ${joined ? 'joined' : ''}`}>
      {answers && <Answers message={answers} />}
      <article className="message" data-message={message.id} data-testid="message" data-role={message.role} data-status={message.status} aria-busy={writing}>
        <span className="hidden">{t('message.fromAgent')}: </span>
        {(text !== '' || writing) && <div className={`bubble ${writing ? 'writing' : ''}`}>{text === '' ? <Dots /> : <Markdown text={text} />}</div>}
        {text !== '' && (
          <>
            <CopyButton text={text} />
            <WrittenAt message={message} />
          </>
        )}
      </article>
      <FileCards files={message.attachments} delivered />
      <ReplyEnd row={row} />
    </li>
  );
}

/** Why a reply ends where it does, if not by itself; said here and nowhere else. */
function ReplyEnd({ row: { message, stopped } }: { row: MessageRow }): ReactNode {
  const { t } = useText();
  if (stopped) return <StoppedLine message={stopped} text={t('message.stoppedReply')} again={t('status.answerAgain')} />;
  if (message.status === 'STOPPED') return <p className="under">{t('message.stoppedReply')}</p>;
  return message.incomplete ? <p className="under">{t('message.incomplete')}</p> : null;
}

function PersonBubble({ row }: { row: MessageRow }): ReactNode {
  const { t } = useText();
  const { message, joined } = row;
  return (
    <li className={`row owner ${joined ? 'joined' : ''}`}>
      <FileCards files={message.attachments} />
      <article className="message" data-message={message.id} data-testid="message" data-role={message.role} data-status={message.status}>
        <span className="hidden">{message.author ?? t('message.fromYou')}: </span>
        {message.text !== '' && (
          <>
            <WrittenAt message={message} />
            <div className="bubble plain">{message.text}</div>
            <CopyButton text={message.text} />
          </>
        )}
      </article>
      <MessageStatusLine row={row} />
    </li>
  );
}

/** Three dots while a reply is prepared. */
function Dots(): ReactNode {
  const { t } = useText();
  return (
    <span className="dots" data-testid="preparing" role="img" aria-label={t('message.preparing')}>
      <i />
      <i />
      <i />
    </span>
  );
}

/** Beside the bubble on the right, when it is pointed at or focused. */
function CopyButton({ text }: { text: string }): ReactNode {
  const { t } = useText();
  const { copied, copy } = useCopy();
  const label = t(copied ? 'message.copied' : 'message.copy');
  return (
    <span className="beside">
      <button type="button" className="icon-button small" aria-label={label} title={label} onClick={() => copy(text)} data-testid="copy">
        {copied ? <CheckIcon /> : <CopyIcon />}
      </button>
    </span>
  );
}

function WrittenAt({ message }: { message: Message }): ReactNode {
  const { clock } = useText();
  return (
    <span className="beside">
      <time dateTime={message.createdAt}>{clock(new Date(message.createdAt))}</time>
    </span>
  );
}

/** Which message a reply answers, where another one stands between them. */
function Answers({ message }: { message: Message }): ReactNode {
  const { t } = useText();
  const text = message.text || message.attachments[0]?.name || t('message.files');
  return (
    <p className="answers">
      <ReplyIcon />
      <span>{t('message.replyingTo', { text: excerpt(text) })}</span>
    </p>
  );
}

const EXCERPT_CHARACTERS = 60;

function excerpt(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const characters = [...line];
  return characters.length > EXCERPT_CHARACTERS ? `${characters.slice(0, EXCERPT_CHARACTERS).join('')}…` : line;
}

function NoticeLine({ message }: { message: Message }): ReactNode {
  const { notice } = useText();
  return (
    <li className="row notice">
      <p className="notice-line" data-message={message.id} data-testid="notice" data-code={message.notice?.code}>
        <AlertIcon />
        <span>{notice(message.notice?.code ?? '', message.notice?.params ?? [])}</span>
      </p>
    </li>
  );
}
