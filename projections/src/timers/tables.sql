-- Timers that run. One that was cancelled or has elapsed has no row.

CREATE TABLE timers (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  purpose text NOT NULL,
  due_ms bigint NOT NULL,
  thing uuid,
  changed bigint NOT NULL,
  PRIMARY KEY (agent, id)
);

CREATE INDEX timers_by_due ON timers (due_ms, agent, id);
