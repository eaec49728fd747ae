/** Reads finished replies and notices to screen readers, once each; pieces of a reply are not read. */
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { isFromAgent, newestChange, type Timeline } from '../state/timeline';
import { spoken } from '../text/spoken';
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
    const words = newest.notice ? notice(newest.notice.code, newest.notice.params) : spoken(newest.text);
    setSaid(`${t('message.fromAgent')}: ${beginning(words)}`);
  }, [timeline.messages, t, notice]);
  return (
    <p className="hidden" aria-live="polite" data-testid="announcer">
      {said}
    </p>
  );
}

/** As many whole words as are read. */
function beginning(words: string): string {
  if (words.length <= READ_CHARACTERS) return words;
  const cut = words.slice(0, READ_CHARACTERS);
  // Chinese has no spaces: there any character ends a word.
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), cut.lastIndexOf('\n'), READ_CHARACTERS - 30))}…`;
}
