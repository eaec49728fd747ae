# How the scripts of infra/ speak: one plain line a step, errors on stderr. Sourced, never run.
# shellcheck shell=bash

say() { printf 'infra: %s\n' "$*"; }

fail() {
  printf 'infra: %s\n' "$*" >&2
  exit 1
}

# True when the first dotted version is at least the second: at_least 20.19.1 20.19
at_least() {
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}
