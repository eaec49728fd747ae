/**
 * One GraphQL request over HTTP, with every way in which it can fail told apart.
 *
 * Invariant: a failure says whether the request can have had an effect. `unreached` and `unclear` can be repeated with the
 * same request key; `refused` can't succeed by repeating; `signedOut` waits for a new sign-in; `foreign` means that the page was
 * opened under an address that the agent does not take for its own.
 */
import type { Operation } from './generated';

export type Failure = 'unreached' | 'unclear' | 'refused' | 'tooLarge' | 'signedOut' | 'foreign';

export class RequestError extends Error {
  constructor(
    readonly failure: Failure,
    message: string,
  ) {
    super(message);
    this.name = 'RequestError';
  }
}

export type Request = <Data, Variables>(operation: Operation<Data, Variables>, variables: Variables) => Promise<Data>;

/** Longer than the two seconds for which a mutation waits for its decision, with room for a slow line. */
const REQUEST_TIMEOUT_MS = 20_000;

type GraphqlError = { message: string; path?: unknown; locations?: unknown; extensions?: { code?: unknown } };
type GraphqlAnswer = { data?: unknown; errors?: GraphqlError[] };

/** Makes a sender of requests to one address. */
export function requester(url: string, send: typeof fetch = fetch.bind(globalThis)): Request {
  return async (operation, variables) => {
    const response = await reach(send, url, { operationName: operation.name, query: operation.text, variables });
    const answer = await readAnswer(response);
    return dataOf(response.status, answer) as never;
  };
}

async function reach(send: typeof fetch, url: string, body: unknown): Promise<Response> {
  try {
    return await send(url, {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
  } catch (cause) {
    throw new RequestError('unreached', String(cause));
  }
}

async function readAnswer(response: Response): Promise<GraphqlAnswer | null> {
  if (response.status === 401) throw new RequestError('signedOut', 'not signed in');
  if (response.status === 413) throw new RequestError('tooLarge', 'the request is too large');
  try {
    return (await response.json()) as GraphqlAnswer;
  } catch {
    return null; // a proxy's own page, or a line that broke in the middle: the status says the rest
  }
}

function dataOf(status: number, answer: GraphqlAnswer | null): unknown {
  const errors = answer?.errors ?? [];
  if (errors.some((error) => error.extensions?.code === 'UNAUTHENTICATED')) {
    throw new RequestError('signedOut', 'not signed in');
  }
  if (errors.some((error) => error.extensions?.code === 'FOREIGN_ORIGIN')) {
    throw new RequestError('foreign', 'the page has a foreign address');
  }
  if (errors.some(isRefusal)) throw new RequestError('refused', errors[0]?.message ?? 'refused');
  if (status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429) {
    throw new RequestError('refused', errors[0]?.message ?? `refused with status ${status}`);
  }
  if (errors.length > 0 || !answer?.data) {
    throw new RequestError('unclear', errors[0]?.message ?? `answered with status ${status}`);
  }
  return answer.data;
}

/** The document or its variables don't fit the server's schema: an error about a place in the document, before anything ran. */
function isRefusal({ path, locations, extensions }: GraphqlError): boolean {
  const code = extensions?.code;
  return code === 'DOCUMENT_REFUSED' || code === 'VALUE_INVALID' || (code === undefined && path === undefined && locations !== undefined);
}
