/** What became of one message of the owner: each has its own state and its own way on. */
import type { ReactNode } from 'react';
import type { MessageRow } from '../state/rows';
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
  if (message.status === 'STOPPED') {
    return (
      <p className="under" data-testid="status-stopped">
        <span>{t('status.stopped')}</span>
        <button type="button" className="link" disabled={busy} onClick={again} data-testid="retry">
          {t('status.answerAnyway')}
        </button>
      </p>
    );
  }
  if (row.answeredTogether) return <p className="under">{t('status.together')}</p>;
  return null;
}
