/** The whole page: which screen is shown, in which language and theme. */
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import type { Page } from '../state/page';
import { useStore } from '../state/store';
import { unreadCount } from '../state/timeline';
import { hasWork } from '../state/work';
import { chooseLanguage, textIn, TextContext, useText, type Text } from '../text/text';
import { Bar } from './Bar';
import { Conversation } from './Conversation';
import { PageContext, usePage } from './context';
import type { PanelName } from './Menu';
import { ProblemProvider } from './problems';
import { Screen } from './Screen';
import { SettingsPanel } from './SettingsPanel';
import { SignOutPanel } from './SignOutPanel';
import { SystemPanel } from './SystemPanel';
import { TaskPanel } from './TaskPanel';
import { WorkAside, WorkPanel } from './WorkList';
import { useWide } from './useWide';

const LANGUAGE_KEY = 'pa.language';

export function App({ page }: { page: Page }): ReactNode {
  const text = useReaderText(page);
  return (
    <PageContext value={page}>
      <TextContext value={text}>
        <CurrentScreen />
      </TextContext>
    </PageContext>
  );
}

/** The reader's texts; the chosen language is remembered so that the sign-in screen speaks it too. */
function useReaderText(page: Page): Text {
  const settings = useStore(page.store, (state) => state.settings);
  const chosen = settings ? settings.language : (page.storage.read(LANGUAGE_KEY) ?? '');
  const language = chooseLanguage(chosen, navigator.languages);
  useEffect(() => {
    document.documentElement.lang = language;
    if (settings) page.storage.write(LANGUAGE_KEY, settings.language);
  }, [page, language, settings]);
  return useMemo(() => textIn(language, settings?.timeZone), [language, settings?.timeZone]);
}

function CurrentScreen(): ReactNode {
  const phase = useStore(usePage().store, (state) => state.phase);
  switch (phase) {
    case 'starting':
      return <Starting />;
    case 'signedOut':
      return <SignIn />;
    case 'unreachable':
      return <Unreachable />;
    case 'outdated':
      return <Outdated />;
    case 'foreign':
      return <Foreign />;
    case 'ready':
      return <Ready />;
  }
}

function Ready(): ReactNode {
  const [panel, setPanel] = useState<PanelName | 'work' | null>(null);
  const { t } = useText();
  const { store } = usePage();
  const wide = useWide();
  const work = useStore(store, (state) => hasWork(state.work));
  const openTask = useStore(store, (state) => state.work.open);
  useTitle();
  return (
    <div className={`frame ${work && wide ? 'with-side' : ''}`}>
      <a className="skip" href="#composer">
        {t('app.skipToComposer')}
      </a>
      <ProblemProvider>
        <Bar openPanel={setPanel} openWork={work && !wide ? () => setPanel('work') : null} />
        <Conversation />
        {work && wide && <WorkAside />}
        {panel === 'work' && work && !wide && <WorkPanel close={() => setPanel(null)} />}
        {openTask && <TaskPanel key={openTask.id} open={openTask} leave={() => setPanel(null)} />}
      </ProblemProvider>
      {panel === 'settings' && <SettingsPanel close={() => setPanel(null)} />}
      {panel === 'system' && <SystemPanel close={() => setPanel(null)} />}
      {panel === 'signOutEverywhere' && <SignOutPanel close={() => setPanel(null)} />}
    </div>
  );
}

/** The window's title carries the agent's name and how much is unread. */
function useTitle(): void {
  const { store } = usePage();
  const { t } = useText();
  const name = useStore(store, (state) => state.settings?.name) || t('app.name');
  const unread = useStore(store, (state) => (state.timeline && state.readThrough !== null ? unreadCount(state.timeline.messages, state.readThrough) : 0));
  useEffect(() => {
    document.title = unread > 0 ? `(${unread}) ${name}` : name;
  }, [name, unread]);
}

function Starting(): ReactNode {
  const { t } = useText();
  return (
    <main className="screen" data-testid="starting" aria-busy="true">
      <p className="screen-wait" role="status">
        <span className="dots" aria-hidden="true">
          <i />
          <i />
          <i />
        </span>
        <span className="hidden">{t('app.starting')}</span>
      </p>
    </main>
  );
}

function SignIn(): ReactNode {
  const { t } = useText();
  const { session, store } = usePage();
  const [answer, setAnswer] = useState<'none' | 'checking' | 'notYet' | 'unreached'>('none');
  useEffect(() => {
    document.title = t('app.name');
  }, [t]);
  const check = () => {
    setAnswer('checking');
    // Once it is signed in the whole page shows the conversation.
    void session.wake().then(() => setAnswer(store.get().link.state === 'lost' ? 'unreached' : 'notYet'));
  };
  return (
    <Screen testId="signed-out" title={t('signIn.title')}>
      <p>{t('signIn.lead')}</p>
      <div className="screen-box">
        <h2>{t('signIn.howTitle')}</h2>
        <p>{t('signIn.how')}</p>
        <code className="command">target/release/pa token link</code>
      </div>
      <button type="button" className="button primary" disabled={answer === 'checking'} onClick={check}>
        {t('signIn.check')}
      </button>
      <p className="screen-answer" role="status" data-testid="sign-in-answer">
        {answer === 'notYet' && t('signIn.notYet')}
        {answer === 'unreached' && t('signIn.unreached')}
      </p>
      <p className="hint">{t('signIn.kept')}</p>
    </Screen>
  );
}

function Unreachable(): ReactNode {
  const { t } = useText();
  const { session } = usePage();
  return (
    <Screen testId="unreachable" title={t('unreachable.title')}>
      <p role="status">{t('unreachable.lead')}</p>
      <button type="button" className="button primary" onClick={() => void session.wake()}>
        {t('unreachable.retry')}
      </button>
    </Screen>
  );
}

function Outdated(): ReactNode {
  const { t } = useText();
  return (
    <Screen testId="outdated" title={t('outdated.title')}>
      <p>{t('outdated.lead')}</p>
      <button type="button" className="button primary" onClick={() => window.location.reload()}>
        {t('outdated.reload')}
      </button>
    </Screen>
  );
}

function Foreign(): ReactNode {
  const { t } = useText();
  return (
    <Screen testId="foreign" title={t('foreign.title')}>
      <p>{t('foreign.lead', { address: window.location.origin })}</p>
      <div className="screen-box">
        <p>{t('foreign.how')}</p>
        <code className="command">PA_PUBLIC_URL={window.location.origin}</code>
      </div>
    </Screen>
  );
}
