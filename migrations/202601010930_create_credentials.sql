-- Credentials and keys. Nothing here is readable by itself: tokens are hashes, keys and secrets are sealed by the master key, which is not in the database.

-- One data key per agent, wrapped by the master key. Erasing an agent deletes the bytes and keeps the instant: readers skip an erased agent, while a key that
-- is simply not there stops the reader.
CREATE TABLE ops.agent_keys (
  agent uuid PRIMARY KEY,
  key_id integer NOT NULL,
  wrapped bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  erased_at timestamptz,
  CHECK ((wrapped IS NULL) = (erased_at IS NOT NULL))
);

-- Secrets that an input names by id; written before that input.
CREATE TABLE ops.secrets (
  id uuid PRIMARY KEY,
  agent uuid NOT NULL,
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX secrets_by_agent ON ops.secrets (agent);

-- Sign-in codes, sessions, API keys, device and task credentials, as SHA-256 of 32 random bytes (no salt: there is nothing to guess).
CREATE TABLE ops.tokens (
  hash bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
  account uuid NOT NULL,
  kind text NOT NULL,
  label text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  used_at timestamptz,
  revoked_at timestamptz
);

CREATE INDEX tokens_by_account ON ops.tokens (account, kind);
