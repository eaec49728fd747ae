/** A task's details: what it is for, how it stands, and everything that happened, in order. Read only: it is changed in the conversation. */
import { useEffect, type ReactNode } from 'react';
import { useStore } from '../state/store';
import { isEnded, type OpenTask, type Task, type Usage } from '../state/work';
import { useText } from '../text/text';
import { Panel } from './Panel';
import { TaskEntries } from './TaskEntries';
import { asksForOwner, Standing, TaskMark } from './TaskRow';
import { usePage } from './context';
import { useEditAgain } from './drafts';
import { useAction } from './problems';

export function TaskPanel({ open, leave }: { open: OpenTask; leave: () => void }): ReactNode {
  const { t } = useText();
  const { store, tasks, markFailureSeen } = usePage();
  const task = useStore(store, (state) => state.work.tasks.find(({ id }) => id === open.id) ?? null);
  const failure = useStore(store, (state) => state.indicator?.lastFailure?.position ?? null);
  const failed = task?.state === 'FAILED';
  useEffect(() => {
    if (failed) markFailureSeen(open.id);
  }, [failed, failure, open.id, markFailureSeen]);
  return (
    <Panel title={task?.title ?? t('task.loading')} testId="task" close={() => tasks.close()} wide>
      {task && <TaskHead task={task} leave={leave} />}
      {open.reading === 'gone' && <p role="alert">{t('task.gone')}</p>}
      {open.reading === 'failed' && (
        <p role="alert" className="task-unread">
          {t('task.failed')}{' '}
          <button type="button" className="link" onClick={() => void tasks.read()}>
            {t('task.retry')}
          </button>
        </p>
      )}
      {open.reading === 'reading' && open.entries.length === 0 && <p role="status">{t('task.loading')}</p>}
      <TaskEntries open={open} />
      {open.usage && open.usage.steps > 0 && <Used usage={open.usage} />}
    </Panel>
  );
}

function TaskHead({ task, leave }: { task: Task; leave: () => void }): ReactNode {
  const { t } = useText();
  const { actions, tasks } = usePage();
  const { busy, act } = useAction();
  const editAgain = useEditAgain();
  const ended = isEnded(task);
  // Cards and unknown effects are not overridden: what a task waits for it still waits for.
  const resumes = task.state === 'PAUSED' || (task.state === 'WAITING' && task.reason === 'NOTICE') || task.state === 'STOPPED' || task.state === 'FAILED';
  const pauses = task.state === 'RUNNING' || task.state === 'QUEUED' || (task.state === 'WAITING' && task.reason !== 'NOTICE');
  const say = () => {
    leave();
    tasks.close();
    // The composer takes the focus once nothing covers it any more.
    setTimeout(() => editAgain({ text: t('task.sayDraft', { title: task.title }), attachments: [] }));
  };
  return (
    <div className="task-head" data-testid="task-head" data-state={task.state}>
      <p className={`task-standing ${asksForOwner(task) ? 'asks' : ''}`}>
        <TaskMark task={task} />
        <span>
          <Standing task={task} />
          {task.run > 1 && <small> · {t('task.runs', { count: task.run })}</small>}
        </span>
      </p>
      <div className="task-verbs">
        {pauses && (
          <button type="button" className="button quiet" disabled={busy} onClick={() => act(() => actions.pauseTask(task.id))} data-testid="pause">
            {t('task.verb.pause')}
          </button>
        )}
        {resumes && (
          <button type="button" className="button quiet" disabled={busy} onClick={() => act(() => actions.resumeTask(task.id))} data-testid="resume">
            {t('task.verb.resume')}
          </button>
        )}
        {!ended && (
          <button type="button" className="button quiet" disabled={busy} onClick={() => act(() => actions.stopTask(task.id))} data-testid="stop-task">
            {t('task.verb.stop')}
          </button>
        )}
        <button type="button" className="button quiet" onClick={say} data-testid="say">
          {t('task.say')}
        </button>
      </div>
    </div>
  );
}

/** What the models used. What is not known is said to be so, and is never 0. */
function Used({ usage }: { usage: Usage }): ReactNode {
  const { t, number, money } = useText();
  const facts = [
    t('task.usageSteps', { count: number(usage.steps) }),
    usage.uncountedSteps < usage.steps ? t('task.usageTokens', { input: number(usage.inputTokens), output: number(usage.outputTokens) }) : null,
    usage.uncountedSteps > 0 ? t('task.usageUncounted', { count: number(usage.uncountedSteps) }) : null,
    ...usage.costs.map(({ micros, currency }) => money(micros, currency)),
    usage.unpricedSteps > 0 ? t('task.usageUnpriced', { count: number(usage.unpricedSteps) }) : null,
  ].filter((fact) => fact !== null);
  return (
    <section className="task-usage" aria-label={t('task.usage')}>
      <h3>{t('task.usage')}</h3>
      <p>{facts.join(' · ')}</p>
    </section>
  );
}
