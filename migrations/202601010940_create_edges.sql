-- Small things at the edge that decide nothing.

-- When somebody was last seen, for the page.
CREATE TABLE ops.presence (
  account uuid PRIMARY KEY,
  seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Names of uploads until they are attached; their bytes lie in staging/ for a day.
CREATE TABLE ops.uploads (
  id uuid PRIMARY KEY,
  agent uuid NOT NULL,
  name text NOT NULL,
  media_type text NOT NULL,
  size bigint NOT NULL CHECK (size >= 0),
  sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX uploads_by_age ON ops.uploads (created_at);

-- Token buckets: what is left of each (subject, limit name) at an instant. Unlogged: after a crash everybody starts with a full bucket.
CREATE UNLOGGED TABLE ops.rate (
  subject text NOT NULL,
  name text NOT NULL,
  left_over double precision NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (subject, name)
) WITH (fillfactor = 50);
