-- Files that tasks handed over; each file itself stands in attachments, under the output's id.

CREATE TABLE outputs (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  task uuid NOT NULL,
  conversation uuid NOT NULL,
  place bigint NOT NULL,
  changed bigint NOT NULL,
  caption text NOT NULL,
  source text NOT NULL,
  created_ms bigint NOT NULL,
  PRIMARY KEY (agent, id)
);

CREATE INDEX outputs_by_place ON outputs (agent, place);
