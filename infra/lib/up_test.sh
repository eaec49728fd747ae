#!/usr/bin/env bash
# Tests how infra/up starts, waits and reports, in a copy of infra/ where nothing is installed or built. Its `pa` is a copy of bash,
# so that `pa up` and `pa token link` run the scripts `up` and `token` beside it; Node answers /readyz.
set -euo pipefail

INFRA=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
. "$INFRA/lib/say.sh"
. "$INFRA/lib/install.sh"
PATH=$TOOLS_DIR/node/bin:$PATH
WORK=$(mktemp -d)
TOP=$WORK/top
unset "${!PA_@}"
export PA_DATA_DIR=$WORK/data
PASSED=0
FAILED=0
clean_up() {
  bash "$TOP/infra/down" >/dev/null 2>&1 || true
  rm -rf "$WORK"
}
trap clean_up EXIT

mkdir -p "$TOP/target/release"
cp -r "$INFRA" "$TOP/infra"
printf 'need_build_tools() { :; }; need_postgres() { :; }; need_rust() { :; }; need_node() { :; }\n' >"$TOP/infra/lib/install.sh"
printf 'build_page() { :; }; build_binary() { :; }\n' >"$TOP/infra/lib/build.sh"
cp "$(readlink -f "$BASH")" "$TOP/target/release/pa"
# Not a function of how often it was asked: ready once the file is there.
cat >"$TOP/server.mjs" <<'JS'
import { createServer } from 'node:http';
import { existsSync } from 'node:fs';
const server = createServer((request, response) => {
  const ready = existsSync(`${process.env.PA_DATA_DIR}/be-ready`);
  response.writeHead(ready ? 200 : 503).end(ready ? '' : '{"reasons":["read schema is being built"]}');
});
server.listen(0, '127.0.0.1', () => console.log(`listening=http://127.0.0.1:${server.address().port}`));
JS
cat >"$TOP/up" <<'SH'
if [ -e "$PA_DATA_DIR/fail" ]; then echo 'no room on the disk' >&2; exit 1; fi
node server.mjs &
trap 'kill $!; exit 0' TERM
while :; do wait; done
SH
echo 'echo "sign-in=http://127.0.0.1/sign-in/$RANDOM$RANDOM"' >"$TOP/token"

up() {
  CODE=0
  OUTPUT=$(bash "$TOP/infra/up" "$@" 2>&1) || CODE=$?
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

says() { grep -qE -- "$1" <<<"$OUTPUT"; }
closes_with_addresses() {
  [[ $(tail -n 2 <<<"$OUTPUT" | head -n 1) == listening=http://127.0.0.1:* ]] &&
    [[ $(tail -n 1 <<<"$OUTPUT") == sign-in=http://127.0.0.1/sign-in/* ]]
}

up --kafka
expect "--kafka is refused with 2" [ "$CODE" = 2 ]
expect "and clearly" says 'not there yet'

mkdir -p "$PA_DATA_DIR"
touch "$PA_DATA_DIR/fail"
up
expect "a pa that dies fails the start" [ "$CODE" = 1 ]
expect "with the last lines of its log" says 'no room on the disk'
rm "$PA_DATA_DIR/fail"

PA_UP_READY_SECS=2 up
expect "a pa that does not get ready fails the start" [ "$CODE" = 1 ]
expect "after saying what it waits for" says 'waiting for http://127.0.0.1:[0-9]+/readyz, which says: .*read schema is being built'
expect "and goes on" says 'goes on trying'

touch "$PA_DATA_DIR/be-ready"
up
expect "a second call says that it runs" says 'runs already'
expect "and ends well" [ "$CODE" = 0 ]
expect "with its addresses" closes_with_addresses
first=$(tail -n 1 <<<"$OUTPUT")
up
expect "each call has a link of its own" [ "$(tail -n 1 <<<"$OUTPUT")" != "$first" ]

bash "$TOP/infra/down" >/dev/null
up
expect "after infra/down it starts anew" says 'starting pa'
expect "ends well" [ "$CODE" = 0 ]
expect "and closes with its addresses" closes_with_addresses

OUTPUT=$(bash "$TOP/infra/down" 2>&1) && CODE=0
expect "infra/down ends it" says 'ending pa'
(cd "$TOP" && exec setsid target/release/pa up >/dev/null 2>&1) &
sleep 0.5
up
expect "a pa started by hand is not taken over" says 'that infra/up did not start'
by_hand=$(sed -n 's/.*(process \([0-9]*\)).*/\1/p' <<<"$OUTPUT")
kill "$by_hand"

printf 'starts: %d passed, %d failed\n' "$PASSED" "$FAILED"
[ "$FAILED" = 0 ]
