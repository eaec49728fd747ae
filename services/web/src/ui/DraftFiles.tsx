/** The files in the composer: each with its progress, its problem, and a way out. */
import type { ReactNode } from 'react';
import type { DraftFile } from '../state/draft';
import { useText } from '../text/text';
import { endingOf } from './FileCards';
import { usePage } from './context';
import { CloseIcon, FileIcon } from './icons';

export function DraftFiles({ files }: { files: readonly DraftFile[] }): ReactNode {
  const { t } = useText();
  if (files.length === 0) return null;
  return (
    <ul className="draft-files" aria-label={t('message.files')}>
      {files.map((file) => (
        <DraftFileCard key={file.key} file={file} />
      ))}
    </ul>
  );
}

function DraftFileCard({ file }: { file: DraftFile }): ReactNode {
  const { t } = useText();
  const { draft } = usePage();
  const standing = file.problem ? 'failed' : file.uploaded ? 'done' : 'uploading';
  const mayRetry = file.problem === 'unreached' || file.problem === 'signedOut';
  return (
    <li className={`draft-file ${standing}`} data-testid="draft-file" data-state={standing}>
      <span className="file-mark">
        {file.preview ? (
          <img src={file.preview} alt="" />
        ) : (
          <>
            <FileIcon />
            <small>{endingOf(file.name)}</small>
          </>
        )}
      </span>
      <span className="file-text">
        <b title={file.name}>{file.name}</b>
        <Standing file={file} />
        {mayRetry && (
          <button type="button" className="link" onClick={() => draft.retry(file.key)}>
            {t('file.retry')}
          </button>
        )}
      </span>
      {standing === 'uploading' && <progress value={file.share} max={1} aria-label={file.name} />}
      <button type="button" className="icon-button small" aria-label={t('file.remove', { name: file.name })} onClick={() => draft.remove(file.key)}>
        <CloseIcon />
      </button>
    </li>
  );
}

function Standing({ file }: { file: DraftFile }): ReactNode {
  const { t, size } = useText();
  if (file.problem) return <small role="alert">{t(`file.${file.problem}`)}</small>;
  if (file.uploaded) return <small>{size(file.size)}</small>;
  return <small>{t('file.uploading', { percent: Math.round(file.share * 100) })}</small>;
}
