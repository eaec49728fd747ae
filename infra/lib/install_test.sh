#!/usr/bin/env bash
# Tests what install.sh says and does where the machine lacks something: PATH holds stand-ins only, so nothing real is
# installed and nothing is fetched.
set -euo pipefail

LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
PASSED=0
FAILED=0

# A folder of stand-ins: the plain tools are the machine's own, everything else a test adds by `stand_in`.
fresh_machine() {
  rm -rf "${WORK:?}/bin" "${WORK:?}/home" "$WORK/top" "$WORK/calls"
  mkdir -p "$WORK/bin" "$WORK/home" "$WORK/top"
  printf 'rust-version = "1.95"\n' >"$WORK/top/Cargo.toml"
  local tool
  for tool in sed sort head tail cut mktemp rm mkdir mv cat uname grep tar sha256sum sh bash env chmod; do
    ln -s "$(command -v "$tool")" "$WORK/bin/$tool"
  done
  stand_in id 'echo 0'
}

stand_in() {
  # Writing through a link would hit the machine's own tool.
  rm -f "$WORK/bin/$1"
  printf '#!%s\necho "%s $*" >>"%s/calls"\n%s\n' "$BASH" "$1" "$WORK" "$2" >"$WORK/bin/$1"
  chmod +x "$WORK/bin/$1"
}

