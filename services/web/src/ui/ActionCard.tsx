/** One thing that waits for the owner: exactly what would be done, whole, and the decision about it. */
import { useId, type ReactNode } from 'react';
import { contentOf, isSaid, type Line, type Step } from '../state/content';
import type { Action } from '../state/work';
import { useText } from '../text/text';
import { usePage } from './context';
import { AlertIcon, ComputerIcon, MailIcon } from './icons';
import { useAction } from './problems';

export function ActionCard({ action }: { action: Action }): ReactNode {
  const { t, coded, clock } = useText();
  const { tasks } = usePage();
  const heading = useId();
  const unknown = action.state === 'UNKNOWN';
  const content = contentOf(action.content);
  const { lines, steps } = content;
  const { taskId } = action;
  return (
    <li className="action-card" data-testid="action" data-action={action.id} data-state={action.state} aria-labelledby={heading}>
      <header>
        <span className="action-mark" aria-hidden="true">
          {unknown ? <AlertIcon /> : action.gate === 'EMAIL' ? <MailIcon /> : <ComputerIcon />}
        </span>
        <div>
          <h3 id={heading}>{action.gate === null ? coded('tool', action.tool, 'action.gate.unknown') : t(`action.gate.${action.gate}`)}</h3>
          {taskId !== null && (
            <p className="action-task">
              {t('action.forTask')}{' '}
              <button type="button" className="link" onClick={() => tasks.open(taskId)}>
                {action.taskTitle}
              </button>
            </p>
          )}
        </div>
      </header>
      {unknown && <p className="action-unknown">{t('action.contentUnknown')}</p>}
      <section aria-label={t('action.content')} className="action-content">
        <dl>
          {action.target !== null && !isSaid(action.target, content) && <Shown line={{ name: t('action.for'), value: action.target, kind: 'short' }} named />}
          {lines.map((line) => (
            <Shown key={line.name} line={line} />
          ))}
        </dl>
        {steps.length > 0 && <Steps steps={steps} />}
      </section>
      {action.validUntil !== null && !unknown && <p className="hint">{t('action.validUntil', { time: clock(new Date(action.validUntil)) })}</p>}
      {action.scope !== null && !unknown && <p className="hint">{t('action.scope', { scope: action.scope })}</p>}
      <Decision action={action} />
    </li>
  );
}

function Decision({ action }: { action: Action }): ReactNode {
  const { t } = useText();
  const { actions } = usePage();
  const { busy, act } = useAction();
  if (action.state === 'UNKNOWN') {
    return (
      <footer className="action-buttons">
        <button type="button" className="button quiet" disabled={busy} onClick={() => act(() => actions.reconcileAction(action.id, 'EXECUTED'))} data-testid="executed">
          {t('action.executed')}
        </button>
        <button type="button" className="button quiet" disabled={busy} onClick={() => act(() => actions.reconcileAction(action.id, 'NOT_EXECUTED'))} data-testid="not-executed">
          {t('action.notExecuted')}
        </button>
      </footer>
    );
  }
  return (
    <footer className="action-buttons">
      <button type="button" className="button primary" disabled={busy} onClick={() => act(() => actions.decideAction(action.id, 'APPROVE_ONCE'))} data-testid="approve-once">
        {t('action.approveOnce')}
      </button>
      {action.scope !== null && (
        <button type="button" className="button quiet" disabled={busy} onClick={() => act(() => actions.decideAction(action.id, 'ALLOW_FOR_TASK'))} data-testid="allow-for-task">
          {t('action.allowForTask')}
        </button>
      )}
      <button type="button" className="button quiet reject" disabled={busy} onClick={() => act(() => actions.decideAction(action.id, 'REJECT'))} data-testid="reject">
        {t('action.reject')}
      </button>
    </footer>
  );
}

function Shown({ line, named = false }: { line: Line; named?: boolean }): ReactNode {
  const { field } = useText();
  return (
    <div className={line.kind}>
      <dt>{named ? line.name : field(line.name)}</dt>
      <dd>{line.value}</dd>
    </div>
  );
}

function Steps({ steps }: { steps: Step[] }): ReactNode {
  const { t, field } = useText();
  return (
    <>
      <h4>{t('action.steps')}</h4>
      <ol className="action-steps" data-testid="action-steps">
        {steps.map((step) => (
          <li key={step.number}>
            <p>
              {step.parts.map(({ name, value }) => (
                <span key={name}>
                  <small>{field(name)}</small> {value}
                </span>
              ))}
            </p>
            {step.long !== null && (
              <div className="action-long">
                <small>{t('action.fullText')}</small>
                <pre>{step.long}</pre>
              </div>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}
