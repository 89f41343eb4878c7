#!/usr/bin/env bash
# `gogh predict`: the built-in tables without a store, measurements with one.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$GOGH" predict bert-base --batch 32 --json >"$dir/bert.json"
jq -e '.workload == "bert-base (batch size 32)" and (.rows | length) >= 21' "$dir/bert.json" \
    >/dev/null
jq -e 'all(.rows[]; .low90 < .throughput and .throughput < .high90 and .watts > 0)' \
    "$dir/bert.json" >/dev/null
speed() { jq ".rows[] | select(.gpu == \"$1\") | .throughput" "$dir/bert.json"; }
jq -ne "$(speed h100) > $(speed v100-16) and $(speed v100-16) > $(speed k80)" >/dev/null

# Sharing slows a job down.
"$GOGH" predict resnet50 --gpu p100 --json >"$dir/alone.json"
"$GOGH" predict resnet50 --gpu p100 --beside bert-base --json >"$dir/beside.json"
jq -ne "$(jq '.rows[0].throughput' "$dir/beside.json") < $(jq '.rows[0].throughput' "$dir/alone.json")" \
    >/dev/null

# One measurement on one GPU type moves the estimate there, and elsewhere less.
cat >"$dir/m.csv" <<'CSV'
workload,gpu,throughput,watts
resnet50 (batch size 64),p100,1.0,150
CSV
"$GOGH" import csv "$dir/m.csv" --db "$dir/m.db" >/dev/null
"$GOGH" predict "resnet50 (batch size 64)" --db "$dir/m.db" --json >"$dir/measured.json"
jq -e '.rows[0].gpu == "p100" and (.rows[0].throughput - 1 | fabs) < 0.1 and .rows[0].sd < 0.1' \
    "$dir/measured.json" >/dev/null

status=0
"$GOGH" predict no-such-model 2>"$dir/err" || status=$?
[ "$status" -eq 1 ]
grep -q no-such-model "$dir/err"
status=0
"$GOGH" predict resnet50 --gpu no-such-gpu 2>"$dir/err" || status=$?
[ "$status" -eq 1 ]
