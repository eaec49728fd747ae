/** The files of a message: pictures are shown, everything else is a card to download. */
import { useState, type ReactNode } from 'react';
import { isPicture, isText } from '../state/files';
import { useText } from '../text/text';
import { PictureViewer } from './PictureViewer';
import { TextViewer } from './TextViewer';
import { EyeIcon, FileIcon } from './icons';

export type ShownFile = { id: string; name: string; mediaType: string; size: number; url: string };

/** `delivered`: what the agent hands over, of which the card also says when there is nothing to look at. */
export function FileCards({ files, delivered = false }: { files: ShownFile[]; delivered?: boolean }): ReactNode {
  const { t } = useText();
  if (files.length === 0) return null;
  return (
    <ul className="files" aria-label={t('message.files')}>
      {files.map((file) => (
        <li key={file.id}>
          <FileItem file={file} delivered={delivered} />
        </li>
      ))}
    </ul>
  );
}

/** One file: a picture, or a card with a preview where there is one. `small`: a card in any case. */
export function FileItem({ file, small = false, delivered = false }: { file: ShownFile; small?: boolean; delivered?: boolean }): ReactNode {
  const picture = isPicture(file.mediaType);
  if (picture && !small) return <Picture file={file} />;
  return picture || isText(file.mediaType) ? <PreviewedCard file={file} /> : <FileCard file={file} unseen={delivered} />;
}

function PreviewedCard({ file }: { file: ShownFile }): ReactNode {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  const Viewer = isPicture(file.mediaType) ? PictureViewer : TextViewer;
  const label = t('file.preview', { name: file.name });
  return (
    <div className="previewed">
      <FileCard file={file} />
      <button type="button" className="icon-button small" aria-label={label} title={label} onClick={() => setOpen(true)} data-testid="preview-file">
        <EyeIcon />
      </button>
      {open && <Viewer file={file} close={() => setOpen(false)} />}
    </div>
  );
}

function Picture({ file }: { file: ShownFile }): ReactNode {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  const [broken, setBroken] = useState(false);
  if (broken) return <FileCard file={file} />;
  return (
    <>
      <button type="button" className="picture" onClick={() => setOpen(true)} aria-label={t('file.open', { name: file.name })}>
        <img src={ownAddress(file.url)} alt={t('message.picture', { name: file.name })} loading="lazy" decoding="async" onError={() => setBroken(true)} />
      </button>
      {open && <PictureViewer file={file} close={() => setOpen(false)} />}
    </>
  );
}

export function FileCard({ file, unseen = false }: { file: ShownFile; unseen?: boolean }): ReactNode {
  const { t, size } = useText();
  return (
    <a className="file-card" href={ownAddress(file.url)} download={file.name} target="_blank" rel="noopener noreferrer" data-testid="file">
      <span className="file-mark">
        <FileIcon />
        <small>{endingOf(file.name)}</small>
      </span>
      <span className="file-text">
        <b title={file.name}>{file.name}</b>
        <small>
          {size(file.size)}
          {unseen && ` · ${t('file.noPreview')}`}
        </small>
      </span>
    </a>
  );
}

const ENDING_CHARACTERS = 4;

export function endingOf(name: string): string {
  const ending = /\.([\p{L}\p{N}]+)$/u.exec(name)?.[1] ?? '';
  return ending.length <= ENDING_CHARACTERS ? ending.toUpperCase() : '';
}

/** Files lie on the page's own origin; an address that leads elsewhere is not followed. */
export function ownAddress(url: string): string {
  return url.startsWith('/') && !url.startsWith('//') ? url : '#';
}
