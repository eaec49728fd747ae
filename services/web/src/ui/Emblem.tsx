/** The agent's picture: its initial on the product's colour, or the product's own sign while it has no name. */
import type { ReactNode } from 'react';

type Props = { name?: string; size?: 'small' | 'large' };

export function Emblem({ name = '', size = 'small' }: Props): ReactNode {
  const initial = [...name.trim()][0]?.toUpperCase();
  return (
    <span className={`emblem ${size}`} aria-hidden="true">
      {initial ?? (
        <svg viewBox="0 0 64 64">
          <path d="M18 22a6 6 0 0 1 6-6h16a6 6 0 0 1 6 6v14a6 6 0 0 1-6 6H31l-8 7v-7a5 5 0 0 1-5-5z" fill="currentColor" />
        </svg>
      )}
    </span>
  );
}
