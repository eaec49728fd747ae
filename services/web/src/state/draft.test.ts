/** Proves CHN-3 for what the composer keeps. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FILE_BYTES_MAX, UploadError, type Uploaded, type UploadFailure } from '../api/upload';
import { canSend, ComposerDraft, FILES_MAX, isTooLong, TEXT_BYTES_MAX } from './draft';
import { memoryStorage, type Storage } from './storage';

type Running = { file: File; resolve: (uploaded: Uploaded) => void; fail: (failure: UploadFailure) => void; cancelled: boolean };

let storage: Storage;
let running: Running[];
let draft: ComposerDraft;

const open = () => {
  const opened = new ComposerDraft({
    storage,
    upload: (file) => {
      const entry: Running = { file, resolve: () => {}, fail: () => {}, cancelled: false };
      const done = new Promise<Uploaded>((resolve, reject) => {
        entry.resolve = resolve;
        entry.fail = (failure) => reject(new UploadError(failure));
      });
      running.push(entry);
      return { done, cancel: () => void (entry.cancelled = true) };
    },
  });
  opened.open('a1');
  return opened;
};
const file = (name: string, size = 3) => new File([new Uint8Array(size)], name, { type: 'text/plain' });
const uploaded = (name: string): Uploaded => ({ id: `id-${name}`, name, mediaType: 'text/plain', size: 3 });

beforeEach(() => {
  vi.useFakeTimers();
  storage = memoryStorage();
  running = [];
  draft = open();
});

afterEach(() => {
  vi.useRealTimers();
});

test('a message with a file waits until the file is uploaded', async () => {
  draft.setText('see this');
  draft.add([file('a.txt')]);
  expect(draft.take()).toBeNull();
  running[0]?.resolve(uploaded('a.txt'));
  await vi.advanceTimersByTimeAsync(0);
  expect(draft.take()).toEqual({ text: 'see this', files: [uploaded('a.txt')] });
  expect(draft.store.get()).toMatchObject({ text: '', files: [] });
});

test('files alone are a message', async () => {
  draft.add([file('a.txt')]);
  running[0]?.resolve(uploaded('a.txt'));
  await vi.advanceTimersByTimeAsync(0);
  expect(canSend(draft.store.get())).toBe(true);
});

test('a file over the limit is named and never uploaded', () => {
  draft.add([file('big.bin', FILE_BYTES_MAX + 1), file('nothing.txt', 0)]);
  expect(draft.store.get().files.map(({ problem }) => problem)).toEqual(['tooLarge', 'empty']);
  expect(running).toHaveLength(0);
});

test('a removed file is cancelled and does not hold up the message', () => {
  draft.setText('hi');
  draft.add([file('a.txt')]);
  draft.remove(draft.store.get().files[0]?.key ?? '');
  expect(running[0]?.cancelled).toBe(true);
  expect(draft.take()?.files).toEqual([]);
});

test('a failed upload can be tried again', async () => {
  draft.add([file('a.txt')]);
  running[0]?.fail('unreached');
  await vi.advanceTimersByTimeAsync(0);
  const failed = draft.store.get().files[0];
  expect(failed?.problem).toBe('unreached');
  draft.retry(failed?.key ?? '');
  running[1]?.resolve(uploaded('a.txt'));
  await vi.advanceTimersByTimeAsync(0);
  expect(canSend(draft.store.get())).toBe(true);
});

test('no more files than a message may carry are taken', () => {
  draft.add(Array.from({ length: FILES_MAX + 2 }, (_, at) => file(`${at}.txt`)));
  expect(draft.store.get()).toMatchObject({ tooMany: true });
  expect(draft.store.get().files).toHaveLength(FILES_MAX);
});

test('a draft outlives a reload and a sent one does not come back', async () => {
  draft.setText('half a thought');
  draft.add([file('a.txt')]);
  running[0]?.resolve(uploaded('a.txt'));
  await vi.advanceTimersByTimeAsync(1_000);
  const reloaded = open();
  expect(reloaded.store.get().text).toBe('half a thought');
  expect(reloaded.store.get().files[0]?.uploaded).toEqual(uploaded('a.txt'));
  reloaded.take();
  expect(open().store.get()).toMatchObject({ text: '', files: [] });
});

test('the limit of a text counts bytes, not characters', () => {
  expect(isTooLong('a'.repeat(TEXT_BYTES_MAX))).toBe(false);
  expect(isTooLong('a'.repeat(TEXT_BYTES_MAX + 1))).toBe(true);
  expect(isTooLong('字'.repeat(Math.ceil((TEXT_BYTES_MAX + 1) / 3)))).toBe(true);
});

test('white space alone is not a message', () => {
  draft.setText(' \n ');
  expect(draft.take()).toBeNull();
});
