/** The owner's time zone, with a short way to this device's own. */
import { useMemo, type ReactNode } from 'react';
import { useText } from '../text/text';
import { SelectField } from './Field';
import type { Save } from './SettingsPanel';

export function TimeZoneField({ timeZone, save }: { timeZone: string; save: Save }): ReactNode {
  const { t } = useText();
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const options = useMemo(() => zonesWith(timeZone, own).map((zone) => ({ value: zone, label: zone.replaceAll('_', ' ') || t('settings.timeZoneUnset') })), [timeZone, own, t]);
  return (
    <>
      <SelectField label={t('settings.timeZone')} value={timeZone} options={options} choose={(zone) => save({ timeZone: zone })} />
      {own && own !== timeZone && (
        <button type="button" className="link" onClick={() => save({ timeZone: own })}>
          {t('settings.timeZoneUse', { zone: own.replaceAll('_', ' ') })}
        </button>
      )}
    </>
  );
}

function zonesWith(...extra: string[]): string[] {
  return [...new Set([...Intl.supportedValuesOf('timeZone'), 'UTC', ...extra])].sort();
}
