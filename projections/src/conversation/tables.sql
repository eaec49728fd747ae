-- Conversations and everything that stands in them, in the order in which it was admitted.

CREATE TABLE conversations (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  kind text NOT NULL,
  title text NOT NULL,
  connection text NOT NULL,
  opened_ms bigint NOT NULL,
  changed bigint NOT NULL,
  PRIMARY KEY (agent, id)
);

CREATE INDEX conversations_by_change ON conversations (agent, changed);

-- place is the ordinal of the event that first showed the entry. A task's result is kept and not shown; a removed entry is a tombstone.
CREATE TABLE entries (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  conversation uuid NOT NULL,
  place bigint NOT NULL,
  changed bigint NOT NULL,
  kind text NOT NULL,
  role text NOT NULL,
  author text NOT NULL,
  body text NOT NULL,
  status text NOT NULL,
  created_ms bigint NOT NULL,
  reply_to uuid,
  reply uuid,
  incomplete boolean NOT NULL,
  attempt integer NOT NULL,
  code text NOT NULL,
  -- Parameters of a notice as JSON: [{"name", "value"}]; empty for none.
  params text NOT NULL,
  attachments integer NOT NULL,
  origin text NOT NULL,
  shown boolean NOT NULL,
  removed boolean NOT NULL,
  PRIMARY KEY (agent, id)
);

CREATE INDEX entries_by_place ON entries (agent, conversation, place) WHERE (shown OR kind = 'REPORT') AND NOT removed;
CREATE INDEX entries_by_change ON entries (agent, changed) WHERE shown;

CREATE TABLE attachments (
  agent uuid NOT NULL,
  entry uuid NOT NULL,
  idx integer NOT NULL,
  id text NOT NULL,
  name text NOT NULL,
  media_type text NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 text NOT NULL,
  blob text NOT NULL,
  origin text NOT NULL,
  PRIMARY KEY (agent, entry, idx)
);

CREATE INDEX attachments_by_file ON attachments (agent, id);
