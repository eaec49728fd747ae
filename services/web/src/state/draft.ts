/**
 * What is in the composer: a text and files that are being uploaded or wait to be sent.
 *
 * Invariants: the draft outlives a reload (files too, once they are uploaded) and is never sent by itself; a file that was
 * removed has no effect on anything.
 */
import { FILE_BYTES_MAX, UploadError, type Upload, type Uploaded, type UploadFailure } from '../api/upload';
import { randomId, type Storage } from './storage';
import { Store } from './store';

export type FileProblem = UploadFailure | 'empty';

export type DraftFile = {
  key: string;
  name: string;
  mediaType: string;
  size: number;
  /** Between 0 and 1 while it is uploaded. */
  share: number;
  uploaded: Uploaded | null;
  problem: FileProblem | null;
  /** A picture of it from this browser's memory. */
  preview: string | null;
};

export type Draft = { text: string; files: readonly DraftFile[]; tooMany: boolean };

/** The server's limit for one message's text. */
export const TEXT_BYTES_MAX = 262_144;
/** The server's limit for one message. */
export const FILES_MAX = 20;
/** Writing every keystroke to the browser's storage would make typing slow. */
const KEEP_AFTER_MS = 250;

type Parts = {
  storage: Storage;
  upload: (file: File, progressed: (share: number) => void) => Upload;
  makePreview?: (file: File) => string | null;
  dropPreview?: (preview: string) => void;
};

export class ComposerDraft {
  readonly store = new Store<Draft>({ text: '', files: [], tooMany: false });
  readonly #uploads = new Map<string, { file: File; upload: Upload | null }>();
  #key: string | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly parts: Parts) {}

  /** Takes up what this account left in the composer. */
  open(account: string): void {
    this.#key = `pa.draft.${account}`;
    const kept = parsed(this.parts.storage.read(this.#key));
    if (!kept || !isEmpty(this.store.get())) return;
    this.store.update(() => ({ text: kept.text, files: kept.files.map((file) => shownAs(file)), tooMany: false }));
  }

  setText(text: string): void {
    this.#update((draft) => ({ ...draft, text }));
  }

  /** Puts a text and files back to be edited, before what is already there. */
  restore(text: string, files: readonly Uploaded[]): void {
    this.#update((draft) => ({
      ...draft,
      text: [text, draft.text].filter((part) => part !== '').join('\n'),
      files: [...files.map((file) => shownAs(file)), ...draft.files],
    }));
  }

  add(files: readonly File[]): void {
    const room = FILES_MAX - this.store.get().files.length;
    for (const file of files.slice(0, Math.max(0, room))) this.#addOne(file);
    this.#update((draft) => ({ ...draft, tooMany: files.length > room }));
  }

  remove(key: string): void {
    this.#uploads.get(key)?.upload?.cancel();
    this.#uploads.delete(key);
    const preview = this.store.get().files.find((file) => file.key === key)?.preview;
    if (preview) this.parts.dropPreview?.(preview);
    this.#update((draft) => ({ ...draft, tooMany: false, files: draft.files.filter((file) => file.key !== key) }));
  }

  retry(key: string): void {
    const known = this.#uploads.get(key);
    if (known) this.#start(key, known.file);
  }

  /** Empties the composer and answers what was in it; null when it can't be sent yet. */
  take(): { text: string; files: Uploaded[] } | null {
    const { text, files } = this.store.get();
    if (!canSend(this.store.get())) return null;
    for (const file of files) if (file.preview) this.parts.dropPreview?.(file.preview);
    this.#uploads.clear();
    this.#update(() => ({ text: '', files: [], tooMany: false }));
    this.#keepNow();
    return { text, files: files.map((file) => file.uploaded).filter((file) => file !== null) };
  }

  #addOne(file: File): void {
    const key = randomId();
    const problem: FileProblem | null = file.size > FILE_BYTES_MAX ? 'tooLarge' : file.size === 0 ? 'empty' : null;
    const preview = problem === null ? (this.parts.makePreview?.(file) ?? null) : null;
    const shown: DraftFile = { key, name: file.name, mediaType: file.type, size: file.size, share: 0, uploaded: null, problem, preview };
    this.#update((draft) => ({ ...draft, files: [...draft.files, shown] }));
    if (problem === null) this.#start(key, file);
  }

  #start(key: string, file: File): void {
    this.#change(key, { share: 0, problem: null });
    const upload = this.parts.upload(file, (share) => this.#change(key, { share }));
    this.#uploads.set(key, { file, upload });
    upload.done.then(
      (uploaded) => this.#change(key, { uploaded, share: 1 }),
      (cause: unknown) => this.#change(key, { problem: cause instanceof UploadError ? cause.failure : 'unreached' }),
    );
  }

  #change(key: string, change: Partial<DraftFile>): void {
    this.#update((draft) => ({ ...draft, files: draft.files.map((file) => (file.key === key ? { ...file, ...change } : file)) }));
  }

  #update(change: (draft: Draft) => Draft): void {
    this.store.update(change);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#keepNow(), KEEP_AFTER_MS);
  }

  #keepNow(): void {
    clearTimeout(this.#timer);
    if (this.#key === null) return;
    const { text, files } = this.store.get();
    const uploaded = files.map((file) => file.uploaded).filter((file) => file !== null);
    if (text === '' && uploaded.length === 0) this.parts.storage.remove(this.#key);
    else this.parts.storage.write(this.#key, JSON.stringify({ text, files: uploaded }));
  }
}

export function isUploading(draft: Draft): boolean {
  return draft.files.some((file) => file.uploaded === null && file.problem === null);
}

export function isTooLong(text: string): boolean {
  // No character takes more than three bytes for each of its UTF-16 units, so most texts need no counting.
  return text.length * 3 > TEXT_BYTES_MAX && new TextEncoder().encode(text).length > TEXT_BYTES_MAX;
}

/** Something to send, everything uploaded, nothing refused. */
export function canSend(draft: Draft): boolean {
  if (draft.files.some((file) => file.uploaded === null) || isTooLong(draft.text)) return false;
  return draft.text.trim() !== '' || draft.files.length > 0;
}

function isEmpty(draft: Draft): boolean {
  return draft.text === '' && draft.files.length === 0;
}

function shownAs(file: Uploaded): DraftFile {
  return { key: file.id, name: file.name, mediaType: file.mediaType, size: file.size, share: 1, uploaded: file, problem: null, preview: null };
}

function parsed(stored: string | null): { text: string; files: Uploaded[] } | null {
  if (stored === null) return null;
  try {
    const kept = JSON.parse(stored) as { text: string; files: Uploaded[] };
    return typeof kept.text === 'string' && Array.isArray(kept.files) ? kept : null;
  } catch {
    return null; // not written by this page
  }
}
