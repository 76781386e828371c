#!/usr/bin/env bash
# Tries the contract on a running server, as other people's tools see it: proto/check.sh [quick].
# Schemathesis calls everything in openapi.json, with requests of its own making, and compares the
# answers with what stands there. grpcurl asks for the contract and calls an RPC (not with quick).
# It needs Go, python3 with venv, and the registries of both; without Schemathesis it says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'kill %1 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$scratch"' EXIT

go build -o "$scratch/kuji" ./cmd/kuji
"$scratch/kuji" serve --data "$scratch/data" --catalog examples/gacha-banner.yaml --history sqlite --listen 127.0.0.1:0 \
  >"$scratch/log" 2>&1 &
until url=$(grep -o 'url=http://[^ ]*' "$scratch/log"); do
  kill -0 %1
  sleep 0.1
done
url=${url#url=}

if ! python3 -m venv "$scratch/venv" >/dev/null || ! "$scratch/venv/bin/pip" install --quiet -r proto/requirements.txt; then
  echo "left out: Schemathesis cannot be installed here"
else
  phases=coverage,fuzzing examples=25
  if [[ ${1:-} == quick ]]; then phases=fuzzing examples=4; fi
  # Not the checks that a schema cannot promise: it has no rule of the game, and JSON of Protocol
  # Buffers takes null for every field.
  cd "$scratch" # it writes a cache where it runs
  venv/bin/schemathesis run "$url/openapi.json" -n $examples --phases $phases --max-failures 40 --suppress-health-check all \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method,use_after_free \
    >"$scratch/found" || { cat "$scratch/found"; exit 1; }
  grep -E 'generated|Tested' "$scratch/found"
  cd "$OLDPWD"
fi

if [[ ${1:-} != quick ]]; then
  ask() { go run github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4 -plaintext "$@"; }
  at=${url#http://}
  for service in $(ask "$at" list); do
    ask "$at" describe "$service" >/dev/null
  done
  ask -d '{"player": "ann"}' "$at" kuji.v1.RewardService/Register | grep -q STATUS_OK
  echo "grpcurl: every service describes itself, and a call is answered"
fi
