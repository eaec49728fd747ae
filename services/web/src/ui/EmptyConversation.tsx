/** What stands where the first message will be. */
import type { ReactNode } from 'react';
import { useStore } from '../state/store';
import { useText } from '../text/text';
import { useRehearsal } from './Bar';
import { Emblem } from './Emblem';
import { usePage } from './context';
import { useEditAgain } from './drafts';

const SUGGESTIONS = ['conversation.empty.try1', 'conversation.empty.try2', 'conversation.empty.try3'] as const;
/** What the rehearsal model, which understands nothing, has something to show for. */
const REHEARSAL_SUGGESTIONS = ['conversation.empty.try1', 'conversation.empty.rehearse1', 'conversation.empty.rehearse2'] as const;

export function EmptyConversation(): ReactNode {
  const { t } = useText();
  const name = useStore(usePage().store, (state) => state.settings?.name ?? '');
  const editAgain = useEditAgain();
  const suggestions = useRehearsal() ? REHEARSAL_SUGGESTIONS : SUGGESTIONS;
  return (
    <div className="empty" data-testid="empty">
      <Emblem name={name} size="large" />
      <h2>{name ? t('conversation.empty.title', { name }) : t('conversation.empty.titleUnnamed')}</h2>
      <p>{t('conversation.empty.lead')}</p>
      <ul>
        {suggestions.map((key) => (
          <li key={key}>
            <button type="button" className="button quiet" onClick={() => editAgain({ text: t(key), attachments: [] })}>
              {t(key)}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
