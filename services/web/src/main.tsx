/** Starts the page. */
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { openPage } from './state/page';
import { App } from './ui/App';
import { CrashGuard } from './ui/CrashGuard';
import './styles/tokens.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/conversation.css';
import './styles/files.css';
import './styles/markdown.css';
import './styles/composer.css';
import './styles/panels.css';
import './styles/tasks.css';

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');

createRoot(root).render(
  <StrictMode>
    <CrashGuard>
      <App page={openPage()} />
    </CrashGuard>
  </StrictMode>,
);
