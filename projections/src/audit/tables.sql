-- One compact row for every fact. Bodies are not kept: they are read from the log by position.

CREATE TABLE audit (
  agent uuid NOT NULL,
  ordinal bigint NOT NULL,
  part smallint NOT NULL,
  position bigint NOT NULL,
  id uuid NOT NULL,
  type text COLLATE "C" NOT NULL,
  at_ms bigint NOT NULL,
  actor text NOT NULL,
  origin text NOT NULL,
  cause uuid NOT NULL,
  correlation uuid NOT NULL,
  input_position bigint NOT NULL,
  thing uuid,
  PRIMARY KEY (agent, ordinal)
);

CREATE INDEX audit_by_thing ON audit (agent, thing, ordinal) WHERE thing IS NOT NULL;
CREATE INDEX audit_by_type ON audit (agent, type, ordinal);
