/** Short, honest notes: the connection is lost, or no real model is connected. */
import { useEffect, useState, type ReactNode } from 'react';
import { useStore } from '../state/store';
import { useText } from '../text/text';
import { useRehearsal } from './Bar';
import { usePage } from './context';
import { CloseIcon, OfflineIcon } from './icons';

/** A gap shorter than this is not worth a note. */
const QUIET_MS = 1_500;
const DISMISSED_KEY = 'pa.rehearsal-note';

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
          <button type="button" className="link" disabled={!link.waiting} onClick={() => session.wake()}>
            {t(link.waiting ? 'link.retry' : 'link.trying')}
          </button>
        </p>
      )}
    </div>
  );
}

export function RehearsalNote(): ReactNode {
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
    <aside className="rehearsal-note" data-testid="rehearsal-note">
      <p>
        {t('rehearsal.lead')} <span className="rehearsal-how">{t('rehearsal.how')}</span>
      </p>
      <button type="button" className="icon-button small" aria-label={t('rehearsal.dismiss')} title={t('rehearsal.dismiss')} onClick={dismiss}>
        <CloseIcon />
      </button>
    </aside>
  );
}
