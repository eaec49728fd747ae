/** The bar at the top: whose conversation this is, how things stand, and the menu. */
import { type ReactNode } from 'react';
import { useStore } from '../state/store';
import { writingReply } from '../state/timeline';
import { useText } from '../text/text';
import { Emblem } from './Emblem';
import { indicatorKind, isEnded } from '../state/work';
import { Menu, type PanelName } from './Menu';
import { usePage } from './context';
import { TasksIcon } from './icons';

export function Bar({ openPanel, openWork }: { openPanel: (panel: PanelName) => void; openWork: (() => void) | null }): ReactNode {
  const { t } = useText();
  const { store } = usePage();
  const name = useStore(store, (state) => state.settings?.name ?? '');
  const rehearsal = useRehearsal();
  const link = useStore(store, (state) => state.link.state);
  const writing = useStore(store, (state) => state.timeline !== null && writingReply(state.timeline) !== null);
  const standing = link === 'lost' ? 'bar.offline' : link === 'opening' ? 'bar.connecting' : writing ? 'bar.writing' : 'bar.ready';
  return (
    <header className="bar">
      <div className="bar-who">
        <span className="bar-emblem">
          <Emblem name={name} />
          <IndicatorDot />
        </span>
        <div className="bar-names">
          <h1>{name || t('app.name')}</h1>
          <p className={`bar-standing ${link}`} data-testid="standing">
            {t(standing)}
          </p>
        </div>
      </div>
      {rehearsal && (
        <span className="badge" data-testid="rehearsal-badge">
          {t('bar.rehearsal')}
        </span>
      )}
      {openWork && <WorkButton open={openWork} />}
      <Menu openPanel={openPanel} />
    </header>
  );
}

/** The one sign for everything in the background: what asks, what failed unseen, work under way, an unread result. */
function IndicatorDot(): ReactNode {
  const { t } = useText();
  const kind = useStore(usePage().store, ({ indicator, seen }) => indicatorKind(indicator, seen));
  if (kind === null) return null;
  const label = t(`indicator.${kind}`);
  return <span className={`indicator ${kind}`} role="img" aria-label={label} title={label} data-testid="indicator" data-kind={kind} />;
}

function WorkButton({ open }: { open: () => void }): ReactNode {
  const { t } = useText();
  const running = useStore(usePage().store, (state) => state.work.tasks.filter((task) => !isEnded(task)).length);
  const label = running > 0 ? t('work.openCount', { count: running }) : t('work.open');
  return (
    <button type="button" className="icon-button work-button" aria-label={label} title={label} onClick={open} data-testid="open-work">
      <TasksIcon />
      {running > 0 && <span aria-hidden="true">{running}</span>}
    </button>
  );
}

/** Whether answers come from the rehearsal model: the chosen model, or else the installation's default. */
export function useRehearsal(): boolean {
  return useStore(usePage().store, ({ settings, model }) => {
    const chosen = settings?.availableModels.find((candidate) => candidate.name === settings.model);
    return chosen?.rehearsal ?? model?.rehearsal ?? false;
  });
}
