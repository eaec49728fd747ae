/** A panel beside the conversation; on a phone it covers it. Escape, the button, or a click beside it closes it. */
import { useEffect, useRef, type ReactNode } from 'react';
import { useText } from '../text/text';
import { CloseIcon } from './icons';

type Props = { title: string; testId: string; close: () => void; aside?: ReactNode; wide?: boolean; children: ReactNode };

export function Panel({ title, testId, close, aside, wide = false, children }: Props): ReactNode {
  const { t } = useText();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
  }, []);
  // Closing the dialog itself gives the focus back to where it was; `onClose` then takes it off the page.
  const end = () => dialog.current?.close();
  return (
    <dialog ref={dialog} className={`panel ${wide ? 'wide' : ''}`} aria-label={title} data-testid={testId} onClose={close} onPointerDown={(event) => event.target === dialog.current && end()}>
      <div className="panel-inner">
        <header className="panel-head">
          <h2>{title}</h2>
          {aside}
          <button type="button" className="icon-button" aria-label={t('panel.close')} onClick={end}>
            <CloseIcon />
          </button>
        </header>
        <div className="panel-body">{children}</div>
      </div>
    </dialog>
  );
}
