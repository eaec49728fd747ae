/**
 * Uploads: one file by `POST /files`, with progress.
 *
 * Invariant: an upload is not part of any message until a message names its id, so repeating or dropping one is harmless.
 */
export type Uploaded = { id: string; name: string; mediaType: string; size: number };
export type UploadFailure = 'tooLarge' | 'signedOut' | 'unreached' | 'refused';

export type Upload = { done: Promise<Uploaded>; cancel: () => void };

export class UploadError extends Error {
  constructor(readonly failure: UploadFailure) {
    super(failure);
    this.name = 'UploadError';
  }
}

/** The server's own limit; checked here too so that nobody waits for a refusal. */
export const FILE_BYTES_MAX = 20 * 1024 * 1024;

const UNKNOWN_MEDIA_TYPE = 'application/octet-stream';

/** Sends a file. `XMLHttpRequest`, because `fetch` can't tell how much of a body has gone out. */
export function upload(file: File, progressed: (share: number) => void): Upload {
  const request = new XMLHttpRequest();
  const done = new Promise<Uploaded>((resolve, reject) => {
    request.open('POST', `/files?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader('content-type', file.type || UNKNOWN_MEDIA_TYPE);
    request.responseType = 'json';
    request.upload.onprogress = (event) => {
      if (event.lengthComputable && event.total > 0) progressed(event.loaded / event.total);
    };
    request.onload = () => {
      const uploaded = request.status < 300 ? uploadedFrom(request.response) : null;
      if (uploaded) resolve(uploaded);
      else reject(new UploadError(failureOf(request.status)));
    };
    request.onerror = () => reject(new UploadError('unreached'));
    request.onabort = () => reject(new UploadError('unreached'));
    request.send(file);
  });
  return { done, cancel: () => request.abort() };
}

function failureOf(status: number): UploadFailure {
  if (status === 413) return 'tooLarge';
  if (status === 401) return 'signedOut';
  return status >= 500 || status < 300 ? 'unreached' : 'refused';
}

function uploadedFrom(body: unknown): Uploaded | null {
  if (typeof body !== 'object' || body === null) return null;
  const { id, name, mediaType, size } = body as Partial<Uploaded>;
  if (typeof id !== 'string' || typeof name !== 'string' || typeof mediaType !== 'string' || typeof size !== 'number') return null;
  return { id, name, mediaType, size };
}
