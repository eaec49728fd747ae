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
export PA_DATA_DIR=$WORK/data PA_LISTEN=127.0.0.1:0
PASSED=0
FAILED=0
clean_up() {
  bash "$TOP/infra/down" >/dev/null 2>&1 || true
  rm -rf "$WORK"
}
trap clean_up EXIT

mkdir -p "$TOP/target/release"
cp -r "$INFRA" "$TOP/infra"
printf 'need_build_tools() { :; }; need_postgres() { :; }; need_rust() { :; }; need_node() { :; }; need_kafka() { :; }\n' >"$TOP/infra/lib/install.sh"
# A Kafka that answers at once and lives until it is ended.
cat >"$TOP/infra/kafka/run" <<'SH'
#!/usr/bin/env bash
trap 'exit 0' TERM
mkdir -p "$PA_DATA_DIR/kafka" && touch "$PA_DATA_DIR/kafka/made"
echo brokers=127.0.0.1:9
while :; do sleep 0.1; done
SH
printf 'build_page() { :; }; build_binary() { :; }\nBUILT_STAMP=target/release/.pa-built\n' >"$TOP/infra/lib/build.sh"
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
if [ -e "$PA_DATA_DIR/wait" ]; then
  echo '2026-01-01T00:00:00.000000Z  WARN pa::storage: waiting for Postgres error=nobody answers' >&2
  while :; do sleep 0.1; done
fi
node server.mjs &
trap 'kill $!; exit 0' TERM
while :; do wait; done
SH
cat >"$TOP/token" <<'SH'
if [ -n "${PA_BROKEN:-}" ]; then echo 'pa: this setting is bad' >&2; exit 1; fi
echo "sign-in=http://127.0.0.1/sign-in/$RANDOM$RANDOM"
SH

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
gone() { [ ! -d "/proc/$1" ] || [ "$(cut -d' ' -f3 "/proc/$1/stat")" = Z ]; }
# A process whose parent has not looked yet is gone, too.
gone() { [ ! -d "/proc/$1" ] || [ "$(cut -d' ' -f3 "/proc/$1/stat")" = Z ]; }
has_brokers() { grep -qzx 'PA_KAFKA_BROKERS=127.0.0.1:9' "/proc/$(cat "$PA_DATA_DIR/pa.pid")/environ"; }
closes_with_addresses() {
  [[ $(tail -n 2 <<<"$OUTPUT" | head -n 1) == listening=http://127.0.0.1:* ]] &&
    [[ $(tail -n 1 <<<"$OUTPUT") == sign-in=http://127.0.0.1/sign-in/* ]]
}

up --nonsense
expect "an unknown option is refused with 2" [ "$CODE" = 2 ]

mkdir -p "$PA_DATA_DIR"
touch "$PA_DATA_DIR/fail"
up
expect "a pa that dies fails the start" [ "$CODE" = 1 ]
expect "with the last lines of its log" says 'no room on the disk'
rm "$PA_DATA_DIR/fail"

touch "$PA_DATA_DIR/wait"
PA_UP_READY_SECS=1 up
expect "what pa waits for before it listens is said" says 'waiting for pa to listen; it says: waiting for Postgres error=nobody answers'
bash "$TOP/infra/down" >/dev/null
(exec setsid bash "$TOP/infra/up" >"$WORK/interrupted" 2>&1) &
script=$!
until grep -q 'it says' "$WORK/interrupted" 2>/dev/null; do sleep 0.1; done
waiting=$(cat "$PA_DATA_DIR/pa.pid")
# A job in the background of a script ignores SIGINT, so SIGTERM stands in for Ctrl-C.
kill -TERM "$script"
CODE=0
wait "$script" || CODE=$?
OUTPUT=$(cat "$WORK/interrupted")
expect "an interrupted start says so" says "interrupted: ending pa \(process $waiting\)"
expect "and ends the pa that it started" gone "$waiting"
expect "with 130" [ "$CODE" = 130 ]
rm "$PA_DATA_DIR/wait"

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

expect "with nothing more to say" [ "$(grep -c 'restart' <<<"$OUTPUT")" = 0 ]

PA_MODEL_NAME=large PA_BROKEN=1 up
expect "settings that the running one does not have are named" says 'not with these: PA_BROKEN PA_MODEL_NAME. infra/up --restart takes them'
expect "and it is asked with its own settings" closes_with_addresses
mkdir -p "$TOP/services"
touch "$TOP/target/release/.pa-built"
sleep 0.1
echo newer >"$TOP/services/source.rs"
up
expect "a newer tree is said" says 'an older build than this tree'
rm "$TOP/services/source.rs"
before=$(cat "$PA_DATA_DIR/pa.pid")
PA_MODEL_NAME=large up --restart
expect "--restart ends the running one" gone "$before"
expect "and starts with the new settings" closes_with_addresses
PA_MODEL_NAME=large up
expect "which are its own now" [ "$(grep -c 'restart' <<<"$OUTPUT")" = 0 ]
PA_MODEL_NAME='' PA_BROKEN=1 up --restart
expect "settings that are gone are named" says 'not any more: PA_MODEL_NAME'
expect "why there is no link is said" says 'it said: pa: this setting is bad'

bash "$TOP/infra/down" >/dev/null
node "$TOP/server.mjs" >"$WORK/other" &
other=$!
until grep -q listening "$WORK/other" 2>/dev/null; do sleep 0.1; done
PA_LISTEN=$(sed -n 's|^listening=http://||p' "$WORK/other") up
expect "a port in use is found before the build" says 'another program listens on 127.0.0.1:[0-9]+; end it, or choose another address, for example PA_LISTEN='
expect "and fails the start" [ "$CODE" = 1 ]
kill "$other"
touch "$WORK/a-file"
PA_DATA_DIR=$WORK/a-file/data up
expect "so is a folder that can't be made" says "the data folder $WORK/a-file/data can't be made; set PA_DATA_DIR"

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

up --kafka
expect "on Kafka it ends well" [ "$CODE" = 0 ]
expect "names the brokers" says '^brokers=127.0.0.1:9$'
expect "and closes with its addresses" closes_with_addresses
expect "its pa has the brokers" has_brokers
kafka=$(cat "$PA_DATA_DIR/kafka.pid")
up --kafka
expect "a second call says that it runs and names the brokers" says '^brokers=127.0.0.1:9$'
expect "and starts no other Kafka" [ "$(cat "$PA_DATA_DIR/kafka.pid")" = "$kafka" ]
OUTPUT=$(bash "$TOP/infra/down" 2>&1) && CODE=0
expect "infra/down ends Kafka, too" says 'ending Kafka'
expect "it is gone" gone "$kafka"
up
expect "a folder whose log lies on its Kafka starts it again" has_brokers
bash "$TOP/infra/down" >/dev/null
PA_KAFKA_BROKERS=127.0.0.1:1 up --kafka
expect "two words about which Kafka are refused" says 'PA_KAFKA_BROKERS names a Kafka already'

printf 'starts: %d passed, %d failed\n' "$PASSED" "$FAILED"
[ "$FAILED" = 0 ]
