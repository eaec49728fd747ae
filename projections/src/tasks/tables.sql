-- Background tasks, each with how far it is. What a task did stands in task_entries, what it waits for in actions.

CREATE TABLE tasks (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  conversation uuid NOT NULL,
  asked_in uuid NOT NULL,
  title text NOT NULL,
  goal text NOT NULL,
  started_by text NOT NULL,
  -- The ordinal of its start, and its place among all tasks.
  place bigint NOT NULL,
  changed bigint NOT NULL,
  state text NOT NULL,
  -- An execution runs; a paused one may still have a tool to finish.
  running boolean NOT NULL,
  -- Why it waits, is paused or failed, as a code; empty otherwise.
  reason text NOT NULL,
  detail text NOT NULL,
  needs_owner boolean NOT NULL,
  run integer NOT NULL,
  execution integer NOT NULL,
  revision bigint NOT NULL,
  instructions integer NOT NULL,
  outputs integer NOT NULL,
  created_ms bigint NOT NULL,
  changed_ms bigint NOT NULL,
  ended_ms bigint,
  -- The entry and the ordinal of its newest result, and the reply that tells it.
  result uuid,
  result_place bigint,
  report uuid,
  PRIMARY KEY (agent, id)
);

CREATE INDEX tasks_by_place ON tasks (agent, place);
CREATE INDEX tasks_by_change ON tasks (agent, changed);
CREATE INDEX tasks_open ON tasks (agent, changed) WHERE ended_ms IS NULL;
CREATE INDEX tasks_needing_the_owner ON tasks (agent) WHERE needs_owner;
CREATE INDEX tasks_with_result ON tasks (agent, result_place) WHERE result_place IS NOT NULL;
