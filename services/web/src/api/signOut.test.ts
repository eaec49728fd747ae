import { expect, test, vi } from 'vitest';
import { signerOut } from './signOut';

const answering = (status: number) => vi.fn<typeof fetch>(async () => new Response(null, { status }));

test('a sign-out goes to its own address, with the cookie', async () => {
  const send = answering(204);
  expect(await signerOut('/sign-out', send)(false)).toBe(true);
  expect(await signerOut('/sign-out', send)(true)).toBe(true);
  expect(send.mock.calls.map(([url]) => url)).toEqual(['/sign-out', '/sign-out/everywhere']);
  expect(send.mock.calls.every(([, init]) => init?.method === 'POST' && init.credentials === 'same-origin')).toBe(true);
});

test('only a session that counts no longer is said to be ended', async () => {
  expect(await signerOut('/sign-out', answering(401))(true)).toBe(true);
  for (const status of [403, 500, 503]) expect(await signerOut('/sign-out', answering(status))(false)).toBe(false);
  const nobody = vi.fn<typeof fetch>(async () => Promise.reject(new TypeError('Failed to fetch')));
  expect(await signerOut('/sign-out', nobody)(false)).toBe(false);
});
