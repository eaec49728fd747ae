/** Asks once more before every browser of the account is signed out. */
import { useState, type ReactNode } from 'react';
import { useText } from '../text/text';
import { Panel } from './Panel';
import { usePage } from './context';

export function SignOutPanel({ close }: { close: () => void }): ReactNode {
  const { t, problem } = useText();
  const { signOut } = usePage();
  const [state, setState] = useState<'asking' | 'busy' | 'failed'>('asking');
  const leave = () => {
    setState('busy');
    // When it took effect the whole page shows the sign-in screen.
    void signOut(true).then((ended) => !ended && setState('failed'));
  };
  return (
    <Panel title={t('menu.signOutEverywhere')} testId="sign-out-panel" close={close}>
      <div className="panel-question">
        <p>{t('signOut.everywhereLead')}</p>
        <p className="hint">{t('signOut.everywhereTokens')}</p>
        <button type="button" className="button primary" disabled={state === 'busy'} onClick={leave} data-testid="sign-out-confirm">
          {t('menu.signOutEverywhere')}
        </button>
        <p role="alert">{state === 'failed' && problem('notSignedOut')}</p>
      </div>
    </Panel>
  );
}