# Runs a function of install.sh on the stand-in machine; its words go to $OUTPUT, its end to $CODE.
run() {
  CODE=0
  OUTPUT=$(cd "$WORK/top" && env -i PATH="$WORK/bin" HOME="$WORK/home" TMPDIR="$WORK" \
    "$BASH" -c "set -euo pipefail; . '$LIB/say.sh'; . '$LIB/install.sh'; $1" 2>&1) || CODE=$?
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
called() { grep -qF -- "$1" "$WORK/calls" 2>/dev/null; }
not_called() { ! called "$1"; }
ends_well() { [ "$CODE" = 0 ]; }
ends_badly() { [ "$CODE" != 0 ]; }

# --- Rust is missing ---
fresh_machine
stand_in curl 'exit 6'
run need_rust
expect "a missing Rust is announced with what runs" says 'Rust is missing; running: curl https://sh.rustup.rs | sh -s -- -y --profile minimal --default-toolchain 1.95 --component clippy,rustfmt'
expect "a failed download of Rust's installer is named" says 'could not download https://sh.rustup.rs'
expect "and says what to do instead" says 'install Rust 1.95 or newer (https://rustup.rs) yourself'
expect "and fails" ends_badly

fresh_machine
stand_in curl "while [ \$# -gt 1 ]; do [ \"\$1\" = --output ] && out=\$2; shift; done
printf 'mkdir -p \"\$HOME/.cargo/bin\"; echo \"installer \$*\" >>\"$WORK/calls\"
printf \"export PATH=\$HOME/.cargo/bin:\\\$PATH\" >\"\$HOME/.cargo/env\"
printf \"#!$BASH\\necho cargo 1.95.0\" >\"\$HOME/.cargo/bin/cargo\"; chmod +x \"\$HOME/.cargo/bin/cargo\"' >\"\$out\""
run 'need_rust && cargo --version'
expect "the fetched installer runs unattended" called 'installer -y --profile minimal --default-toolchain 1.95 --component clippy,rustfmt'
expect "and the cargo that it brought is found in the same run" says 'cargo 1.95.0'

fresh_machine
stand_in curl "while [ \$# -gt 1 ]; do [ \"\$1\" = --output ] && out=\$2; shift; done; echo 'exit 3' >\"\$out\""
run need_rust
expect "a failing installer is named" says "Rust's installer failed"
expect "and fails the run" ends_badly

# --- Rust is too old ---
fresh_machine
stand_in cargo 'echo "cargo 1.80.1 (abc)"'
run need_rust
expect "an old cargo without rustup is refused with both versions" says 'cargo is 1.80.1, and 1.95 or newer is needed'
stand_in rustup 'exit 0'
run 'need_rust && echo "toolchain=$RUSTUP_TOOLCHAIN"'
expect "with rustup the wanted toolchain is added" called 'rustup toolchain install 1.95'
expect "and used" says 'toolchain=1.95'

fresh_machine
stand_in cargo 'echo "cargo 1.100.0 (abc)"'
stand_in curl 'exit 6'
run need_rust
expect "a newer cargo is taken as it is" ends_well
expect "without any download" not_called curl

# --- Node is missing or old ---
fresh_machine
stand_in node 'echo v18.20.4'
stand_in npm 'exit 0'
stand_in apt-cache 'printf "nodejs:\n  Candidate: 18.20.4+dfsg-1~deb12u1\n"'
stand_in dpkg-query 'echo installed'
stand_in curl 'exit 6'
run need_node
expect "an old Node on an old Debian is fetched from Node's own site" says 'fetching the archive for linux-'
expect "a failed download of Node is named" says 'could not download https://nodejs.org/dist/latest-v22.x/SHASUMS256.txt'
expect "and says what to do instead" says 'install Node 20.19 or newer (https://nodejs.org) yourself'
expect "and fails the run" ends_badly

fresh_machine
stand_in apt-cache 'exit 0'
stand_in uname 'echo x86_64'
stand_in dpkg-query 'echo installed'
stand_in curl "while [ \$# -gt 1 ]; do [ \"\$1\" = --output ] && out=\$2; shift; done
case \"\$out\" in *sums) echo '0000000000000000000000000000000000000000000000000000000000000000  node-v22.1.0-linux-x64.tar.xz' ;; *) echo junk ;; esac >\"\$out\""
run need_node
expect "an archive with another checksum is refused" says 'does not have the published checksum'
expect "and nothing is unpacked" ends_badly

fresh_machine
stand_in apt-cache 'printf "nodejs:\n  Candidate: 20.19.2+dfsg-1\n"'
stand_in dpkg-query 'exit 1'
stand_in apt-get "ln -sf '$WORK/late-node' '$WORK/bin/node'; ln -sf '$WORK/late-node' '$WORK/bin/npm'"
ln -s "$(command -v ln)" "$WORK/bin/ln"
printf '#!%s\necho v20.19.2\n' "$BASH" >"$WORK/late-node" && chmod +x "$WORK/late-node"
run need_node
expect "Debian's own Node is used where it is new enough" called 'install nodejs npm'
expect "and then all is well" ends_well

# --- Debian packages ---
fresh_machine
stand_in dpkg-query '[ "${!#}" = gcc ] && echo installed'
stand_in apt-get 'case "$*" in *update*) : >"'"$WORK"'/top/updated" ;; *) [ -f "'"$WORK"'/top/updated" ] || { echo "E: Unable to locate package" >&2; exit 100; } ;; esac'
run 'need_packages gcc make curl'
expect "only what is missing is installed" called 'install make curl'
expect "an old package list is read anew, once" called 'update'
expect "and the second try counts" ends_well

stand_in apt-get 'exit 100'
run 'need_packages make'
expect "apt-get that keeps failing fails the run" ends_badly
stand_in id 'echo 1000'
run 'need_packages make'
expect "without root and sudo the command is named" says 'this needs root or sudo: env DEBIAN_FRONTEND=noninteractive apt-get'
stand_in sudo 'exec "$@"'
stand_in apt-get 'exit 0'
run 'need_packages make'
expect "a normal user goes through sudo" called 'sudo env DEBIAN_FRONTEND=noninteractive apt-get'
expect "and that is enough" ends_well

# --- Kafka is missing ---
fresh_machine
stand_in java ''
stand_in mvn 'exit 1'
run need_kafka
expect "what is fetched for Kafka is said" says 'fetching Apache Kafka 4.4.0, about 45 jars and 45 MB, by: mvn dependency:copy-dependencies'
expect "a failed fetch is named" says 'Maven could not fetch Apache Kafka'
expect "and ends badly" ends_badly
stand_in mvn 'for a in "$@"; do case "$a" in -DoutputDirectory=*) echo jar >"${a#*=}/a.jar" ;; esac; done'
run 'need_kafka && cat "$KAFKA_JARS/a.jar"'
expect "after that it is fetched" says jar
stand_in mvn 'exit 1'
run need_kafka
expect "and not a second time" ends_well

printf 'installers: %d passed, %d failed\n' "$PASSED" "$FAILED"
[ "$FAILED" = 0 ]
