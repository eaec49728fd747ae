/** A whole screen with one thing to say: sign in, not reachable, out of date. */
import type { ReactNode } from 'react';
import { Emblem } from './Emblem';

type Props = { testId: string; title: string; children: ReactNode };

export function Screen({ testId, title, children }: Props): ReactNode {
  return (
    <main className="screen" data-testid={testId}>
      <div className="screen-card">
        <Emblem size="large" />
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}
