/** One task in a list: how it stands, a press opens it, and a stop at its end as long as it has not ended. */
import type { ReactNode } from 'react';
import { isEnded, type Task } from '../state/work';
import { useText } from '../text/text';
import { usePage } from './context';
import { AlertIcon, CheckIcon, ClockIcon, PauseIcon, StopIcon } from './icons';
import { useAction } from './problems';

export function TaskRow({ task }: { task: Task }): ReactNode {
  const { t } = useText();
  const { tasks, actions } = usePage();
  const { busy, act } = useAction();
  return (
    <li className="task-row" data-testid="task-row" data-task={task.id} data-state={task.state}>
      <button type="button" className="task-row-open" aria-label={t('task.open', { title: task.title })} onClick={() => tasks.open(task.id)}>
        <TaskMark task={task} />
        <span className="task-row-text">
          <b>{task.title}</b>
          <small>
            <Standing task={task} />
          </small>
        </span>
      </button>
      {!isEnded(task) && (
        <button
          type="button"
          className="icon-button small task-row-stop"
          aria-label={t('task.stop', { title: task.title })}
          title={t('task.verb.stop')}
          disabled={busy}
          onClick={() => act(() => actions.stopTask(task.id))}
          data-testid="task-stop"
        >
          <StopIcon />
        </button>
      )}
    </li>
  );
}

/** Whether the task goes on only with the owner. */
export function asksForOwner(task: Task): boolean {
  return (task.state === 'WAITING' && task.reason !== 'DESKTOP') || (task.state === 'PAUSED' && task.reason === 'OUTPUT_LOOPED');
}

/** A sign for the state; the words beside it say the same. */
export function TaskMark({ task }: { task: Task }): ReactNode {
  const asks = asksForOwner(task);
  return (
    <span className={`task-mark ${task.state.toLowerCase()} ${asks ? 'asks' : ''}`} aria-hidden="true">
      {task.state === 'COMPLETED' ? (
        <CheckIcon />
      ) : task.state === 'FAILED' || asks ? (
        <AlertIcon />
      ) : task.state === 'PAUSED' ? (
        <PauseIcon />
      ) : task.state === 'STOPPED' ? (
        <StopIcon />
      ) : task.state === 'RUNNING' ? (
        <i />
      ) : (
        <ClockIcon />
      )}
    </span>
  );
}

/** How the task stands, in words: its reason where there is a sentence for it, else its state. */
export function Standing({ task }: { task: Task }): ReactNode {
  const { t, coded, day, clock } = useText();
  const state = t(`task.state.${task.state}`);
  const words = task.reason === null ? state : coded('task.reason', task.reason, `task.state.${task.state}`);
  if (task.endedAt === null) return words;
  const ended = new Date(task.endedAt);
  return `${words} · ${day(ended, new Date())}, ${clock(ended)}`;
}
