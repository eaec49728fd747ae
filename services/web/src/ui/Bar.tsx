/** The bar at the top: whose conversation this is, how things stand, and the menu. */
import { type ReactNode } from 'react';
import { useStore } from '../state/store';
import { writingReply } from '../state/timeline';
import { useText } from '../text/text';
import { Emblem } from './Emblem';
import { Menu, type PanelName } from './Menu';
import { usePage } from './context';

export function Bar({ openPanel }: { openPanel: (panel: PanelName) => void }): ReactNode {
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
        <Emblem name={name} />
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
      <Menu openPanel={openPanel} />
    </header>
  );
}

/** Whether answers come from the rehearsal model: the chosen model, or else the installation's default. */
export function useRehearsal(): boolean {
  return useStore(usePage().store, ({ settings, model }) => {
    const chosen = settings?.availableModels.find((candidate) => candidate.name === settings.model);
    return chosen?.rehearsal ?? model?.rehearsal ?? false;
  });
}
