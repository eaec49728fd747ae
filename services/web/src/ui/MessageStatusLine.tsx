/** What became of one message of the owner: each has its own state and its own way on. */
import type { ReactNode } from 'react';
import type { MessageRow } from '../state/rows';
import type { Message } from '../state/timeline';
import { useText } from '../text/text';
import { usePage } from './context';
import { AlertIcon, ClockIcon } from './icons';
import { useAction } from './problems';

export function MessageStatusLine({ row }: { row: MessageRow }): ReactNode {
  const { t } = useText();
  const { actions } = usePage();
  const { busy, act } = useAction();
  const { message } = row;
  const again = () => act(() => actions.retryMessage(message.id));
  if (message.status === 'PENDING' && !row.beingAnswered) {
    return (
      <p className="under waiting" data-testid="status-waiting">
        <ClockIcon />
        <span>{t('status.waiting')}</span>
        <button type="button" className="link" disabled={busy} onClick={() => act(() => actions.stopReply(message.id))}>
          {t('status.takeBack')}
        </button>
      </p>
    );
  }
  if (message.status === 'FAILED') {
    return (
      <p className="under failed" data-testid="status-failed">
        <AlertIcon />
        <span>{t('status.failed')}</span>
        <button type="button" className="link" disabled={busy} onClick={again} data-testid="retry">
          {t('status.retry')}
        </button>
      </p>
    );
  }
  if (message.status === 'STOPPED') return row.saidBelow ? null : <StoppedLine message={message} text={t('status.stopped')} again={t('status.answerAnyway')} />;
  if (row.answeredTogether) return <p className="under">{t('status.together')}</p>;
  return null;
}

/** That the owner stopped the reply to a message, and the way back. */
export function StoppedLine({ message, text, again }: { message: Message; text: string; again: string }): ReactNode {
  const { actions } = usePage();
  const { busy, act } = useAction();
  return (
    <p className="under" data-testid="status-stopped">
      <span>{text}</span>
      <button type="button" className="link" disabled={busy} onClick={() => act(() => actions.retryMessage(message.id))} data-testid="retry">
        {again}
      </button>
    </p>
  );
}
