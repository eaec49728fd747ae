#!/usr/bin/env bash
# Opens psql on the database that `pa` uses: PA_DATABASE_URL, or the private Postgres under the data folder.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
DATA=$(realpath -m "${PA_DATA_DIR:-$ROOT/.pa}")
. "$ROOT/infra/lib/say.sh"

if [ -n "${PA_DATABASE_URL:-}" ]; then exec psql "$PA_DATABASE_URL" "$@"; fi
lock=$(find "$DATA" -maxdepth 3 -name postmaster.pid 2>/dev/null | head -n 1)
[ -n "$lock" ] || fail "no private Postgres runs under $DATA; start it with infra/up"
# The lines of postmaster.pid: process, data folder, start, port, socket folder. Without a socket it listens on loopback
# and asks for the password that lies beside its data.
PGPORT=$(sed -n 4p "$lock")
PGHOST=$(sed -n 5p "$lock")
if [ -z "$PGHOST" ]; then
  PGHOST=127.0.0.1
  PGPASSWORD=$(cat "${lock%/*}/../password")
  export PGPASSWORD
fi
export PGHOST PGPORT PGUSER=pa PGDATABASE=pa
exec psql "$@"
