# Finds the processes of one data folder and ends them politely. A process is known by its program and by the folder
# it works on, never by a number alone, because numbers are used again. Sourced, never run; needs say.sh and DATA, the data folder's absolute path.
# shellcheck shell=bash

PID_FILE=$DATA/pa.pid
OUT_FILE=$DATA/pa.out
LOG_FILE=$DATA/pa.log
# Executions yield within seconds and Postgres writes its checkpoint; a minute is far more than both need.
STOP_SECS=${PA_STOP_SECS:-60}

# The program of a process, also when the file was replaced by a newer build.
program_of() {
  local exe
  exe=$(readlink "/proc/$1/exe" 2>/dev/null) || return 1
  exe=${exe% (deleted)}
  printf '%s\n' "${exe##*/}"
}

# A value from the environment that a process was started with.
environment_of() {
  local line
  while IFS= read -r -d '' line; do
    if [ "${line%%=*}" = "$2" ]; then
      printf '%s\n' "${line#*=}"
      return 0
    fi
  done <"/proc/$1/environ" 2>/dev/null
  return 1
}

# True when process $1 is a `pa` that works on this data folder.
is_pa_of_folder() {
  [ "$(program_of "$1")" = pa ] || return 1
  local folder cwd
  folder=$(environment_of "$1" PA_DATA_DIR) || folder=./.pa
  cwd=$(readlink "/proc/$1/cwd" 2>/dev/null) || return 1
  [ "$(cd "$cwd" 2>/dev/null && realpath -m "$folder")" = "$DATA" ]
}

# The process that infra/up started, if it still lives.
started_pid() {
  local pid
  [ -f "$PID_FILE" ] || return 1
  read -r pid <"$PID_FILE" || return 1
  case "$pid" in '' | *[!0-9]*) return 1 ;; esac
  is_pa_of_folder "$pid" || return 1
  printf '%s\n' "$pid"
}

# Any `pa up` on this folder, whoever started it.
any_pa_of_folder() {
  local dir
  for dir in /proc/[0-9]*; do
    if is_pa_of_folder "${dir#/proc/}"; then
      printf '%s\n' "${dir#/proc/}"
      return 0
    fi
  done
  return 1
}

# Whoever works on this folder: a `pa`, or any program that holds its lock.
owner_of_folder() {
  any_pa_of_folder && return 0
  [ -f "$DATA/lock" ] && ! flock --nonblock "$DATA/lock" true || return 1
  head -n 1 "$DATA/lock"
}

# The private Postgres of this folder, if it runs.
postmaster_pid() {
  local file pid
  while IFS= read -r file; do
    read -r pid <"$file" || continue
    if [ "$(program_of "$pid")" = postgres ] &&
      [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$(realpath "${file%/*}")" ]; then
      printf '%s\n' "$pid"
      return 0
    fi
  done < <(find "$DATA" -maxdepth 3 -name postmaster.pid 2>/dev/null)
  return 1
}

# Waits until process $1 is gone, at most $2 seconds.
gone_within() {
  local tenths=$(($2 * 10))
  while [ -d "/proc/$1" ] && [ "$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)" != Z ]; do
    [ "$tenths" -gt 0 ] || return 1
    tenths=$((tenths - 1))
    sleep 0.1
  done
}

# Ends process $1 (called $2) with signal $3, and by force when it does not go.
end_process() {
  kill -s "$3" "$1" 2>/dev/null || true
  gone_within "$1" "$STOP_SECS" && return 0
  say "$2 (process $1) did not end within $STOP_SECS seconds; killing it"
  kill -s KILL "$1" 2>/dev/null || true
  gone_within "$1" 10 || fail "$2 (process $1) can't be killed"
}
