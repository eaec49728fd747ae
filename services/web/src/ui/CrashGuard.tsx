/** Catches a mistake in drawing, so that the reader sees a way on instead of an empty window. */
import { Component, type ReactNode } from 'react';
import { chooseLanguage, textIn } from '../text/text';
import { Screen } from './Screen';

type Props = { children: ReactNode };

export class CrashGuard extends Component<Props, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    if (!this.state.broken) return this.props.children;
    const { t } = textIn(chooseLanguage(document.documentElement.lang, navigator.languages));
    return (
      <Screen testId="crash" title={t('crash.title')}>
        <p>{t('crash.lead')}</p>
        <button type="button" className="button primary" onClick={() => window.location.reload()}>
          {t('outdated.reload')}
        </button>
      </Screen>
    );
  }
}
