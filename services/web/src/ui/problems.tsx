/** Requests that the reader makes by a button: busy while one runs, and a plain sentence when it did not work. */
import { createContext, useCallback, useContext, useEffect, useRef, useState, type ReactNode } from 'react';
import type { ActionResult } from '../state/actions';
import { useText } from '../text/text';
import { AlertIcon, CloseIcon } from './icons';

const SHOWN_MS = 8_000;

const Report = createContext<(problem: string | null) => void>(() => {});

export function ProblemProvider({ children }: { children: ReactNode }): ReactNode {
  const { t, problem } = useText();
  const [code, setCode] = useState<string | null>(null);
  const toasts = useRef<HTMLDivElement>(null);
  // Above every open panel, also one that covers the page.
  useEffect(() => {
    if (code === null) return;
    toasts.current?.showPopover?.();
    return () => toasts.current?.hidePopover?.();
  }, [code]);
  useEffect(() => {
    if (code === null) return;
    const timer = setTimeout(() => setCode(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [code]);
  return (
    <Report value={setCode}>
      {children}
      <div className="toasts" role="alert" ref={toasts} popover="manual">
        {code !== null && (
          <p className="toast" data-testid="problem">
            <AlertIcon />
            <span>{problem(code)}</span>
            <button type="button" className="icon-button small" aria-label={t('problem.dismiss')} onClick={() => setCode(null)}>
              <CloseIcon />
            </button>
          </p>
        )}
      </div>
    </Report>
  );
}

export function useReport(): (problem: string | null) => void {
  return useContext(Report);
}

/** Runs one action at a time and reports how it failed. */
export function useAction(): { busy: boolean; act: (action: () => Promise<ActionResult>) => void } {
  const report = useReport();
  const [busy, setBusy] = useState(false);
  const act = useCallback(
    (action: () => Promise<ActionResult>) => {
      setBusy(true);
      report(null);
      void action()
        .then((result) => report(result === 'done' ? null : result))
        .finally(() => setBusy(false));
    },
    [report],
  );
  return { busy, act };
}
