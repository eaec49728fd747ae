-- Facts behind the indicator, one row for each agent that has worked. What waits for the owner is read from open_calls.

CREATE TABLE indicator (
  agent uuid PRIMARY KEY,
  -- Executions that run.
  running integer NOT NULL,
  failed_message uuid,
  failed_ordinal bigint,
  failed_code text,
  changed bigint NOT NULL
) WITH (fillfactor = 50);
