/** Whether the window has room for tasks and outputs beside the conversation. */
import { useSyncExternalStore } from 'react';

const QUERY = '(width >= 1180px)';

export function useWide(): boolean {
  return useSyncExternalStore(watch, () => window.matchMedia(QUERY).matches);
}

function watch(changed: () => void): () => void {
  const query = window.matchMedia(QUERY);
  query.addEventListener('change', changed);
  return () => query.removeEventListener('change', changed);
}
