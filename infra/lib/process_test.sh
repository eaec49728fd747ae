#!/usr/bin/env bash
# Tests that infra/down ends what infra/up started and nothing else. The programs are copies of sleep and bash under
# other names, because a process is recognised by its program and its data folder.
set -euo pipefail

INFRA=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
WORK=$(mktemp -d)
PIDS=()
PASSED=0
FAILED=0
clean_up() {
  local pid
  for pid in "${PIDS[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$WORK"
}
trap clean_up EXIT

mkdir "$WORK/programs"
cp "$(readlink -f "$(command -v sleep)")" "$WORK/programs/pa"
cp "$(readlink -f "$(command -v sleep)")" "$WORK/programs/postgres"
cp "$(readlink -f "$BASH")" "$WORK/programs/stubborn"

fresh_folder() {
  DATA=$(mktemp -d "$WORK/data-XXXX")
  export PA_DATA_DIR=$DATA
}

# Starts a program in the background; its number goes to $STARTED.
start() {
  "$@" >/dev/null 2>&1 &
  STARTED=$!
  PIDS+=("$STARTED")
  # Until then the process is still a copy of this script.
  until [ "$(readlink "/proc/$STARTED/exe")" != "$(readlink -f "$BASH")" ]; do sleep 0.02; done
}

down() {
  CODE=0
  OUTPUT=$(PA_STOP_SECS=1 bash "$INFRA/down" "$@" 2>&1) || CODE=$?
}

expect() {
  local what=$1
  shift
  if "$@"; then
    PASSED=$((PASSED + 1))
  else
    FAILED=$((FAILED + 1))
    printf 'FAILED: %s\n  code %s, output: %s\n' "$what" "$CODE" "$OUTPUT"
  fi
}

says() { grep -qF -- "$1" <<<"$OUTPUT"; }
alive() { [ -d "/proc/$1" ] && [ "$(cut -d' ' -f3 "/proc/$1/stat")" != Z ]; }
dead() { ! alive "$1"; }
absent() { [ ! -e "$1" ]; }

fresh_folder
down
expect "nothing started is said" says 'nothing to end'
expect "and is no failure" [ "$CODE" = 0 ]

down blah
expect "arguments are refused" [ "$CODE" = 2 ]
down --help
expect "help is given" [ "$CODE" = 0 ]
OUTPUT=$(bash "$INFRA/prove-setup" --help 2>&1) && CODE=0
expect "the proof of set-up has help for anybody" says 'usage: infra/prove-setup'

fresh_folder
start "$WORK/programs/pa" 300
echo "$STARTED" >"$DATA/pa.pid"
down
expect "the started pa is ended" dead "$STARTED"
expect "its pid file goes" absent "$DATA/pa.pid"

fresh_folder
start sleep 300
echo "$STARTED" >"$DATA/pa.pid"
down
expect "a number that now belongs to another program is left alone" alive "$STARTED"
expect "and pa counts as ended" says 'pa has ended before'

fresh_folder
PA_DATA_DIR=$WORK/elsewhere start "$WORK/programs/pa" 300
echo "$STARTED" >"$DATA/pa.pid"
down
expect "a pa of another folder is left alone" alive "$STARTED"

fresh_folder
mkdir "$WORK/stubborn"
cp "$WORK/programs/stubborn" "$WORK/stubborn/pa"
start "$WORK/stubborn/pa" -c 'trap "" TERM; while :; do sleep 0.1; done'
sleep 0.3
echo "$STARTED" >"$DATA/pa.pid"
down
expect "a pa that does not end is killed" dead "$STARTED"
expect "and that is said" says 'killing it'

fresh_folder
mkdir "$DATA/postgres"
cd "$DATA/postgres"
start "$WORK/programs/postgres" 300
cd "$WORK"
postgres=$STARTED
printf '%s\n%s\n' "$postgres" "$DATA/postgres" >"$DATA/postgres/postmaster.pid"
echo 999999999 >"$DATA/pa.pid"
start "$WORK/programs/pa" 300
down
expect "Postgres stays while another pa works on the folder" alive "$postgres"
expect "and so does that pa" alive "$STARTED"
kill -KILL "$STARTED"
wait "$STARTED" 2>/dev/null || true
echo 999999999 >"$DATA/pa.pid"
down
expect "a Postgres left by a crash is ended" says "its Postgres still runs (process $postgres)"
expect "for good" dead "$postgres"

# Left by a tool that was killed: infra/up has started nothing here.
fresh_folder
mkdir "$DATA/postgres"
cd "$DATA/postgres"
start "$WORK/programs/postgres" 300
cd "$WORK"
orphan=$STARTED
printf '%s\n%s\n' "$orphan" "$DATA/postgres" >"$DATA/postgres/postmaster.pid"
echo 4711 >"$DATA/lock"
exec 9<>"$DATA/lock"
flock 9
down
expect "a Postgres stays while somebody holds the folder's lock" alive "$orphan"
expect "who is named" says 'another pa works on'
expect "by number" says '(process 4711)'
exec 9>&-
down
expect "a Postgres that nobody uses is ended without a pid file" dead "$orphan"
expect "and that is said" says "its Postgres still runs (process $orphan), and nobody uses it"

printf 'processes: %d passed, %d failed\n' "$PASSED" "$FAILED"
[ "$FAILED" = 0 ]
