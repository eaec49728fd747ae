/** The upper end of what is loaded: more by itself when it comes into view, or by a button. */
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useStore } from '../state/store';
import type { Timeline } from '../state/timeline';
import { useText } from '../text/text';
import { usePage } from './context';

/** Loading begins before the end is reached, so that the reader rarely sees it. */
const AHEAD = '400px 0px 0px 0px';

export function Older({ timeline }: { timeline: Timeline }): ReactNode {
  const { t } = useText();
  const { store, session } = usePage();
  const loading = useStore(store, (state) => state.loadingOlder);
  // After a failure only the button, or a new link, tries again.
  const live = useStore(store, (state) => state.link.state === 'live');
  const [failed, setFailed] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const { olderCursor } = timeline;

  useEffect(() => setFailed(false), [live]);
  useEffect(() => {
    const target = button.current;
    if (!target || loading || failed || !live) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) void session.loadOlder().then((loaded) => setFailed(!loaded));
      },
      { root: target.closest('.scroll'), rootMargin: AHEAD },
    );
    observer.observe(target);
    return () => observer.disconnect();
  }, [session, loading, failed, live, olderCursor]);

  if (olderCursor === null) return <p className="older beginning">{t('conversation.beginning')}</p>;
  return (
    <div className="older">
      <button ref={button} type="button" className="button quiet" disabled={loading} onClick={() => void session.loadOlder()} data-testid="load-older">
        {t(loading ? 'conversation.loadingOlder' : 'conversation.older')}
      </button>
    </div>
  );
}
