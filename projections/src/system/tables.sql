-- How far the read model has come. These rows move in the same transaction as all others.

-- What the fence knew before the next decision, and which log it was.
CREATE TABLE projection_position (
  part smallint PRIMARY KEY,
  next_position bigint NOT NULL,
  epoch bigint NOT NULL,
  seq bigint NOT NULL,
  last bytea NOT NULL,
  log_id uuid NOT NULL
) WITH (fillfactor = 10);

-- Each agent's newest ordinal in the read model.
CREATE TABLE agent_progress (
  agent uuid PRIMARY KEY,
  ordinal bigint NOT NULL
) WITH (fillfactor = 50);

-- Agents whose facts are skipped from an ordinal on, until their rows are built anew.
CREATE TABLE parked (
  agent uuid PRIMARY KEY,
  part smallint NOT NULL,
  from_ordinal bigint NOT NULL,
  error text NOT NULL
);

-- Why the schema was last emptied and folded anew while it stood; no fact, and compared with nothing.
CREATE TABLE rebuilt (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  because text NOT NULL,
  at_ms bigint NOT NULL
);
