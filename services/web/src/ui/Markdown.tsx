/**
 * A reply's Markdown. What the agent writes is untrusted.
 *
 * Invariants: HTML in it is shown as text, never run; links lead only to web and mail addresses and open apart; a picture is
 * named and linked, never loaded, so that reading a reply tells nobody anything.
 */
import { isValidElement, memo, type ReactNode } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { useText } from '../text/text';
import { useCopy } from './clipboard';
import { CheckIcon, CopyIcon } from './icons';

const SAFE_ADDRESS = /^(https?:|mailto:)/i;
const plugins = [remarkGfm];

export const Markdown = memo(function Markdown({ text }: { text: string }): ReactNode {
  return (
    <div className="markdown">
      <ReactMarkdown remarkPlugins={plugins} components={components} urlTransform={safeAddress}>
        {text}
      </ReactMarkdown>
    </div>
  );
});

function safeAddress(address: string): string {
  return SAFE_ADDRESS.test(address) ? address : '';
}

const components: Components = {
  a: ({ href, children }) =>
    href ? (
      <a href={href} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ src, alt }) => <UnloadedPicture address={typeof src === 'string' ? src : ''} name={alt ?? ''} />,
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
  table: ({ children }) => (
    <div className="markdown-table" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
};

function UnloadedPicture({ address, name }: { address: string; name: string }): ReactNode {
  const { t } = useText();
  const label = `${name || address} (${t('message.pictureNotLoaded')})`;
  return address ? (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {label}
    </a>
  ) : (
    <span>{label}</span>
  );
}

function CodeBlock({ children }: { children: ReactNode }): ReactNode {
  const { t } = useText();
  const { copied, copy } = useCopy();
  const label = t(copied ? 'message.copied' : 'message.copyCode');
  return (
    <div className="code-block">
      <pre tabIndex={0}>{children}</pre>
      <button type="button" className="icon-button small" aria-label={label} title={label} onClick={() => copy(textOf(children))}>
        {copied ? <CheckIcon /> : <CopyIcon />}
      </button>
    </div>
  );
}

function textOf(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node);
  if (Array.isArray(node)) return node.map(textOf).join('');
  return isValidElement<{ children?: ReactNode }>(node) ? textOf(node.props.children) : '';
}
