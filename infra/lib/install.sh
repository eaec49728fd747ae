# What the machine must have, and how it gets there: Debian packages by apt-get, Rust and Node by their own
# installers where the machine lacks them. Every step says what it runs. Sourced, never run; needs say.sh.
# shellcheck shell=bash

# Vite, which builds the page, needs this Node or a newer one.
NODE_VERSION_MIN=20.19
# The line of Node that is fetched when Debian's own package is too old.
NODE_LINE=22
NODE_DIST=https://nodejs.org/dist
RUSTUP_URL=https://sh.rustup.rs
# Another package manager may be at work (unattended upgrades); ten minutes covers a large one.
APT_LOCK_SECS=600
TOOLS_DIR=${PA_TOOLS_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/personal-agent-tools}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    fail "this needs root or sudo: $*"
  fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o "DPkg::Lock::Timeout=$APT_LOCK_SECS" --no-install-recommends install "$@" >/dev/null
}

has_package() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Installs those of the named Debian packages that are missing.
need_packages() {
  local missing=() package
  for package in "$@"; do
    has_package "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null 2>&1 ||
    fail "these are missing, and there is no apt-get to install them: ${missing[*]}"
  say "installing ${missing[*]}"
  if ! apt_install "${missing[@]}"; then
    say "that failed; reading the package lists anew and trying once more"
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get -q -y -o "DPkg::Lock::Timeout=$APT_LOCK_SECS" update >/dev/null ||
      fail "apt-get update failed; see its message above"
    apt_install "${missing[@]}" || fail "could not install ${missing[*]}; see apt-get's message above"
  fi
}

# Fetches URL into FILE, or explains what to do instead.
download() {
  local url=$1 file=$2 what=$3 instead=$4
  curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location \
    --retry 2 --connect-timeout 20 --output "$file" "$url" ||
    fail "could not download $url ($what). Check the network, or install $instead yourself, then run this again"
}

need_build_tools() {
  # The client of Kafka is a C library: it builds with make and needs the headers of OpenSSL.
  need_packages ca-certificates curl gcc g++ libc6-dev make pkg-config libssl-dev
}

# Postgres' server programs. `pa` makes and runs a private server of its own; Debian's package would start another
# one beside it, so it is told not to.
need_postgres() {
  local found
  found=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' || true)
  [ -z "$found" ] || return 0
  local drop_in=/etc/postgresql-common/createcluster.d/personal-agent.conf
  as_root mkdir -p "${drop_in%/*}"
  printf 'create_main_cluster = false\n' | as_root tee "$drop_in" >/dev/null
  need_packages postgresql
  as_root rm -f "$drop_in"
}

need_browser() {
  need_packages chromium chromium-driver
}

# What tests break things with: networks of their own, clocks that are wrong.
need_faults() {
  need_packages iproute2 util-linux faketime
}

# --- Kafka ---

# The jars of Apache Kafka that infra/kafka/pom.xml names, from Maven's public repository, in KAFKA_JARS. Fetched once.
need_kafka() {
  local pom version
  pom=$(cd "${BASH_SOURCE[0]%/*}/../kafka" && pwd -P)/pom.xml
  version=$(sed -n 's/.*<kafka.version>\(.*\)<.*/\1/p' "$pom")
  KAFKA_JARS=$TOOLS_DIR/kafka-$version
  command -v java >/dev/null 2>&1 || need_packages default-jre-headless
  [ ! -d "$KAFKA_JARS" ] || return 0
  command -v mvn >/dev/null 2>&1 || need_packages maven
  say "fetching Apache Kafka $version, about 45 jars and 45 MB, by: mvn dependency:copy-dependencies; into $KAFKA_JARS"
  mkdir -p "$TOOLS_DIR"
  local fetched
  fetched=$(mktemp -d "$TOOLS_DIR/kafka-XXXXXX")
  mvn -B -q -f "$pom" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$fetched" ||
    fail "Maven could not fetch Apache Kafka; see its message above"
  # Another run may have been faster.
  mv -T "$fetched" "$KAFKA_JARS" 2>/dev/null || rm -rf "$fetched"
}

# --- Rust ---

# The version that the workspace asks for, from the root Cargo.toml.
rust_version_wanted() {
  sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml
}

