-- Outside effects: cards that the owner decides on, and external calls that have begun. A settled row stays as it ended.

CREATE TABLE pending_actions (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  -- CARD: id is the card's. EFFECT: id is the call's.
  kind text NOT NULL,
  job uuid NOT NULL,
  call uuid NOT NULL,
  -- The card by which an effect was allowed; it may be the card of an earlier call of the same scope.
  card uuid,
  tool text NOT NULL,
  gate text,
  target text NOT NULL,
  scope text,
  valid_until_ms bigint,
  -- The canonical action, whole: a decision is about exactly this.
  action text NOT NULL,
  state text NOT NULL,
  reason text NOT NULL,
  place bigint NOT NULL,
  changed bigint NOT NULL,
  created_ms bigint NOT NULL,
  settled_ms bigint,
  PRIMARY KEY (agent, id)
);

CREATE INDEX pending_actions_waiting ON pending_actions (agent, place) WHERE state IN ('PENDING', 'UNKNOWN');
CREATE INDEX pending_actions_by_change ON pending_actions (agent, changed);
