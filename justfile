# The short names of daily work. Everything here is a plain command; `infra/up` and `infra/test` need no just.

# Run everything in the foreground from the working tree, page included.
dev:
    cd services/web && npm ci --no-audit --no-fund && npm run build
    cargo run -p pa -- up

# All that CI checks: format, lints, docs, page, generated files, tests.
check:
    infra/test

# The tests whose names contain FILTER (all without one).
test FILTER="":
    INSTA_UPDATE=no cargo test --workspace {{FILTER}}

# Measure against the controls; prints one JSON line a figure.
bench *ARGS:
    cargo run --release -p pa-tests --bin bench -- {{ARGS}}

# A SQL prompt on the private Postgres of this folder.
db:
    infra/lib/psql.sh

# Write the page's types anew from schemas/read_model.graphql.
schema:
    cd services/web && npm run generate

# The log as it grows, one JSON object a line (`just log --agent ID --open`).
log *ARGS:
    cargo run --quiet --release -p pa -- log tail {{ARGS}}

# Build the read model anew from the log.
rebuild *ARGS:
    cargo run --quiet --release -p pa -- rebuild {{ARGS}}

# Compare the read model with what the log says.
verify:
    cargo run --quiet --release -p pa -- verify
