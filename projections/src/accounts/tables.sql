-- Accounts of the installation. agent is the installation's own agent, to whose log the facts belong; an account's own agent has the account's id.

CREATE TABLE accounts (
  agent uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  role text NOT NULL,
  added_ms bigint NOT NULL,
  changed bigint NOT NULL,
  PRIMARY KEY (agent, id)
);
