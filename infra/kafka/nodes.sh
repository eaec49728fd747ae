# The nodes of infra/kafka/run: their folders, their settings, and whether they answer. Sourced, never run; needs say.sh,
# install.sh, ROOT, DATA and NODES.
# shellcheck shell=bash

# A node writes what it has in a few seconds; a minute is far more.
STOP_SECS=60
# A node of a busy machine with two cores is ready within 10 seconds; a large log is read through after a crash.
START_SECS=180
# Small, because a machine of the least kind runs Postgres, three nodes and the product side by side.
HEAP_MAX=${PA_KAFKA_HEAP:-320m}
HOST=127.0.0.1

BROKER_PORTS=()
CONTROLLER_PORTS=()

# HOST:PORT,... of the named array.
addresses() {
  local -n ports=$1
  local port list=''
  for port in "${ports[@]}"; do list+=,$HOST:$port; done
  printf '%s' "${list#,}"
}

java_class() {
  local heap=$1
  shift
  printf '%s\0' java "-Xms32m" "-Xmx$heap" -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true \
    '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS' -cp "$KAFKA_JARS/*" "$@"
}

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    # Nobody listens there, and it was not taken a moment ago.
    if ! (: <"/dev/tcp/$HOST/$port") 2>/dev/null && [[ " ${BROKER_PORTS[*]} ${CONTROLLER_PORTS[*]} " != *" $port "* ]]; then
      printf '%s' "$port"
      return
    fi
  done
}

# The folder of a log: made once with its ports, its cluster id and its nodes, and taken as it is later.
need_folder() {
  local node
  mkdir -p "$DATA"
  DATA=$(cd "$DATA" && pwd -P)
  exec 9>"$DATA/lock"
  flock -n 9 || fail "another infra/kafka/run works on $DATA"
  if [ -f "$DATA/made" ]; then
    # Written below, by this script.
    # shellcheck disable=SC1091
    . "$DATA/made"
    [ "${#BROKER_PORTS[@]}" = "$NODES" ] ||
      fail "$DATA was made with ${#BROKER_PORTS[@]} nodes; start it with --nodes ${#BROKER_PORTS[@]}"
    for ((node = 1; node <= NODES; node++)); do write_settings "$node"; done
    return 0
  fi
  say "making a log with $NODES node(s) in $DATA"
  rm -rf "$DATA"/node-*
  local ids=()
  for ((node = 1; node <= NODES; node++)); do
    BROKER_PORTS+=("$(free_port)")
    CONTROLLER_PORTS+=("$(free_port)")
    ids+=("$(random_id)")
  done
  local cluster voters=''
  cluster=$(random_id)
  for ((node = 1; node <= NODES; node++)); do
    voters+=,$node@$HOST:${CONTROLLER_PORTS[node - 1]}:${ids[node - 1]}
  done
  local formats=()
  for ((node = 1; node <= NODES; node++)); do
    mkdir -p "$DATA/node-$node"
    write_settings "$node"
    format_node "$node" "$cluster" "${voters#,}" &
    formats+=("$!")
  done
  local format
  for format in "${formats[@]}"; do wait "$format" || fail "the folder of a node could not be made; see $DATA/node-*/format.log"; done
  # Last, so that a run that was interrupted makes it all anew.
  declare -p BROKER_PORTS CONTROLLER_PORTS | sed 's/^declare -a //' >"$DATA/made.new"
  mv "$DATA/made.new" "$DATA/made"
}

# 16 random bytes as Kafka writes ids. A dash in front would be read as an option.
random_id() {
  local id
  while :; do
    id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')
    [[ "$id" == -* ]] || break
  done
  printf '%s' "$id"
}

format_node() {
  local command
  mapfile -d '' -t command < <(java_class 128m kafka.tools.StorageTool format --cluster-id "$2" \
    --config "$DATA/node-$1/node.properties" --initial-controllers "$3" --ignore-formatted)
  "${command[@]}" >"$DATA/node-$1/format.log" 2>&1
}

write_settings() {
  local node=$1 in_sync=1 flush=1
  # Three nodes hold a record in three places before the disk has it.
  if [ "$NODES" = 3 ]; then in_sync=2 flush=9223372036854775807; fi
  cat >"$DATA/node-$node/node.properties" <<SETTINGS
process.roles=broker,controller
node.id=$node
listeners=CLIENTS://$HOST:${BROKER_PORTS[node - 1]},CONTROLLERS://$HOST:${CONTROLLER_PORTS[node - 1]}
advertised.listeners=CLIENTS://$HOST:${BROKER_PORTS[node - 1]},CONTROLLERS://$HOST:${CONTROLLER_PORTS[node - 1]}
listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLERS:PLAINTEXT
inter.broker.listener.name=CLIENTS
controller.listener.names=CONTROLLERS
controller.quorum.bootstrap.servers=$(addresses CONTROLLER_PORTS)
log.dirs=$DATA/node-$node/log
auto.create.topics.enable=false
log.flush.interval.messages=$flush
default.replication.factor=$NODES
min.insync.replicas=$in_sync
offsets.topic.replication.factor=$NODES
transaction.state.log.replication.factor=$NODES
transaction.state.log.min.isr=$in_sync
share.coordinator.state.topic.replication.factor=$NODES
share.coordinator.state.topic.min.isr=$in_sync
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=1000
num.network.threads=2
num.io.threads=2
background.threads=2
log.cleaner.dedupe.buffer.size=4194304
SETTINGS
}

# Starts a node in the background; its process id is $!. It dies with this script, however that ends.
start_node() {
  local command
  mapfile -d '' -t command < <(java_class "$HEAP_MAX" kafka.Kafka "$DATA/node-$1/node.properties")
  # A signal of the terminal reaches this script alone, which ends its nodes in order.
  setsid setpriv --pdeathsig KILL -- "${command[@]}" </dev/null >>"$DATA/node-$1/node.log" 2>&1 9>&- &
}

wait_for_node() {
  local deadline=$((SECONDS + START_SECS))
  until sees_all_nodes "${BROKER_PORTS[$1 - 1]}"; do
    kill -0 "$2" 2>/dev/null || { tail -n 20 "$DATA/node-$1/node.log" >&2 && fail "node $1 ended; its log: $DATA/node-$1/node.log"; }
    [ "$SECONDS" -lt "$deadline" ] || fail "node $1 does not answer after $START_SECS seconds; its log: $DATA/node-$1/node.log"
    sleep 0.1
  done
}

# Asks for metadata, as any client does, and true when the answer lists every node.
# Request: api 3, version 1, correlation 7, client `pa`, no topics. Answer: correlation, then the list of brokers.
sees_all_nodes() {
  local answer
  # Until it listens, the shell itself complains.
  {
    answer=$(
      exec 3<>"/dev/tcp/$HOST/$1" || exit 1
      printf '\0\0\0\020\0\003\0\001\0\0\0\007\0\002pa\0\0\0\0' >&3
      timeout 5 head -c 12 <&3 | od -An -v -tx1 | tr -d ' \n'
    ) || return 1
  } 2>/dev/null
  [ "${answer:8}" = "00000007$(printf '%08x' "$NODES")" ]
}
