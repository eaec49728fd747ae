import { expect, test } from 'vitest';
import { Probe } from './generated';
import { requester, RequestError } from './request';

const answering = (status: number, body: string) => requester('/graphql', async () => new Response(body, { status }));
const failureOf = async (status: number, body: string) => {
  const cause = await answering(status, body)(Probe, {}).catch((error: unknown) => error);
  return cause instanceof RequestError ? cause.failure : cause;
};

test('an answer with data is that data', async () => {
  expect(await answering(200, '{"data":{"viewer":{"account":"a1"}}}')(Probe, {})).toEqual({ viewer: { account: 'a1' } });
});

test('every way to fail is told apart', async () => {
  expect(await failureOf(401, '')).toBe('signedOut');
  expect(await failureOf(200, '{"errors":[{"message":"x","extensions":{"code":"UNAUTHENTICATED"}}]}')).toBe('signedOut');
  expect(await failureOf(413, '')).toBe('tooLarge');
  expect(await failureOf(400, '{"errors":[{"message":"unknown field"}]}')).toBe('refused');
  expect(await failureOf(403, 'not for you')).toBe('refused');
  expect(await failureOf(403, '{"errors":[{"message":"x","extensions":{"code":"FOREIGN_ORIGIN"}}]}')).toBe('foreign');
  expect(await failureOf(200, '{"data":null,"errors":[{"message":"Unknown field","locations":[{"line":1,"column":9}]}]}')).toBe('refused');
  expect(await failureOf(200, '{"data":null,"errors":[{"message":"internal error","path":["agent"],"locations":[{"line":1,"column":9}],"extensions":{"code":"INTERNAL"}}]}')).toBe('unclear');
  const unconfirmed = '{"data":null,"errors":[{"message":"it is not known","path":["sendMessage"],"locations":[{"line":1,"column":9}],"extensions":{"code":"UNCONFIRMED"}}]}';
  expect(await failureOf(200, unconfirmed)).toBe('unclear');
  expect(await failureOf(429, '')).toBe('unclear');
  expect(await failureOf(502, '<html>bad gateway</html>')).toBe('unclear');
  expect(await failureOf(200, '{"data":null,"errors":[{"message":"internal error"}]}')).toBe('unclear');
  expect(await failureOf(200, '{"data":{"viewer"')).toBe('unclear');
});

test('a line that is down is told from a server that fails', async () => {
  const request = requester('/graphql', () => Promise.reject(new TypeError('failed to fetch')));
  await expect(request(Probe, {})).rejects.toMatchObject({ failure: 'unreached' });
});
