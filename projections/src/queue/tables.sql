-- Work that waits for a worker or is being carried out, and the tool calls that it has open. A job leaves with its end.

CREATE TABLE jobs (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  kind text NOT NULL,
  conversation uuid NOT NULL,
  reply uuid NOT NULL,
  -- CLAIMABLE or RUNNING; since_ms: since when.
  state text NOT NULL,
  -- A task that waits or is paused has no turn; its execution may still run until its last tool has ended.
  turn boolean NOT NULL,
  execution integer NOT NULL,
  since_ms bigint NOT NULL,
  limit_ms bigint,
  changed bigint NOT NULL,
  PRIMARY KEY (agent, id)
);

CREATE INDEX jobs_claimable ON jobs (kind, since_ms, agent, id) WHERE state = 'CLAIMABLE' AND turn;
CREATE INDEX jobs_running ON jobs (since_ms) WHERE state = 'RUNNING';

-- Calls that have begun and are not settled. An external one whose outcome nobody knows stays until somebody says.
CREATE TABLE open_calls (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  job uuid NOT NULL,
  execution integer NOT NULL,
  step integer NOT NULL,
  idx integer NOT NULL,
  tool text NOT NULL,
  class text NOT NULL,
  action text NOT NULL,
  limit_millis bigint NOT NULL,
  started_ms bigint NOT NULL,
  unknown boolean NOT NULL,
  changed bigint NOT NULL,
  PRIMARY KEY (agent, id)
);

CREATE INDEX open_calls_by_job ON open_calls (agent, job);
