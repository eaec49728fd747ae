/** A message that is on its way: what the owner sees between pressing Send and the decision. */
import type { ReactNode } from 'react';
import { canTakeBack, type OutboxEntry } from '../state/outbox';
import { useStore } from '../state/store';
import { useText } from '../text/text';
import { FileCards } from './FileCards';
import { usePage } from './context';
import { useEditAgain } from './drafts';
import { AlertIcon, ClockIcon } from './icons';

type Props = { entry: OutboxEntry; joined: boolean; drop: (requestKey: string) => void };

export function OutgoingBubble({ entry, joined, drop }: Props): ReactNode {
  const { t } = useText();
  const files = entry.attachments.map((file) => ({ ...file, url: `/files/${encodeURIComponent(file.id)}` }));
  return (
    <li className={`row owner outgoing ${joined ? 'joined' : ''}`}>
      <FileCards files={files} />
      <article className="message" data-message={entry.requestKey} data-testid="outgoing" data-status={entry.refused ? 'REFUSED' : 'SENDING'}>
        <span className="hidden">{t('message.fromYou')}: </span>
        {entry.text !== '' && <div className="bubble plain">{entry.text}</div>}
      </article>
      {entry.refused ? <Refused entry={entry} drop={drop} /> : <OnItsWay entry={entry} drop={drop} />}
    </li>
  );
}

function OnItsWay({ entry, drop }: { entry: OutboxEntry; drop: Props['drop'] }): ReactNode {
  const { t } = useText();
  const live = useStore(usePage().store, (state) => state.link.state === 'live');
  const editAgain = useEditAgain();
  const standing = live ? (entry.tries > 1 ? 'status.unconfirmed' : 'status.sending') : entry.tries > 0 ? 'status.unsure' : 'status.queued';
  return (
    <p className="under waiting" data-testid="status-sending">
      <ClockIcon />
      <span>{t(standing)}</span>
      {!live && canTakeBack(entry) && (
        <button type="button" className="link" onClick={() => (drop(entry.requestKey), editAgain(entry))}>
          {t('status.edit')}
        </button>
      )}
    </p>
  );
}

function Refused({ entry, drop }: { entry: OutboxEntry; drop: Props['drop'] }): ReactNode {
  const { t, problem } = useText();
  const { sender } = usePage();
  const editAgain = useEditAgain();
  return (
    <p className="under failed" data-testid="status-refused">
      <AlertIcon />
      <span>{t('status.refused', { reason: problem(entry.refused ?? '') })}</span>
      <button type="button" className="link" onClick={() => sender.sendAgain(entry)}>
        {t('status.retry')}
      </button>
      <button type="button" className="link" onClick={() => (drop(entry.requestKey), editAgain(entry))}>
        {t('status.edit')}
      </button>
      <button type="button" className="link" onClick={() => drop(entry.requestKey)}>
        {t('status.discard')}
      </button>
    </p>
  );
}
