# Builds the page and the binary, each only when its sources are newer. Sourced, run from the top folder; needs say.sh.
# shellcheck shell=bash

WEB=services/web
# What the built page was made of: no file's time counts, since generators and checkouts write the same bytes again.
PAGE_STAMP=$WEB/node_modules/.pa-page
# When the sources of the built program were looked at.
BUILT_STAMP=target/release/.pa-built

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

# One hash of every file that the page is made of.
page_sources() {
  find "$WEB" schemas/read_model.graphql \( -path "$WEB/node_modules" -o -path "$WEB/dist" \) -prune -o -type f -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}

page_is_fresh() {
  [ -f "$WEB/dist/index.html" ] && [ -f "$PAGE_STAMP" ] && [ "$(cat "$PAGE_STAMP")" = "$(page_sources)" ]
}

build_page() {
  local sources
  page_is_fresh && return 0
  need_page_packages
  say "building the page"
  sources=$(page_sources)
  rm -f "$PAGE_STAMP"
  (cd "$WEB" && npm run build) || fail "the page did not build; see the message above"
  printf '%s\n' "$sources" >"$PAGE_STAMP"
}

build_binary() {
  if [ -x target/release/pa ]; then
    say "building pa, as far as something has changed"
  else
    say "building pa: about 10 to 15 minutes on two cores and 1.5 GB in target/; the last step, pa itself, is silent for some minutes"
  fi
  mkdir -p target/release
  touch "$BUILT_STAMP.new"
  cargo build --release --locked -p pa || fail "pa did not build; see the message above"
  mv -f "$BUILT_STAMP.new" "$BUILT_STAMP"
}
