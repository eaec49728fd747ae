/**
 * The capsule at the bottom: write, attach, send, stop.
 *
 * Enter sends and Shift+Enter begins a new line; while an input method composes, Enter belongs to it.
 */
import { useEffect, useLayoutEffect, useRef, type ClipboardEvent, type FormEvent, type KeyboardEvent, type ReactNode } from 'react';
import { canSend, FILES_MAX, isTooLong, isUploading } from '../state/draft';
import { useStore } from '../state/store';
import { writingReply } from '../state/timeline';
import { useText } from '../text/text';
import { DraftFiles } from './DraftFiles';
import { DropArea } from './DropArea';
import { usePage } from './context';
import { COMPOSER_ID, useDraft } from './drafts';
import { PlusIcon, SendIcon, StopIcon } from './icons';
import { useAction } from './problems';

export function Composer(): ReactNode {
  const { t } = useText();
  const { draft, sender, store } = usePage();
  const current = useDraft();
  const picker = useRef<HTMLInputElement>(null);
  const field = useGrowingField(current.text);
  const name = useStore(store, (state) => state.settings?.name ?? '');
  const writing = useStore(store, ({ timeline }) => timeline !== null && writingReply(timeline) !== null);
  const tooLong = isTooLong(current.text);
  const sendable = canSend(current);

  const send = (event?: FormEvent) => {
    event?.preventDefault();
    const taken = draft.take();
    if (taken) sender.send(taken.text, taken.files);
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // 229 is what some browsers report for the Enter that ends a composition.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (sendable) send();
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    draft.add(files);
  };
  const pick = () => {
    draft.add([...(picker.current?.files ?? [])]);
    if (picker.current) picker.current.value = '';
  };

  return (
    <form className="composer" onSubmit={send} data-testid="composer">
      <DropArea />
      <DraftFiles files={current.files} />
      {current.tooMany && (
        <p className="composer-note" role="alert">
          {t('composer.tooMany', { max: FILES_MAX })}
        </p>
      )}
      {tooLong && <TooLong />}
      <div className="composer-row">
        <input ref={picker} type="file" multiple hidden onChange={pick} data-testid="file-input" />
        <button type="button" className="icon-button" aria-label={t('composer.attach')} title={t('composer.attach')} onClick={() => picker.current?.click()}>
          <PlusIcon />
        </button>
        <textarea
          ref={field}
          id={COMPOSER_ID}
          rows={1}
          dir="auto"
          value={current.text}
          aria-label={t('composer.label')}
          placeholder={name ? t('composer.placeholder', { name }) : t('composer.placeholderUnnamed')}
          onChange={(event) => draft.setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <StopButton />
        {(!writing || current.text !== '' || current.files.length > 0) && (
          <button
            type="submit"
            className="round-button send"
            aria-label={t('composer.send')}
            title={isUploading(current) ? t('composer.uploading') : t('composer.send')}
            disabled={!sendable}
          >
            <SendIcon />
          </button>
        )}
      </div>
    </form>
  );
}

/** The field grows with its text, up to what the style sheet allows. */
function useGrowingField(text: string) {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  }, [text]);
  // On a touch screen focusing would open the keyboard over the conversation.
  useEffect(() => {
    if (window.matchMedia('(hover: hover)').matches) field.current?.focus();
  }, []);
  return field;
}

function StopButton(): ReactNode {
  const { t } = useText();
  const { store, actions } = usePage();
  const { busy, act } = useAction();
  const messageId = useStore(store, ({ timeline }) => {
    const reply = timeline && writingReply(timeline);
    return reply ? (reply.replyToId ?? reply.id) : null;
  });
  if (messageId === null) return null;
  return (
    <button type="button" className="round-button stop" aria-label={t('composer.stop')} title={t('composer.stop')} disabled={busy} onClick={() => act(() => actions.stopReply(messageId))} data-testid="stop">
      <StopIcon />
    </button>
  );
}

/** A text beyond the limit can go as a file. */
function TooLong(): ReactNode {
  const { t } = useText();
  const { draft } = usePage();
  const asFile = () => {
    const { text } = draft.store.get();
    draft.setText('');
    draft.add([new File([text], t('composer.fileName'), { type: 'text/plain' })]);
  };
  return (
    <p className="composer-note" role="alert" data-testid="too-long">
      {t('composer.tooLong')}{' '}
      <button type="button" className="link" onClick={asFile}>
        {t('composer.asFile')}
      </button>
    </p>
  );
}
