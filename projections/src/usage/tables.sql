-- What each request to a model used and cost. NULL is not known, which is not 0.

CREATE TABLE usage (
  agent uuid NOT NULL,
  job uuid NOT NULL,
  step integer NOT NULL,
  execution integer NOT NULL,
  model text NOT NULL,
  effort text NOT NULL,
  finish text NOT NULL,
  attempts integer NOT NULL,
  started_ms bigint NOT NULL,
  ended_ms bigint NOT NULL,
  input_tokens bigint,
  output_tokens bigint,
  cached_tokens bigint,
  reasoning_tokens bigint,
  price_micros bigint,
  currency text,
  at_ms bigint NOT NULL,
  changed bigint NOT NULL,
  PRIMARY KEY (agent, job, step)
);

CREATE INDEX usage_by_time ON usage (agent, at_ms);
