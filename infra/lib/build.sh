# Builds the page and the binary, each only when its sources are newer. Sourced, run from the top folder; needs say.sh.
# shellcheck shell=bash

WEB=services/web

# The page's packages, exactly as its lock file says.
need_page_packages() {
  local stamp=$WEB/node_modules/.package-lock.json
  if [ ! -f "$stamp" ] || [ "$WEB/package-lock.json" -nt "$stamp" ]; then
    say "fetching the page's packages"
    (cd "$WEB" && npm ci --no-audit --no-fund) || fail "npm ci failed in $WEB; see its message above"
    # npm writes the file before it has unpacked everything.
    touch "$stamp"
  fi
}

page_is_fresh() {
  local built=$WEB/dist/index.html newer
  [ -f "$built" ] || return 1
  newer=$(find "$WEB" schemas/read_model.graphql \
    \( -path "$WEB/node_modules" -o -path "$WEB/dist" \) -prune -o -type f -newer "$built" -print -quit)
  [ -z "$newer" ]
}

build_page() {
  page_is_fresh && return 0
  need_page_packages
  say "building the page"
  (cd "$WEB" && npm run build) || fail "the page did not build; see the message above"
}

build_binary() {
  say "building pa (the first time takes some minutes)"
  cargo build --release --locked -p pa || fail "pa did not build; see the message above"
}
