/** Light, dark, or as the system has it; kept in this browser. */
import { useState, type ReactNode } from 'react';
import { useText } from '../text/text';
import { usePage } from './context';

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

/** public/theme.js reads the same key before the first paint. */
const THEME_KEY = 'pa.theme';

export function ThemeField(): ReactNode {
  const { t } = useText();
  const { storage } = usePage();
  const [theme, setTheme] = useState<Theme>(() => THEMES.find((known) => known === storage.read(THEME_KEY)) ?? 'system');
  const choose = (next: Theme) => {
    setTheme(next);
    if (next === 'system') {
      storage.remove(THEME_KEY);
      delete document.documentElement.dataset['theme'];
    } else {
      storage.write(THEME_KEY, next);
      document.documentElement.dataset['theme'] = next;
    }
  };
  return (
    <fieldset className="field">
      <legend>{t('settings.theme')}</legend>
      <div className="segments">
        {THEMES.map((option) => (
          <label key={option}>
            <input type="radio" name="theme" value={option} checked={theme === option} onChange={() => choose(option)} />
            <span>{t(`settings.theme.${option}`)}</span>
          </label>
        ))}
      </div>
      <p className="hint">{t('settings.themeHint')}</p>
    </fieldset>
  );
}
