/** Short, honest notes: the connection is lost, no real model is connected, or what is shown was read anew. */
import { useEffect, useState, type ReactNode } from 'react';
import { useStore } from '../state/store';
import { useText } from '../text/text';
import { useRehearsal } from './Bar';
import { usePage } from './context';
import { CloseIcon, OfflineIcon } from './icons';

/** A gap shorter than this is not worth a note. */
const QUIET_MS = 1_500;
const DISMISSED_KEY = 'pa.rehearsal-note';
const FOLDED_DISMISSED_KEY = 'pa.folded-anew-note';

export function LinkNote(): ReactNode {
  const { t } = useText();
  const { store, session } = usePage();
  const link = useStore(store, (state) => state.link);
  const lost = link.state === 'lost';
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!lost) {
      setShown(false);
      return;
    }
    const timer = setTimeout(() => setShown(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, [lost]);
  return (
    <div role="status">
      {shown && lost && (
        <p className="link-note" data-testid="link-note">
          <OfflineIcon />
          <span>
            <b>{t(navigator.onLine ? 'link.lost' : 'link.offline')}</b> {t('link.draftsKept')}
          </span>
          <button type="button" className="link" disabled={!link.waiting} onClick={() => void session.wake()}>
            {t(link.waiting ? 'link.retry' : 'link.trying')}
          </button>
        </p>
      )}
    </div>
  );
}

/** That all was read anew from a log which is not the one it was made of before, so that something may be missing; or else that no real model answers. */
export function ConversationNote(): ReactNode {
  const { t, day } = useText();
  const { store, storage } = usePage();
  const foldedAnew = useStore(store, (state) => state.foldedAnew);
  const [dismissed, setDismissed] = useState(() => storage.read(FOLDED_DISMISSED_KEY));
  // One note at a time leaves room for the conversation; this one is the graver.
  if (!foldedAnew || dismissed === foldedAnew.at) return <RehearsalNote />;
  const dismiss = () => {
    storage.write(FOLDED_DISMISSED_KEY, foldedAnew.at);
    setDismissed(foldedAnew.at);
  };
  return (
    <aside className="note-bar" data-testid="folded-anew-note">
      <p>
        <b>{t('foldedAnew.title', { day: day(new Date(foldedAnew.at), new Date()) })}</b> {t('foldedAnew.lead')}
      </p>
      <button type="button" className="icon-button small" aria-label={t('foldedAnew.dismiss')} title={t('foldedAnew.dismiss')} onClick={dismiss}>
        <CloseIcon />
      </button>
    </aside>
  );
}

function RehearsalNote(): ReactNode {
  const { t } = useText();
  const { storage } = usePage();
  const rehearsal = useRehearsal();
  const [dismissed, setDismissed] = useState(() => storage.read(DISMISSED_KEY) !== null);
  if (!rehearsal || dismissed) return null;
  const dismiss = () => {
    storage.write(DISMISSED_KEY, '1');
    setDismissed(true);
  };
  return (
    <aside className="note-bar" data-testid="rehearsal-note">
      <p>
        {t('rehearsal.lead')} <span className="rehearsal-how">{t('rehearsal.how')}</span>
      </p>
      <button type="button" className="icon-button small" aria-label={t('rehearsal.dismiss')} title={t('rehearsal.dismiss')} onClick={dismiss}>
        <CloseIcon />
      </button>
    </aside>
  );
}
