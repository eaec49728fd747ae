import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Markdown } from './Markdown';

const drawn = (text: string) => renderToStaticMarkup(<Markdown text={text} />);

test('HTML in a reply is shown as text and never run', () => {
  const html = drawn('<script>alert(1)</script> and <img src=x onerror=alert(1)>');
  expect(html).not.toMatch(/<script|<img/);
  expect(html).toContain('&lt;script&gt;');
});

test('a picture is named and linked, never loaded', () => {
  const html = drawn('![pixel](https://example.com/p.png)');
  expect(html).not.toContain('<img');
  expect(html).toContain('href="https://example.com/p.png"');
});

test('links lead only to web and mail addresses and open apart', () => {
  expect(drawn('[x](javascript:alert(1))')).not.toContain('href');
  expect(drawn('[x](data:text/html,hi)')).not.toContain('href');
  expect(drawn('[x](/files/secret)')).not.toContain('href');
  const html = drawn('[x](https://example.com)');
  expect(html).toContain('rel="noopener noreferrer"');
  expect(html).toContain('target="_blank"');
});

test('lists, tables and code are drawn', () => {
  const html = drawn('- a\n- b\n\n| A | B |\n|---|---|\n| 1 | 2 |\n\n```js\nlet x = 1;\n```');
  expect(html).toMatch(/<ul>.*<table>.*<pre/s);
});
