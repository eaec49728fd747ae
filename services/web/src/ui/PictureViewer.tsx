/** One picture, large; closes by Escape, the button, or a click beside it. */
import { useEffect, useRef, type ReactNode } from 'react';
import { useText } from '../text/text';
import { ownAddress, type ShownFile } from './FileCards';
import { CloseIcon } from './icons';

export function PictureViewer({ file, close }: { file: ShownFile; close: () => void }): ReactNode {
  const { t } = useText();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
  }, []);
  // Closing the dialog itself gives the focus back to where it was; `onClose` then takes it off the page.
  const end = () => dialog.current?.close();
  return (
    <dialog ref={dialog} className="viewer" aria-label={file.name} onClose={close} onPointerDown={(event) => event.target === dialog.current && end()}>
      <img src={ownAddress(file.url)} alt={t('message.picture', { name: file.name })} />
      <div className="viewer-bar">
        <span>{file.name}</span>
        <a className="button quiet" href={ownAddress(file.url)} download={file.name}>
          {t('file.download')}
        </a>
        <button type="button" className="icon-button" aria-label={t('panel.close')} onClick={end}>
          <CloseIcon />
        </button>
      </div>
    </dialog>
  );
}
