/** The bar between the conversation and the composer with everything that waits for the owner. Nothing waits: nothing is shown. */
import { useMemo, type ReactNode } from 'react';
import { useStore } from '../state/store';
import { waiting } from '../state/work';
import { useText } from '../text/text';
import { ActionCard } from './ActionCard';
import { usePage } from './context';

export function NeedsBar(): ReactNode {
  const { t, count } = useText();
  const work = useStore(usePage().store, (state) => state.work);
  const actions = useMemo(() => waiting(work), [work]);
  return (
    <>
      <p className="hidden" role="status">
        {actions.length > 0 && `${t('action.title')}: ${count('action.count', actions.length)}`}
      </p>
      {actions.length > 0 && (
        <section className="needs" aria-label={t('action.title')} data-testid="needs">
          <h2>
            {t('action.title')} <span>{count('action.count', actions.length)}</span>
          </h2>
          <ul>
            {actions.map((action) => (
              <ActionCard key={action.id} action={action} />
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
