-- Facts behind the indicator, one row for each agent that has worked. What waits for the owner is read from pending_actions and tasks.

CREATE TABLE indicator (
  agent uuid PRIMARY KEY,
  -- Executions that run.
  running integer NOT NULL,
  -- What failed last: a message or a task.
  failed_message uuid,
  failed_task uuid,
  failed_ordinal bigint,
  failed_code text,
  -- The task that was completed last.
  result_task uuid,
  result_ordinal bigint,
  changed bigint NOT NULL
) WITH (fillfactor = 50);
