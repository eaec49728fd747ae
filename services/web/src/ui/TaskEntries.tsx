/** What happened in a task, from top to bottom in the order in which it was admitted. */
import { memo, useState, type ReactNode } from 'react';
import type { OpenTask, TaskEntry } from '../state/work';
import { useText } from '../text/text';
import { FileCards } from './FileCards';
import { Markdown } from './Markdown';
import { usePage } from './context';

export function TaskEntries({ open }: { open: OpenTask }): ReactNode {
  const { t } = useText();
  const { tasks } = usePage();
  if (open.entries.length === 0) return null;
  return (
    <section className="task-entries" aria-label={t('task.entries')}>
      {open.olderCursor !== null && (
        <button type="button" className="button quiet" disabled={open.loadingOlder} onClick={() => void tasks.older()} data-testid="older-entries">
          {t(open.loadingOlder ? 'task.loading' : 'task.older')}
        </button>
      )}
      <ol>
        {open.entries.map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
      </ol>
    </section>
  );
}

const Entry = memo(function Entry({ entry }: { entry: TaskEntry }): ReactNode {
  const { t, coded, clock } = useText();
  const props = { className: `entry ${entry.kind.toLowerCase()}`, 'data-testid': 'entry', 'data-entry': entry.id, 'data-kind': entry.kind, 'data-status': entry.status };
  switch (entry.kind) {
    case 'GOAL':
    case 'INSTRUCTION':
      return (
        <li {...props}>
          <EntryHead label={t(`entry.${entry.kind}`)} entry={entry} />
          <div className="bubble plain">
            <Whole entry={entry}>{(text) => text}</Whole>
          </div>
          <FileCards files={entry.attachments} />
        </li>
      );
    case 'WORDS':
      return (
        <li {...props}>
          <span className="hidden">{t('entry.fromAgent')}: </span>
          <Whole entry={entry}>{(text) => <Markdown text={text} />}</Whole>
        </li>
      );
    case 'CHECKPOINT':
      return (
        <li {...props}>
          <details>
            <summary>{t('entry.CHECKPOINT')}</summary>
            <pre>
              <Whole entry={entry}>{(text) => text}</Whole>
            </pre>
          </details>
        </li>
      );
    case 'OUTPUT':
      return (
        <li {...props}>
          <EntryHead label={t('entry.OUTPUT')} entry={entry} />
          {entry.text !== '' && <p>{entry.text}</p>}
          <FileCards files={entry.attachments} delivered />
        </li>
      );
    case 'RESULT':
      return (
        <li {...props}>
          <EntryHead label={t('entry.RESULT')} entry={entry} />
          <Whole entry={entry}>{(text) => <Markdown text={text} />}</Whole>
        </li>
      );
    case 'FAILURE':
      return (
        <li {...props}>
          <p>{t(entry.text === '' ? 'entry.failureNothing' : 'entry.FAILURE')}</p>
          {entry.text !== '' && <Whole entry={entry}>{(text) => <Markdown text={text} />}</Whole>}
        </li>
      );
    case 'EVENT':
      return (
        <li {...props}>
          <span>{coded('entry.event', entry.code ?? '', 'entry.event.unknown')}</span> <time dateTime={entry.createdAt}>{clock(new Date(entry.createdAt))}</time>
        </li>
      );
    case 'TOOL':
      return (
        <li {...props}>
          <ToolCall entry={entry} />
        </li>
      );
  }
});

function EntryHead({ label, entry }: { label: string; entry: TaskEntry }): ReactNode {
  const { t, clock } = useText();
  return (
    <p className="entry-head">
      <b>{label}</b>
      {entry.kind === 'INSTRUCTION' && <span>{t(entry.origin === 'OWNER' ? 'entry.fromOwner' : 'entry.fromAgent')}</span>}
      <time dateTime={entry.createdAt}>{clock(new Date(entry.createdAt))}</time>
    </p>
  );
}

/** A tool call: what it was and how it ended; what was asked and what came back at a press. */
function ToolCall({ entry }: { entry: TaskEntry }): ReactNode {
  const { t, coded } = useText();
  const why = entry.code === null ? null : wordFor(coded, entry);
  return (
    <details className="call">
      <summary>
        <span className={`call-mark ${entry.status.toLowerCase()}`} aria-hidden="true" />
        <span className="call-name">{coded('tool', entry.tool ?? '', 'tool.unknown')}</span>
        <span className="call-status">{t(`call.${entry.status}`)}</span>
      </summary>
      <div className="call-body">
        {why !== null && why !== '' && <p>{why}</p>}
        {entry.action !== null && (
          <>
            <h4>{t('entry.action')}</h4>
            <pre>{pretty(entry.action)}</pre>
          </>
        )}
        {(entry.status === 'RETURNED' || entry.status === 'FAILED' || entry.text !== '') && (
          <>
            <h4>{t('entry.result')}</h4>
            {entry.text === '' ? (
              <p className="hint">{t('entry.nothing')}</p>
            ) : (
              <pre>
                <Whole entry={entry}>{(text) => text}</Whole>
              </pre>
            )}
            {entry.cut && <p className="hint">{t('entry.cut')}</p>}
          </>
        )}
      </div>
    </details>
  );
}

/** Why it was skipped, or what became of it; a failure's own code is for the model, and what came back says it in words. */
function wordFor(coded: (family: string, code: string, otherwise: 'call.SKIPPED' | 'call.RECONCILED') => string, entry: TaskEntry): string | null {
  if (entry.status === 'SKIPPED') return coded('call.skip', entry.code ?? '', 'call.SKIPPED');
  if (entry.status === 'RECONCILED') return coded('call', entry.code ?? '', 'call.RECONCILED');
  return null;
}

/** A text of which only the beginning may be loaded, with the way to all of it. */
function Whole({ entry, children }: { entry: TaskEntry; children: (text: string) => ReactNode }): ReactNode {
  const { t } = useText();
  const { tasks } = usePage();
  const [whole, setWhole] = useState<{ changed: number; text: string } | null>(null);
  const loaded = whole?.changed === entry.changed ? whole.text : null;
  const isCut = loaded === null && [...entry.text].length < entry.length;
  const load = () => {
    void tasks.whole(entry.id).then((text) => text !== null && setWhole({ changed: entry.changed, text }));
  };
  return (
    <>
      {children(loaded ?? entry.text)}
      {isCut && (
        <>
          {'… '}
          <button type="button" className="link" onClick={load} data-testid="show-all">
            {t('entry.showAll')}
          </button>
        </>
      )}
    </>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // not JSON after all: shown as it is
  }
}