find_cargo() {
  # rustup's installer edits the shell's start files, which this shell has not read.
  local env_file=${CARGO_HOME:-$HOME/.cargo}/env
  if ! command -v cargo >/dev/null 2>&1 && [ -f "$env_file" ]; then
    # shellcheck disable=SC1090
    . "$env_file"
  fi
  command -v cargo >/dev/null 2>&1
}

need_rust() {
  local wanted have
  wanted=$(rust_version_wanted)
  if find_cargo; then
    have=$(cargo --version | cut -d' ' -f2)
    at_least "$have" "$wanted" && return 0
    command -v rustup >/dev/null 2>&1 ||
      fail "cargo is $have, and $wanted or newer is needed; update Rust, then run this again"
    say "cargo is $have, and $wanted is needed; running: rustup toolchain install $wanted"
    rustup toolchain install "$wanted" --profile minimal --component clippy,rustfmt ||
      fail "rustup could not install Rust $wanted; see its message above"
    export RUSTUP_TOOLCHAIN=$wanted
    return 0
  fi
  install_rust "$wanted"
}

install_rust() {
  local wanted=$1 script
  say "Rust is missing; running: curl $RUSTUP_URL | sh -s -- -y --profile minimal --default-toolchain $wanted --component clippy,rustfmt"
  script=$(mktemp)
  download "$RUSTUP_URL" "$script" "Rust's own installer" "Rust $wanted or newer (https://rustup.rs)"
  sh "$script" -y --profile minimal --default-toolchain "$wanted" --component clippy,rustfmt ||
    fail "Rust's installer failed; see its message above"
  rm -f "$script"
  find_cargo || fail "Rust's installer ended well, but there is no cargo in ${CARGO_HOME:-$HOME/.cargo}/bin"
}

need_lints() {
  local missing=()
  cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
  cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
  [ ${#missing[@]} -gt 0 ] || return 0
  say "running: rustup component add ${missing[*]}"
  rustup component add "${missing[@]}" || fail "could not add ${missing[*]}; install them, then run this again"
}

# --- Node ---

node_fits() {
  command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || return 1
  local have
  have=$(node --version)
  at_least "${have#v}" "$NODE_VERSION_MIN"
}

debian_node_fits() {
  local candidate
  candidate=$(apt-cache policy nodejs 2>/dev/null | sed -n 's/^ *Candidate: //p')
  candidate=${candidate%%[-~+]*}
  [ -n "$candidate" ] && [ "$candidate" != "(none)" ] && at_least "$candidate" "$NODE_VERSION_MIN"
}

need_node() {
  PATH=$TOOLS_DIR/node/bin:$PATH
  export PATH
  node_fits && return 0
  if debian_node_fits; then
    need_packages nodejs npm
    node_fits && return 0
  fi
  install_node
}

# Node's own archive, checked against the sums that are published beside it.
install_node() {
  local machine line=$NODE_DIST/latest-v$NODE_LINE.x work name sum
  case "$(uname -m)" in
    x86_64) machine=linux-x64 ;;
    aarch64) machine=linux-arm64 ;;
    *) fail "Node is missing, and there is no archive of it for $(uname -m); install Node $NODE_VERSION_MIN or newer" ;;
  esac
  say "Node $NODE_VERSION_MIN or newer is missing; fetching the archive for $machine from $line into $TOOLS_DIR/node"
  need_packages xz-utils
  work=$(mktemp -d)
  download "$line/SHASUMS256.txt" "$work/sums" "the list of Node's archives" "Node $NODE_VERSION_MIN or newer (https://nodejs.org)"
  read -r sum name < <(grep -E "  node-v[0-9.]+-$machine\.tar\.xz\$" "$work/sums") ||
    fail "$line lists no archive for $machine; install Node $NODE_VERSION_MIN or newer yourself"
  download "$line/$name" "$work/$name" "Node's archive" "Node $NODE_VERSION_MIN or newer (https://nodejs.org)"
  printf '%s  %s\n' "$sum" "$work/$name" | sha256sum --check --quiet ||
    fail "$line/$name does not have the published checksum; nothing was installed"
  rm -rf "$TOOLS_DIR/node"
  mkdir -p "$TOOLS_DIR/node"
  tar -xJf "$work/$name" -C "$TOOLS_DIR/node" --strip-components=1
  rm -rf "$work"
  node_fits || fail "Node was unpacked into $TOOLS_DIR/node but does not run there"
}
