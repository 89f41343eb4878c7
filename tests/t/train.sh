#!/usr/bin/env bash
# `gogh train` end to end: the same bytes again, what the store keeps, refusals; and the weights
# that ship with the program, made again from the measured data where these are there.
. "$SRC/tests/helpers/script.sh"

# Four families of two workloads, alone on two types and beside each other on one.
{
    echo workload,gpu,neighbour,throughput,watts
    i=0
    for w in 'resnet50 (batch size 32)' 'resnet50 (batch size 64)' 'bert-base (batch size 8)' \
        'bert-base (batch size 16)' 'gpt2 (batch size 4)' 'gpt2 (batch size 8)' \
        'vit-base (batch size 32)' 'vit-base (batch size 64)'; do
        i=$((i + 1))
        echo "$w,p100,,$((20 + 3 * i)),$((150 + i))"
        echo "$w,v100,,$((40 + 5 * i)),$((170 + i))"
        for n in 'resnet50 (batch size 32)' 'gpt2 (batch size 4)'; do
            echo "$w,v100,$n,$((25 + 3 * i)),"
        done
    done
} >"$dir/m.csv"
"$GOGH" import csv "$dir/m.csv" --db "$dir/a.db" >/dev/null

# The same bytes again.
"$GOGH" train --db "$dir/a.db" --out "$dir/a" >"$dir/out"
"$GOGH" train --db "$dir/a.db" --out "$dir/b" >/dev/null
cmp -s "$dir/a" "$dir/b" || no "the same store and seed give the same bytes"
"$GOGH" train --db "$dir/a.db" --seed 2 --out "$dir/b" --json >"$dir/json"
grep -q 'learned from 16 cells alone, 16 beside a neighbour, 16 with watts: 8 workloads of 4 fam' \
    "$dir/out" || no "the summary says what it learned from: $(cat "$dir/out")"
for key in about blas campaigns alone pairs families effects champion won seed seconds where; do
    grep -qF "\"$key\":" "$dir/json" || no "train --json has $key"
done

# The store: nothing with --out, else the model in use from then on.
"$GOGH" catalog model --db "$dir/a.db" >"$dir/out"
! grep -q "this site" "$dir/out" || no "--out leaves the store as it is"
"$GOGH" predict gpt2 --batch 16 --db "$dir/a.db" --model none >"$dir/none"
"$GOGH" train --db "$dir/a.db" --about 'a test' --from none >/dev/null
"$GOGH" catalog model --db "$dir/a.db" >"$dir/out"
grep -q "^in use: this site's own" "$dir/out" || no "the store uses what it learned"
grep -q "^a test (arithmetic of" "$dir/out" || no "and says what it is"
grep -q "^families never seen here: wrong by" "$dir/out" || no "and how wrong it is"
"$GOGH" catalog model --db "$dir/a.db" --json >"$dir/json"
grep -qF '"in_use": "site"' "$dir/json" || no "also as JSON"
grep -q "^network: .*; seed 1; .*73034 weights" "$dir/out" || no "and of the network"
jq -e '.network | .weights == 73034 and .share > 0.7 and .share < 0.72' "$dir/json" >/dev/null || no "that as JSON"
"$GOGH" predict gpt2 --batch 16 --db "$dir/a.db" >"$dir/p"
"$GOGH" predict gpt2 --batch 16 --db "$dir/a.db" --model site >"$dir/q"
cmp -s "$dir/p" "$dir/q" || no "predict believes the site's model"
! cmp -s "$dir/p" "$dir/none" || no "and that is another answer than an untaught one's"

# A model that foresees this site worse is kept for comparison, and is not used.
"$GOGH" train --db "$dir/a.db" --about 'the other' --json >"$dir/json"
"$GOGH" catalog model --db "$dir/a.db" --json >"$dir/models"
jq -e --slurpfile m "$dir/models" '.won == (.challenger <= .champion) and
    (if .won then $m[0].model else $m[0].challenger end).about == "the other"' "$dir/json" \
    >/dev/null || no "who is in use has won: $(cat "$dir/json" "$dir/models")"

# A simulation that starts with it, and one that learns, repeat.
small=(--cluster "$SRC/docs/examples/small.cluster" --trace "$SRC/docs/examples/mixed.trace")
for how in "--model $dir/a" "--known $dir/a.db --model site" "--learn" "--estimator network"; do
    # shellcheck disable=SC2086 # two words
    "$GOGH" simulate "${small[@]}" $how --no-timing --json >"$dir/p"
    # shellcheck disable=SC2086
    "$GOGH" simulate "${small[@]}" $how --no-timing --json >"$dir/q"
    cmp -s "$dir/p" "$dir/q" || no "simulate $how gives the same bytes again"
    grep -qF '"jobs": 9,' "$dir/p" || no "simulate $how reports its jobs"
done

printf 'workload,gpu,neighbour,fits\ngpt2 (batch size 4),v100,,0\n' >"$dir/none.csv"
"$GOGH" import csv "$dir/none.csv" --db "$dir/other.db" >/dev/null
refused 2 "which store" train
refused 2 "say where to" train --network
refused 2 "synthetic sites" train --network --out "$dir/n" --db "$dir/a.db"
refused 1 "nothing to learn from" train --db "$dir/other.db"
refused 1 "no-such.weights" predict gpt2 --model "$dir/no-such.weights"
refused 1 "m.csv" predict gpt2 --model "$dir/m.csv"
refused 1 "there is no store" predict gpt2 --model site
refused 1 "no model" predict gpt2 --db "$dir/other.db" --model site

# What ships with the program is what its commands make, byte for byte.
data=${GOGH_DATA:-$SRC/../shared/data}
if [[ -d $data/gavel && -d $data/zeus ]]; then
    GOGH_DATA=$data "$SRC/tools/pretrain" "$GOGH" "$dir/shipped"
    cmp "$dir/shipped" "$SRC/data/pretrained.weights" ||
        no "tools/pretrain makes data/pretrained.weights (make pretrained writes it anew)"
else
    echo "no measured data at $data: the shipped weights are not made again"
fi
