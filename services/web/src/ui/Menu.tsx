/** The page's menu: opens by button, moves by arrow keys, closes by Escape or a click elsewhere. */
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { useText } from '../text/text';
import { usePage } from './context';
import { MenuIcon, PulseIcon, SettingsIcon, SignOutEverywhereIcon, SignOutIcon } from './icons';
import { useReport } from './problems';

export type PanelName = 'settings' | 'system' | 'signOutEverywhere';

export function Menu({ openPanel }: { openPanel: (panel: PanelName) => void }): ReactNode {
  const { t } = useText();
  const { signOut } = usePage();
  const report = useReport();
  const [open, setOpen] = useState(false);
  const whole = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!open) return;
    whole.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    const closeOutside = (event: PointerEvent) => {
      if (!whole.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', closeOutside);
    return () => document.removeEventListener('pointerdown', closeOutside);
  }, [open]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && open) {
      event.stopPropagation();
      setOpen(false);
      button.current?.focus();
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const items = [...(whole.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
      const at = items.indexOf(document.activeElement as HTMLElement);
      items.at((at + (event.key === 'ArrowDown' ? 1 : -1)) % items.length)?.focus();
    } else if (event.key === 'Tab') {
      setOpen(false);
    }
  };
  const choose = (panel: PanelName) => {
    setOpen(false);
    button.current?.focus();
    openPanel(panel);
  };

  const leave = () => {
    setOpen(false);
    button.current?.focus();
    report(null);
    void signOut(false).then((ended) => !ended && report('notSignedOut'));
  };

  return (
    <div className="menu" ref={whole} onKeyDown={open ? onKeyDown : undefined}>
      <button ref={button} type="button" className="icon-button" aria-label={t('bar.menu')} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
        <MenuIcon />
      </button>
      {open && (
        <div className="menu-list" role="menu" aria-label={t('bar.menu')}>
          <button type="button" role="menuitem" tabIndex={-1} onClick={() => choose('settings')}>
            <SettingsIcon />
            {t('menu.settings')}
          </button>
          <button type="button" role="menuitem" tabIndex={-1} onClick={() => choose('system')}>
            <PulseIcon />
            {t('menu.system')}
          </button>
          <hr role="separator" />
          <button type="button" role="menuitem" tabIndex={-1} onClick={leave} data-testid="sign-out">
            <SignOutIcon />
            {t('menu.signOut')}
          </button>
          <button type="button" role="menuitem" tabIndex={-1} onClick={() => choose('signOutEverywhere')} data-testid="sign-out-everywhere">
            <SignOutEverywhereIcon />
            {t('menu.signOutEverywhere')}
          </button>
        </div>
      )}
    </div>
  );
}
