#!/usr/bin/env bash
# Opens psql on the database that `pa` uses: PA_DATABASE_URL, or the private Postgres under the data folder.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
DATA=$(realpath -m "${PA_DATA_DIR:-$ROOT/.pa}")
. "$ROOT/infra/lib/say.sh"

if [ -n "${PA_DATABASE_URL:-}" ]; then exec psql "$PA_DATABASE_URL" "$@"; fi
lock=$(find "$DATA" -maxdepth 3 -name postmaster.pid 2>/dev/null | head -n 1)
[ -n "$lock" ] || fail "no private Postgres runs under $DATA; start it with infra/up"
# The lines of postmaster.pid: process, data folder, start, port, socket folder.
port=$(sed -n 4p "$lock")
socket=$(sed -n 5p "$lock")
user=$(stat -c %U "$lock")
export PGHOST=${socket:-127.0.0.1} PGPORT=$port
if [ "$user" = "$(id -un)" ]; then exec psql --dbname=pa "$@"; fi
exec runuser -u "$user" -- psql --dbname=pa "$@"
