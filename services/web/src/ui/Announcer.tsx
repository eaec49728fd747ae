/** Reads finished replies and notices to screen readers, once each; pieces of a reply are not read. */
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { isFromAgent, newestChange, type Timeline } from '../state/timeline';
import { useText } from '../text/text';

/** Enough to know what came; the whole text stands in the conversation. */
const READ_CHARACTERS = 400;

export function Announcer({ timeline }: { timeline: Timeline }): ReactNode {
  const { t, notice } = useText();
  const [said, setSaid] = useState('');
  const saidThrough = useRef(newestChange(timeline.messages));
  useEffect(() => {
    const fresh = timeline.messages.filter((message) => isFromAgent(message) && message.status === 'POSTED' && message.changed > saidThrough.current);
    saidThrough.current = Math.max(saidThrough.current, newestChange(timeline.messages));
    const newest = fresh.at(-1);
    if (!newest) return;
    const words = newest.notice ? notice(newest.notice.code, newest.notice.params) : newest.text;
    setSaid(`${t('message.fromAgent')}: ${words.slice(0, READ_CHARACTERS)}`);
  }, [timeline.messages, t, notice]);
  return (
    <p className="hidden" aria-live="polite" data-testid="announcer">
      {said}
    </p>
  );
}
