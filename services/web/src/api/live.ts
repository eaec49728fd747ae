/**
 * The live link: one subscription to everything that changes, over graphql-transport-ws.
 *
 * Invariants: a link is used once; whoever opened it decides whether and from which position to open the next. It ends by
 * exactly one call of `ended`.
 */
import { createClient } from 'graphql-ws';
import { Updates, type UpdatesData } from './generated';

export type Envelope = UpdatesData['updates'];
export type LinkEnd = 'lost' | 'signedOut';

export type LinkEvents = {
  opened: () => void;
  received: (envelope: Envelope) => void;
  ended: (end: LinkEnd) => void;
};

/** Opens a link that continues after a position; what it returns closes it without a further event. */
export type OpenLink = (after: string | null, events: LinkEvents) => () => void;

/** The server closes with this code when nobody is signed in. */
const CLOSED_SIGNED_OUT = 4403;
/** We ask for a sign of life this often, so that a sleeping network is noticed within about twenty seconds. */
const KEEP_ALIVE_MS = 12_000;
const PONG_WAIT_MS = 8_000;
const ACKNOWLEDGE_WAIT_MS = 10_000;

/** Makes an opener of links to one address. */
export function linkOpener(url: string): OpenLink {
  return (after, events) => {
    let over = false;
    const end = (how: LinkEnd) => {
      if (over) return;
      over = true;
      events.ended(how);
      void client.dispose();
    };
    let pongTimer: ReturnType<typeof setTimeout> | undefined;
    const client = createClient({
      url,
      retryAttempts: 0,
      keepAlive: KEEP_ALIVE_MS,
      connectionAckWaitTimeout: ACKNOWLEDGE_WAIT_MS,
      on: {
        connected: () => over || events.opened(),
        ping: (received) => {
          if (!received) pongTimer = setTimeout(() => client.terminate(), PONG_WAIT_MS);
        },
        pong: (received) => {
          if (received) clearTimeout(pongTimer);
        },
        closed: (event) => {
          clearTimeout(pongTimer);
          end(closeCode(event) === CLOSED_SIGNED_OUT ? 'signedOut' : 'lost');
        },
      },
    });
    client.subscribe<UpdatesData>(
      { operationName: Updates.name, query: Updates.text, variables: { after } },
      {
        next: (result) => {
          if (!over && result.data) events.received(result.data.updates);
        },
        error: (cause) => end(isUnauthenticated(cause) ? 'signedOut' : 'lost'),
        complete: () => end('lost'),
      },
    );
    return () => {
      if (over) return;
      over = true;
      clearTimeout(pongTimer);
      void client.dispose();
    };
  };
}

function closeCode(event: unknown): number | null {
  return typeof event === 'object' && event !== null && 'code' in event && typeof event.code === 'number' ? event.code : null;
}

function isUnauthenticated(cause: unknown): boolean {
  if (closeCode(cause) === CLOSED_SIGNED_OUT) return true;
  if (!Array.isArray(cause)) return false;
  return cause.some((error: { extensions?: { code?: unknown } }) => error.extensions?.code === 'UNAUTHENTICATED');
}
