-- What a decider wrote down of its partition, so that a start reads only the tail. Derived from the log: it may be dropped at any time, all four tables of
-- one (partition, fold version) together. Two fold versions stand side by side while a new binary's state is being built.

CREATE TABLE ops.decider_checkpoint (
  part smallint NOT NULL,
  fold_version integer NOT NULL,
  next_input bigint NOT NULL,
  -- The fence: next_position, epoch, seq and the hash of the whole record before.
  next_position bigint NOT NULL,
  epoch bigint NOT NULL,
  seq bigint NOT NULL,
  last bytea NOT NULL CHECK (octet_length(last) = 32),
  written_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (part, fold_version)
) WITH (fillfactor = 50);

-- The root (thing = nil) and the things of each agent.
CREATE TABLE ops.entity_state (
  part smallint NOT NULL,
  fold_version integer NOT NULL,
  agent uuid NOT NULL,
  thing uuid NOT NULL,
  state bytea NOT NULL,
  PRIMARY KEY (part, fold_version, agent, thing)
);

-- Idempotency keys that a decision recorded, with the input's position and id; content is the hash that tells a conflict from a repeat (client keys only).
CREATE TABLE ops.input_keys (
  part smallint NOT NULL,
  fold_version integer NOT NULL,
  agent uuid NOT NULL,
  producer text NOT NULL,
  key bytea NOT NULL CHECK (octet_length(key) = 32),
  position bigint NOT NULL,
  cause uuid NOT NULL,
  content bytea CHECK (octet_length(content) = 32),
  at_ms bigint NOT NULL,
  PRIMARY KEY (part, fold_version, agent, producer, key)
);

-- Keys leave after the repeat window, by the log's own time.
CREATE INDEX input_keys_by_age ON ops.input_keys (part, fold_version, at_ms);

-- Which input the latest decision not marked held answered at each input position. A start compares this with the input log downwards, and so notices an
-- input log that was cut and grew again; repeats have no row in input_keys, hence a table of its own.
CREATE TABLE ops.input_causes (
  part smallint NOT NULL,
  fold_version integer NOT NULL,
  position bigint NOT NULL,
  cause uuid NOT NULL,
  PRIMARY KEY (part, fold_version, position)
);
