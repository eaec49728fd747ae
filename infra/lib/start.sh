# What infra/up looks at before and beside a start: folder and port, the settings and the build of a running one.
# Sourced, never run; needs say.sh, process.sh and PA, the program.
# shellcheck shell=bash

BUILD_FILE=$DATA/pa.build

# The folder is there and can be written to.
check_data_folder() {
  local probe
  mkdir -p -m 700 "$DATA" 2>/dev/null || fail "the data folder $DATA can't be made; set PA_DATA_DIR to a place where it can"
  probe=$(mktemp "$DATA/.probe-XXXXXX" 2>/dev/null) || fail "the data folder $DATA can't be written to; set PA_DATA_DIR to one that can"
  rm -f "$probe"
}

# Nobody else answers where pa is to listen.
check_port() {
  local listen=${PA_LISTEN:-127.0.0.1:8787} host port
  host=${listen%:*} port=${listen##*:}
  host=${host#[} host=${host%]}
  case "$port" in
    '' | *[!0-9]*) fail "PA_LISTEN=$listen is not ADDRESS:PORT, such as 127.0.0.1:8787" ;;
    0) return 0 ;;
  esac
  # shellcheck disable=SC2016
  if timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>/dev/null; then
    fail "another program listens on $listen; end it, or choose another address, for example PA_LISTEN=$host:$((port + 1))"
  fi
}

# --- Settings ---

# Of NAME=VALUE lines, each closed by a NUL, those that are settings of pa.
only_settings() {
  local line
  while IFS= read -r -d '' line; do
    case "$line" in
      PA_UP_READY_SECS=* | PA_STOP_SECS=* | PA_TOOLS_DIR=* | PA_PROVE_INSIDE=*) ;;
      PA_*=) ;;
      PA_*) printf '%s\0' "$line" ;;
    esac
  done | sort -z
}

# The settings that process $1 was started with.
settings_of() { only_settings <"/proc/$1/environ"; }

# The settings that this script was called with.
own_settings() { env -0 | only_settings; }

# Runs a command with the settings of process $1 in place of this script's.
with_settings_of() {
  local line settings=()
  while IFS= read -r -d '' line; do settings+=("$line"); done < <(settings_of "$1")
  shift
  (
    unset "${!PA_@}"
    for line in "${settings[@]}"; do export "${line?}"; done
    exec "$@"
  )
}

# The names, never the values.
names_of_settings() { tr '\0' '\n' | sed -n 's/^\(PA_[A-Z0-9_]*\)=.*/\1/p' | sort -u | paste -sd ' '; }

# Settings of this call that process $1 does not have, or has otherwise.
settings_not_in() { comm -z -23 <(own_settings) <(settings_of "$1") | names_of_settings; }

# Settings that process $1 has and this call does not, whatever their value; $2 is one that this script will set itself.
settings_only_in() {
  comm -23 <(settings_of "$1" | names_of_settings | tr ' ' '\n') <(own_settings | names_of_settings | tr ' ' '\n') |
    grep -vx -- "${2:-none}" | paste -sd ' ' || true
}

# --- Builds ---

# Which file a program is: another build has another inode, size or time.
program_identity() { stat -L -c '%i %s %Y' "$PA" 2>/dev/null; }

# Notes what is being started.
note_program() { program_identity >"$BUILD_FILE"; }

# True when the program was built anew since it was started, or its sources have changed since it was built.
program_is_stale() {
  local newer
  if [ -f "$BUILD_FILE" ] && [ "$(cat "$BUILD_FILE")" != "$(program_identity)" ]; then return 0; fi
  [ -f "$BUILT_STAMP" ] || return 1
  newer=$(find Cargo.toml Cargo.lock services projections schemas migrations \
    \( -name node_modules -o -name dist -o -name tests -o -name tests.rs -o -name '*.md' \) -prune -o -type f -newer "$BUILT_STAMP" -print -quit 2>/dev/null)
  [ -n "$newer" ]
}
