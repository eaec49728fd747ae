-- What stands in the conversations of tasks: goal, instructions, words, tool calls, checkpoints, files, results, in the order of the log.

CREATE TABLE task_entries (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  task uuid NOT NULL,
  -- The ordinal of the event that first showed the entry.
  place bigint NOT NULL,
  changed bigint NOT NULL,
  kind text NOT NULL,
  origin text NOT NULL,
  status text NOT NULL,
  -- Words, or a tool's result.
  body text NOT NULL,
  -- A tool's name, or a code of what happened.
  code text NOT NULL,
  -- A tool call's canonical action.
  action text NOT NULL,
  -- Why a call was skipped or failed, or what became of an unknown one.
  reason text NOT NULL,
  -- The whole result stands in a blob.
  cut boolean NOT NULL,
  attachments integer NOT NULL,
  created_ms bigint NOT NULL,
  PRIMARY KEY (agent, id)
);

CREATE INDEX task_entries_by_place ON task_entries (agent, task, place);
CREATE INDEX task_entries_by_change ON task_entries (agent, changed);
