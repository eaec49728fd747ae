/** The state of the installation, for whoever runs it. */
import { useCallback, useEffect, useState, type ReactNode } from 'react';
import type { SystemData } from '../api/generated';
import { useStore } from '../state/store';
import { useText } from '../text/text';
import { Section } from './Field';
import { Panel } from './Panel';
import { usePage } from './context';

type System = SystemData['system'];
type Reading = { state: 'loading' } | { state: 'failed' } | { state: 'read'; system: System };

export function SystemPanel({ close }: { close: () => void }): ReactNode {
  const { t } = useText();
  const { readSystem } = usePage();
  const [reading, setReading] = useState<Reading>({ state: 'loading' });
  const read = useCallback(() => {
    readSystem().then(
      (system) => setReading({ state: 'read', system }),
      () => setReading({ state: 'failed' }),
    );
  }, [readSystem]);
  useEffect(read, [read]);
  return (
    <Panel title={t('system.title')} testId="system" close={close}>
      {reading.state === 'loading' && <p role="status">{t('system.loading')}</p>}
      {reading.state === 'failed' && <p role="alert">{t('system.failed')}</p>}
      {reading.state === 'read' && <SystemFacts system={reading.system} />}
      <button type="button" className="button quiet" onClick={read}>
        {t('system.refresh')}
      </button>
    </Panel>
  );
}

function SystemFacts({ system }: { system: System }): ReactNode {
  const { t, day } = useText();
  const { store } = usePage();
  const account = useStore(store, (state) => state.viewer?.name ?? '');
  const live = useStore(store, (state) => state.link.state === 'live');
  const log = system.logKind === 'kafka' ? t('system.log.kafka') : system.logKind === 'postgres' ? t('system.log.postgres') : system.logKind;
  const facts: Array<[string, string]> = [
    [t('system.account'), account],
    [t('system.link'), t(live ? 'system.link.live' : 'system.link.down')],
    [t('system.model'), system.model.rehearsal ? t('bar.rehearsal') : system.model.name],
    [t('system.log'), log],
    [t('system.version'), system.version],
    [t('system.readSchema'), system.readSchema],
  ];
  return (
    <>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {system.foldedAnew && (
        <Section title={t('foldedAnew.title', { day: day(new Date(system.foldedAnew.at), new Date()) })}>
          <div className="folded-anew" data-testid="folded-anew">
            <p>{t('foldedAnew.lead')}</p>
            <small>{system.foldedAnew.because}</small>
          </div>
        </Section>
      )}
      <Section title={t('system.parked')}>
        {system.parked.length === 0 ? <p className="hint">{t('system.parkedNone')}</p> : <Parked parked={system.parked} />}
      </Section>
      <Section title={t('system.partitions')}>
        <Table
          heads={[t('system.partition'), t('system.epoch'), t('system.lag')]}
          rows={system.partitions.map(({ id, epoch, lag }) => [String(id), String(epoch), String(lag)])}
        />
      </Section>
      {system.roles.length > 0 && (
        <Section title={t('system.roles')}>
          <Table heads={[t('system.role'), t('system.node')]} rows={system.roles.map(({ name, node }) => [name, node])} />
        </Section>
      )}
    </>
  );
}

function Parked({ parked }: { parked: System['parked'] }): ReactNode {
  const { t } = useText();
  return (
    <ul className="parked" data-testid="parked">
      {parked.map((agent) => (
        <li key={agent.agentId}>
          <b>{agent.agentId}</b> {t('system.parkedFrom', { from: agent.from })}
          <small>{agent.error}</small>
        </li>
      ))}
    </ul>
  );
}

function Table({ heads, rows }: { heads: string[]; rows: string[][] }): ReactNode {
  return (
    <table className="table">
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells) => (
          <tr key={cells.join(' ')}>
            {cells.map((cell, at) => (
              <td key={heads[at]}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
