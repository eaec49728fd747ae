/** The beginning of a text file, as plain text; closes by Escape, the button, or a click beside it. */
import { useEffect, useState, type ReactNode } from 'react';
import { useText } from '../text/text';
import { ownAddress, type ShownFile } from './FileCards';
import { Panel } from './Panel';

/** More is not read on a screen, and would make the page slow; the file itself can be downloaded. */
const BYTES_SHOWN = 200_000;

type Reading = { state: 'loading' } | { state: 'failed' } | { state: 'read'; text: string; cut: boolean };

export function TextViewer({ file, close }: { file: ShownFile; close: () => void }): ReactNode {
  const { t } = useText();
  const [reading, setReading] = useState<Reading>({ state: 'loading' });
  useEffect(() => {
    const leave = new AbortController();
    readBeginning(ownAddress(file.url), leave.signal).then(
      ({ text, cut }) => setReading({ state: 'read', text, cut }),
      () => leave.signal.aborted || setReading({ state: 'failed' }),
    );
    return () => leave.abort();
  }, [file.url]);
  const download = (
    <a className="button quiet" href={ownAddress(file.url)} download={file.name}>
      {t('file.download')}
    </a>
  );
  return (
    <Panel title={file.name} testId="preview" close={close} aside={download} wide>
      {reading.state === 'loading' && <p role="status">{t('task.loading')}</p>}
      {reading.state === 'failed' && <p role="alert">{t('file.previewFailed')}</p>}
      {reading.state === 'read' && (
        <>
          {reading.cut && <p className="hint">{t('file.previewCut')}</p>}
          <pre className="text-preview" tabIndex={0}>
            {reading.text}
          </pre>
        </>
      )}
    </Panel>
  );
}

async function readBeginning(url: string, signal: AbortSignal): Promise<{ text: string; cut: boolean }> {
  const response = await fetch(url, { signal, credentials: 'same-origin' });
  if (!response.ok || !response.body) throw new Error(`the file was answered with ${response.status}`);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), cut: false };
    const room = BYTES_SHOWN - bytes;
    text += decoder.decode(value.subarray(0, room), { stream: true });
    bytes += value.length;
    if (value.length > room) {
      await reader.cancel();
      return { text, cut: true };
    }
  }
}
