#!/usr/bin/env bash
# `gogh predict`: the built-in tables without a store, measurements with one.
. "$SRC/tests/helpers/script.sh"

"$GOGH" predict bert-base --batch 32 --json >"$dir/bert.json"
jq -e '.workload == "bert-base (batch size 32)" and (.rows | length) >= 21' "$dir/bert.json" \
    >/dev/null
jq -e 'all(.rows[]; .low90 < .throughput and .throughput < .high90 and .watts > 0)' \
    "$dir/bert.json" >/dev/null
speed() { jq ".rows[] | select(.gpu == \"$1\") | .throughput" "$dir/bert.json"; }
jq -ne "$(speed h100) > $(speed v100-16) and $(speed v100-16) > $(speed k80)" >/dev/null

# Tensor cores count, for training too, and more of them in a reduced precision.
"$GOGH" predict bert-large --model none --json >"$dir/plain.json"
"$GOGH" predict bert-large --model none --precision bf16 --json >"$dir/half.json"
jq -e '.workload == "bert-large-fp16 (batch size 8)"' "$dir/half.json" >/dev/null
of() { jq ".rows[] | select(.gpu == \"$2\") | .throughput" "$dir/$1.json"; }
jq -ne "$(of plain a100-40) > $(of plain a10) and $(of half v100-16) > 1.5 * $(of plain v100-16)" >/dev/null
jq -ne "$(of half h100) > $(of half a100-40) and $(of half a100-40) > $(of plain a100-40)" >/dev/null

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

# What to measure next: what was measured, and what does not fit, is not offered.
"$GOGH" predict "resnet50 (batch size 64)" --db "$dir/m.db" --model pretrained --choose active \
    --json >"$dir/choose.json"
jq -e '.choose | has("neighbour") and .gain > 0 and (.gpu | length) > 0' "$dir/choose.json" >/dev/null
"$GOGH" predict "resnet50 (batch size 64)" --db "$dir/m.db" --model pretrained --choose active \
    --gpu p100 --json >"$dir/choose.json"
jq -e '.choose | .gpu == "p100" and .neighbour == "resnet50 (batch size 64)"' "$dir/choose.json" \
    >/dev/null
"$GOGH" predict resnet50 --model pretrained --beside bert-base --choose active >"$dir/out"
grep -qE '^measure next: on [a-z0-9-]+ beside bert-base .*; uncertainty falls by 0\.[0-9]+$' "$dir/out"
"$GOGH" predict resnet50 --model pretrained --json >"$dir/plain.json"
jq -e 'has("choose") | not' "$dir/plain.json" >/dev/null

# The network answers too, otherwise, and believes what was measured.
"$GOGH" predict "resnet50 (batch size 64)" --db "$dir/m.db" --estimator network --json >"$dir/network.json"
jq -e --slurpfile h "$dir/measured.json" '(.rows[0].throughput - 1 | fabs) < 0.1 and .rows[0].sd < 0.1 and
    (.rows | map(.watts)) == ($h[0].rows | map(.watts))' "$dir/network.json" >/dev/null
"$GOGH" predict resnet50 --estimator network --json >"$dir/network.json"
jq -e --slurpfile h "$dir/plain.json" '(.rows | all(.throughput > 0 and .sd > 0.1)) and
    (.rows | map(.sd)) != ($h[0].rows | map(.sd))' "$dir/network.json" >/dev/null

verb=(predict resnet50)
refused 2 'the roofline learns nothing' --choose active --estimator roofline
refused 2 'no estimator' --estimator oracle
refused 2 '--choose wants active' --choose random
refused 1 'want fp32, tf32, fp16' --precision fp64
refused 2 '--model wants' --model ''
