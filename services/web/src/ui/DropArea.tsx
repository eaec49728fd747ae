/** Takes files that are dropped anywhere on the page, and says so while they hover. */
import { useEffect, useState, type ReactNode } from 'react';
import { useText } from '../text/text';
import { usePage } from './context';
import { PlusIcon } from './icons';

export function DropArea(): ReactNode {
  const { t } = useText();
  const { draft } = usePage();
  const [hovering, setHovering] = useState(false);
  useEffect(() => {
    const carriesFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const over = (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      setHovering(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setHovering(false);
    };
    const drop = (event: DragEvent) => {
      setHovering(false);
      if (!carriesFiles(event)) return;
      event.preventDefault();
      draft.add([...(event.dataTransfer?.files ?? [])]);
    };
    window.addEventListener('dragover', over);
    window.addEventListener('dragleave', leave);
    window.addEventListener('drop', drop);
    return () => {
      window.removeEventListener('dragover', over);
      window.removeEventListener('dragleave', leave);
      window.removeEventListener('drop', drop);
    };
  }, [draft]);
  if (!hovering) return null;
  return (
    <div className="drop-area" aria-hidden="true">
      <p>
        <PlusIcon />
        {t('composer.drop')}
      </p>
    </div>
  );
}
