/** The composer's draft, for components. */
import { useCallback } from 'react';
import type { Uploaded } from '../api/upload';
import type { Draft } from '../state/draft';
import { useStore } from '../state/store';
import { usePage } from './context';

export const COMPOSER_ID = 'composer';

export function useDraft(): Draft {
  return useStore(usePage().draft.store, (draft) => draft);
}

/** Puts something into the composer to be edited, and goes there. */
export function useEditAgain(): (what: { text: string; attachments: readonly Uploaded[] }) => void {
  const { draft } = usePage();
  return useCallback(
    ({ text, attachments }) => {
      draft.restore(text, attachments);
      document.getElementById(COMPOSER_ID)?.focus();
    },
    [draft],
  );
}
