/** Tasks and outputs: beside the conversation where there is room, in a panel elsewhere. Shown once there is something to show. */
import { useState, type ReactNode } from 'react';
import { useStore } from '../state/store';
import { inOrderOfInterest, isEnded, type Output } from '../state/work';
import { useText } from '../text/text';
import { FileItem } from './FileCards';
import { Panel } from './Panel';
import { TaskRow } from './TaskRow';
import { usePage } from './context';

/** Ended tasks that are listed at once; the rest at a press. */
const ENDED_SHOWN = 8;
const OUTPUTS_SHOWN = 6;

export function WorkAside(): ReactNode {
  const { t } = useText();
  return (
    <aside className="side" aria-label={t('work.title')} data-testid="work">
      <WorkList />
    </aside>
  );
}

export function WorkPanel({ close }: { close: () => void }): ReactNode {
  const { t } = useText();
  return (
    <Panel title={t('work.title')} testId="work" close={close}>
      <WorkList />
    </Panel>
  );
}

function WorkList(): ReactNode {
  return (
    <>
      <Tasks />
      <Outputs />
    </>
  );
}

function Tasks(): ReactNode {
  const { t } = useText();
  const { store, tasks: reader } = usePage();
  const tasks = useStore(store, (state) => state.work.tasks);
  const older = useStore(store, (state) => state.work.olderTasks !== null);
  const [all, setAll] = useState(false);
  if (tasks.length === 0) return null;
  const ordered = inOrderOfInterest(tasks);
  const open = ordered.filter((task) => !isEnded(task));
  const ended = ordered.slice(open.length);
  const shown = all ? ended : ended.slice(0, ENDED_SHOWN);
  return (
    <section className="side-section">
      <h2>{t('work.tasks')}</h2>
      <ul className="task-rows">
        {[...open, ...shown].map((task) => (
          <TaskRow key={task.id} task={task} />
        ))}
      </ul>
      {shown.length < ended.length ? (
        <button type="button" className="link" onClick={() => setAll(true)}>
          {t('work.showAll', { count: tasks.length })}
        </button>
      ) : (
        older && (
          <button type="button" className="link" onClick={() => void reader.olderTasks()}>
            {t('work.older')}
          </button>
        )
      )}
    </section>
  );
}

function Outputs(): ReactNode {
  const { t } = useText();
  const { store, tasks: reader } = usePage();
  const outputs = useStore(store, (state) => state.work.outputs);
  const older = useStore(store, (state) => state.work.olderOutputs !== null);
  const [all, setAll] = useState(false);
  if (outputs.length === 0) return null;
  const newest = [...outputs].reverse();
  const shown = all ? newest : newest.slice(0, OUTPUTS_SHOWN);
  return (
    <section className="side-section" data-testid="outputs">
      <h2>{t('work.outputs')}</h2>
      <ul className="outputs">
        {shown.map((output) => (
          <OutputRow key={output.id} output={output} />
        ))}
      </ul>
      {shown.length < newest.length ? (
        <button type="button" className="link" onClick={() => setAll(true)}>
          {t('work.showAll', { count: outputs.length })}
        </button>
      ) : (
        older && (
          <button type="button" className="link" onClick={() => void reader.olderOutputs()}>
            {t('work.older')}
          </button>
        )
      )}
    </section>
  );
}

function OutputRow({ output }: { output: Output }): ReactNode {
  const { day } = useText();
  const { tasks } = usePage();
  return (
    <li data-testid="output" data-output={output.id}>
      <FileItem file={output.file} small delivered />
      <p className="output-from">
        <button type="button" className="link" onClick={() => tasks.open(output.taskId)}>
          {output.taskTitle}
        </button>
        <span>{day(new Date(output.createdAt), new Date())}</span>
      </p>
    </li>
  );
}
