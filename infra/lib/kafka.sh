# The Kafka that infra/up runs beside `pa` for a data folder: how it is started, found and told from others. Sourced, never run; needs
# say.sh, process.sh and, to start it, install.sh, ROOT and WITH_KAFKA.
# shellcheck shell=bash

KAFKA_PID_FILE=$DATA/kafka.pid
KAFKA_OUT_FILE=$DATA/kafka.out
KAFKA_LOG_FILE=$DATA/kafka.log
# Its own start, fetching it included.
KAFKA_SECS=300

# The infra/kafka/run that infra/up started on this folder, if it still lives.
kafka_pid() {
  local pid
  [ -f "$KAFKA_PID_FILE" ] || return 1
  read -r pid <"$KAFKA_PID_FILE" || return 1
  case "$pid" in '' | *[!0-9]*) return 1 ;; esac
  tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q 'infra/kafka/run' || return 1
  [ "$(environment_of "$pid" PA_DATA_DIR)" = "$DATA" ] || return 1
  printf '%s\n' "$pid"
}

# Where it answers, once it does.
kafka_brokers() { sed -n 's/^brokers=//p' "$KAFKA_OUT_FILE" 2>/dev/null | tail -n 1; }

# Whether this start needs it: asked for, or the log of this folder lies there already.
check_kafka() {
  if [ -n "${PA_KAFKA_BROKERS:-}" ]; then
    [ -z "$WITH_KAFKA" ] || fail "PA_KAFKA_BROKERS names a Kafka already; run infra/up without --kafka to use it"
  elif [ -f "$DATA/kafka/made" ]; then
    WITH_KAFKA=1
  fi
}

# Starts it unless it runs, and names it to `pa`.
start_kafka() {
  need_kafka
  if ! kafka_pid >/dev/null; then
    say "starting Kafka (data in $DATA/kafka, log in $KAFKA_LOG_FILE)"
    : >"$KAFKA_OUT_FILE"
    rm -f "$KAFKA_PID_FILE"
    # shellcheck disable=SC2016
    setsid nohup bash -c 'echo $$ >"$1" && exec "$2"' start "$KAFKA_PID_FILE" "$ROOT/infra/kafka/run" \
      </dev/null >>"$KAFKA_OUT_FILE" 2>"$KAFKA_LOG_FILE" &
    sleep 0.2
  fi
  local deadline=$((SECONDS + KAFKA_SECS))
  until [ -n "$(kafka_brokers)" ]; do
    # Between the shell that starts it and the script itself nobody has its name.
    kafka_pid >/dev/null || { sleep 1 && kafka_pid >/dev/null; } ||
      { cat "$KAFKA_LOG_FILE" >&2 && fail "Kafka ended before it was ready; its last words are above"; }
    [ "$SECONDS" -lt "$deadline" ] || fail "Kafka is not ready after $KAFKA_SECS seconds; see $KAFKA_LOG_FILE"
    sleep 0.1
  done
  PA_KAFKA_BROKERS=$(kafka_brokers)
  export PA_KAFKA_BROKERS
}
