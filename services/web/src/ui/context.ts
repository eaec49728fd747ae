/** Hands the page's parts to the components. */
import { createContext, useContext } from 'react';
import type { Page } from '../state/page';

export const PageContext = createContext<Page | null>(null);

export function usePage(): Page {
  const page = useContext(PageContext);
  if (!page) throw new Error('a component stands outside of the page');
  return page;
}
