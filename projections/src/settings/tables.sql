-- Each agent's settings as they are now, whole.

CREATE TABLE settings (
  agent uuid PRIMARY KEY,
  version bigint NOT NULL,
  time_zone text NOT NULL,
  language text NOT NULL,
  concurrency integer NOT NULL,
  model text NOT NULL,
  effort text NOT NULL,
  name text NOT NULL,
  avatar text NOT NULL,
  changed bigint NOT NULL
);
