/** Settings: every change is saved at once, on the version that was shown. */
import { useCallback, useEffect, useState, type ReactNode } from 'react';
import type { Effort } from '../api/generated';
import type { ActionResult, SettingsChange } from '../state/actions';
import type { Settings } from '../state/state';
import { useStore } from '../state/store';
import { useText } from '../text/text';
import { Field, Section, SelectField } from './Field';
import { Panel } from './Panel';
import { ThemeField } from './ThemeField';
import { TimeZoneField } from './TimeZoneField';
import { usePage } from './context';

/** More would not fit where the name is shown. */
const NAME_CHARACTERS_MAX = 60;

type Standing = 'idle' | 'saving' | 'saved' | ActionResult;
export type Save = (change: SettingsChange) => void;

export function SettingsPanel({ close }: { close: () => void }): ReactNode {
  const { t } = useText();
  const { store } = usePage();
  const settings = useStore(store, (state) => state.settings);
  const { standing, save } = useSaving();
  if (!settings) return null;
  return (
    <Panel title={t('settings.title')} testId="settings" close={close} aside={<SavingLine standing={standing} />}>
      <Section title={t('settings.agent')}>
        <NameField settings={settings} save={save} />
      </Section>
      <ModelSection settings={settings} save={save} />
      <Section title={t('settings.region')}>
        <SelectField
          label={t('settings.language')}
          value={settings.language}
          options={[
            { value: '', label: t('settings.languageAuto') },
            { value: 'en', label: 'English' },
            { value: 'zh-CN', label: '简体中文' },
          ]}
          choose={(language) => save({ language })}
        />
        <TimeZoneField timeZone={settings.timeZone} save={save} />
      </Section>
      <Section title={t('settings.appearance')}>
        <ThemeField />
      </Section>
    </Panel>
  );
}

function useSaving(): { standing: Standing; save: Save } {
  const { actions } = usePage();
  const [standing, setStanding] = useState<Standing>('idle');
  const save = useCallback<Save>(
    (change) => {
      setStanding('saving');
      void actions.changeSettings(change).then((result) => setStanding(result === 'done' ? 'saved' : result));
    },
    [actions],
  );
  return { standing, save };
}

function SavingLine({ standing }: { standing: Standing }): ReactNode {
  const { t, problem } = useText();
  const failed = standing !== 'idle' && standing !== 'saving' && standing !== 'saved';
  return (
    <p className={`saving ${failed ? 'failed' : ''}`} role="status" data-testid="saving" data-state={failed ? 'failed' : standing}>
      {standing === 'saving' && t('settings.saving')}
      {standing === 'saved' && t('settings.saved')}
      {failed && problem(standing)}
    </p>
  );
}

function NameField({ settings, save }: { settings: Settings; save: Save }): ReactNode {
  const { t } = useText();
  const [name, setName] = useState(settings.name);
  useEffect(() => setName(settings.name), [settings.name]);
  const commit = () => {
    if (name.trim() !== settings.name) save({ name: name.trim() });
  };
  return (
    <Field label={t('settings.name')} hint={t('settings.nameHint')}>
      {(id) => (
        <input
          id={id}
          type="text"
          value={name}
          maxLength={NAME_CHARACTERS_MAX}
          onChange={(event) => setName(event.target.value)}
          onBlur={commit}
          onKeyDown={(event) => event.key === 'Enter' && !event.nativeEvent.isComposing && commit()}
        />
      )}
    </Field>
  );
}

function ModelSection({ settings, save }: { settings: Settings; save: Save }): ReactNode {
  const { t } = useText();
  const models = settings.availableModels;
  const standard = models[0];
  const chosen = models.find((model) => model.name === settings.model) ?? standard;
  const efforts: Effort[] = chosen?.efforts ?? [];
  const named = (model: { name: string; rehearsal: boolean }) => (model.rehearsal ? t('bar.rehearsal') : model.name);
  return (
    <Section title={t('settings.runtime')}>
      <div className="field-pair">
        <SelectField
          label={t('settings.model')}
          value={settings.model}
          options={[
            { value: '', label: t('settings.modelDefault', { name: standard ? named(standard) : '–' }) },
            ...models.map((model) => ({ value: model.name, label: named(model) })),
          ]}
          choose={(model) => save({ model })}
        />
        <SelectField
          label={t('settings.effort')}
          value={settings.effort}
          options={withCurrent(efforts, settings.effort).map((effort) => ({ value: effort, label: t(`settings.effort.${effort}`) }))}
          choose={(effort) => save({ effort: effort as Effort })}
        />
      </div>
      <p className="hint">{t('settings.effortHint')}</p>
    </Section>
  );
}

/** What is set is always among the choices, also when the model no longer offers it. */
function withCurrent(efforts: readonly Effort[], current: Effort): readonly Effort[] {
  return efforts.includes(current) ? efforts : [...efforts, current];
}
