/**
 * The text of a reply that is being written, put together from its pieces.
 *
 * Invariants: a piece of a lower attempt changes nothing; the same piece twice changes nothing; the text never gets shorter
 * within an attempt; pieces that came early wait until the hole before them is filled.
 */
export type Piece = { messageId: string; attempt: number; offset: number; text: string };
export type Draft = { attempt: number; text: string; early: Piece[] };

/** A hole that this many pieces can't fill is filled by the whole text that the next subscription brings. */
const EARLY_PIECES_MAX = 256;

/** Adds a piece to a draft; returns the same draft when nothing changed. */
export function withPiece(draft: Draft | undefined, piece: Piece): Draft {
  if (draft && piece.attempt < draft.attempt) return draft;
  const current = draft && piece.attempt === draft.attempt ? draft : { attempt: piece.attempt, text: '', early: [] };
  if (piece.offset > current.text.length) {
    const known = current.early.some((early) => early.offset === piece.offset && early.text === piece.text);
    if (known || current.early.length >= EARLY_PIECES_MAX) return current;
    return { ...current, early: [...current.early, piece] };
  }
  const text = overlaid(current.text, piece);
  if (text === current.text && current === draft) return draft;
  return filled({ ...current, text });
}

function overlaid(text: string, piece: Piece): string {
  const end = piece.offset + piece.text.length;
  return text.slice(0, piece.offset) + piece.text + text.slice(end);
}

/** Lays the pieces that came early onto the text, as far as they now fit. */
function filled(draft: Draft): Draft {
  let { text } = draft;
  const waiting = [...draft.early].sort((a, b) => a.offset - b.offset);
  while (waiting[0] && waiting[0].offset <= text.length) {
    text = overlaid(text, waiting.shift() as Piece);
  }
  return { attempt: draft.attempt, text, early: waiting };
}
