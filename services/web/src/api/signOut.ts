/**
 * Ends this browser's session, or every session of the account.
 *
 * Invariant: `true` is answered only when the session certainly counts no longer.
 */
export type SignOut = (everywhere: boolean) => Promise<boolean>;

const TIMEOUT_MS = 20_000;

/** Makes a sign-out at one address. */
export function signerOut(url: string, send: typeof fetch = fetch.bind(globalThis)): SignOut {
  return async (everywhere) => {
    try {
      const response = await send(everywhere ? `${url}/everywhere` : url, {
        method: 'POST',
        credentials: 'same-origin',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      // Whoever is not signed in any more has nothing left to end.
      return response.ok || response.status === 401;
    } catch {
      return false; // nobody reached, or nobody answered
    }
  };
}
