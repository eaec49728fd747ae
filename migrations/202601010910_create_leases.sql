-- Leases prove that a process lives; they never decide anything. Their clock is the database's, so nodes need not agree on the time.

-- The decider's lease on a partition. epoch only grows and is written here before it is announced in the log. clean says that the last holder gave the row
-- back; the note names the input that a start after an unclean end is deciding, so that an input that kills its process is found out.
CREATE TABLE ops.partition_lease (
  part smallint PRIMARY KEY,
  epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
  node uuid,
  process uuid,
  expires_at timestamptz NOT NULL DEFAULT '-infinity',
  clean boolean NOT NULL DEFAULT true,
  note_input uuid,
  note_quarantined_before integer NOT NULL DEFAULT 0,
  -- Who wrote the note: only the death of that process counts.
  note_process uuid,
  note_deaths integer NOT NULL DEFAULT 0,
  -- Whose death was counted last: if it turns out to live, it takes the count back.
  note_dead_process uuid,
  CHECK ((node IS NULL) = (process IS NULL))
) WITH (fillfactor = 10);

-- Leases on work: executions of jobs of every kind. The log grants; this row shows who asked and that it lives.
CREATE TABLE ops.leases (
  kind text NOT NULL,
  job uuid NOT NULL,
  agent uuid NOT NULL,
  node uuid NOT NULL,
  process uuid NOT NULL,
  -- The ExecutionAsked that this claim led to, and the execution that the log gave it.
  ask uuid,
  execution integer,
  claimed_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (kind, job)
) WITH (fillfactor = 50);

-- Renewal goes by process, a restarted node's own earlier leases by node. expires_at is left out of every index so that renewals stay heap-only.
CREATE INDEX leases_by_process ON ops.leases (process);
CREATE INDEX leases_by_node ON ops.leases (node);

-- Processes of this installation, for the wake-up between them (NOTIFY is sent only while another one is here) and for the system page.
CREATE TABLE ops.nodes (
  process uuid PRIMARY KEY,
  node uuid NOT NULL,
  roles text[] NOT NULL,
  listen text,
  version text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
