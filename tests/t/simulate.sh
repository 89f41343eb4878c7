#!/usr/bin/env bash
# `gogh simulate` end to end: keys, repetition, refusals; with Gavel's data where it is there.
. "$SRC/tests/helpers/script.sh"
small=(--cluster "$SRC/docs/examples/small.cluster" --trace "$SRC/docs/examples/mixed.trace")

verb=(simulate)

for policy in gogh greedy gavel-cost fifo-fastest fifo-random fifo-first slurm; do
    "$GOGH" simulate "${small[@]}" --policy $policy --seed 3 --no-timing --json >"$dir/a"
    "$GOGH" simulate "${small[@]}" --policy $policy --seed 3 --no-timing --json >"$dir/b"
    cmp -s "$dir/a" "$dir/b" || no "$policy gives the same bytes again"
    grep -qF '"finished": 9,' "$dir/a" || no "$policy finishes all nine jobs: $(cat "$dir/a")"
    for key in policy jobs finished energy_kwh promise_attainment mean_jct_s p95_jct_s makespan_s \
        allocation_efficiency moves decisions decision_p50_s decision_p99_s; do
        grep -qF "\"$key\":" "$dir/a" || no "$policy reports $key"
    done
done
grep -qF '"decision_p50_s": null' "$dir/a" || no "--no-timing leaves out wall times"
grep -qF '"power_model": "additive"' "$dir/a" || no "the power model of the world is named"

# Levers and the oracle.
"$GOGH" simulate "${small[@]}" --policy gogh --seed 3 --no-timing --json >"$dir/a"
"$GOGH" simulate "${small[@]}" --policy gogh --seed 3 --no-timing --json --without sleep >"$dir/b"
grep -qF '"without": "sleep"' "$dir/b" || no "what is taken away is named"
! cmp -s <(grep -o '"energy_kwh": [0-9.]*' "$dir/a") <(grep -o '"energy_kwh": [0-9.]*' "$dir/b") ||
    no "a cluster that never sleeps uses other joules"
"$GOGH" simulate "${small[@]}" --policy gogh-oracle --seed 3 --no-timing --json \
    --without sharing,moving,limits >"$dir/a"
grep -qF '"moves": 0,' "$dir/a" || no "without moving nobody is moved"
grep -qE '"prediction_error": 0\.0[0-5]' "$dir/a" || no "an oracle errs by noise: $(cat "$dir/a")"
refused 2 "--without sleep,wings: want some of" "${small[@]}" --without sleep,wings

# unused POLICY LEVERS: of all levers, the policy is told to have no use for these
unused() {
    local said
    "$GOGH" simulate "${small[@]}" --policy "$1" --seed 3 --without types,sharing,moving,sleep,limits,joules \
        >"$dir/out" 2>"$dir/err"
    said=$(sed -n "s/^gogh: $1 does not use \([a-z]*\): nothing is taken away$/\1/p" "$dir/err" | xargs)
    [[ $said == "$2" ]] || no "$1 does not use '$2' (said '$said')"
}

unused gogh ''
unused gogh-oracle ''
unused watts 'joules'
unused gavel 'types joules'
unused gavel-cost 'types joules'
unused eaco 'types joules'
unused pack 'types moving joules'
unused greedy 'types joules'
for policy in fifo-promise fifo-fastest fifo-random fifo-first slurm; do
    unused $policy 'types sharing moving joules'
done
"$GOGH" simulate "${small[@]}" --policy gavel --seed 7 --without sharing >"$dir/out" 2>"$dir/err"
grep -q '^policy  *gavel without sharing (seed 7)$' "$dir/out" || no "the table names the lever"
[[ ! -s $dir/err ]] || no "a lever that is used needs no word: $(cat "$dir/err")"

# What is said to be unused makes no difference.
for policy in watts gavel gavel-cost eaco pack greedy fifo-promise fifo-fastest slurm; do
    "$GOGH" simulate "${small[@]}" --policy $policy --seed 3 --no-timing --json |
        sed 's/"without": "[^"]*", //' >"$dir/a"
    levers=types,joules
    [[ $policy == watts ]] && levers=joules
    "$GOGH" simulate "${small[@]}" --policy $policy --seed 3 --no-timing --json --without $levers \
        2>/dev/null | sed 's/"without": "[^"]*", //' >"$dir/b"
    cmp -s "$dir/a" "$dir/b" || no "$policy is the same without $levers"
done
"$GOGH" simulate "${small[@]}" --seed 4 --no-timing --json >"$dir/b"
"$GOGH" simulate "${small[@]}" --seed 3 --no-timing --json >"$dir/a"
! cmp -s "$dir/a" "$dir/b" || no "another seed is another world"
jq -e '.gap_mean_w >= 0 and .gap_worst_ratio >= .gap_mean_ratio and .gap_worst_varying_ratio >= 0 and
    .repricings == 0 and .repricing_s == null' "$dir/a" >/dev/null || no "plans know their gap: $(cat "$dir/a")"
"$GOGH" simulate "${small[@]}" --policy greedy --json >"$dir/a"
jq -e '[.gap_mean_w, .gap_worst_w, .gap_mean_ratio, .gap_worst_ratio, .gap_mean_varying_ratio,
    .gap_worst_varying_ratio] | all(. == null)' "$dir/a" >/dev/null || no "greedy gives no bound: $(cat "$dir/a")"
"$GOGH" simulate "${small[@]}" --jobs-out "$dir/jobs.csv" >"$dir/a"
grep -q '^gap, mean  *[0-9.e-]* % of the plan' "$dir/a" || no "the table has the gap"
grep -q '^promise attainment  *[0-9.]* %$' "$dir/a" || no "the table names promise attainment"
[[ $(wc -l <"$dir/jobs.csv") == 10 ]] || no "--jobs-out has a line for each job"

# Told watts have noise, which is another world for those who weigh joules; without, the same seed is.
cp "$SRC/docs/examples/small.cluster" "$dir/quiet.cluster"
echo 'set watts_noise 0' >>"$dir/quiet.cluster"
cp "$SRC/docs/examples/small.cluster" "$dir/loud.cluster"
echo 'set watts_noise 0.5' >>"$dir/loud.cluster"
for noise in quiet loud; do
    "$GOGH" simulate --cluster "$dir/$noise.cluster" --trace "$SRC/docs/examples/mixed.trace" --seed 3 \
        --policy slurm --no-timing --json >"$dir/$noise"
done
cmp -s "$dir/quiet" "$dir/loud" || no "who does not ask for watts is not misled by them"
sed -i 's/set watts_noise 0.5/set watts_noise 2/' "$dir/loud.cluster"
refused 1 "watts_noise" --cluster "$dir/loud.cluster" --trace "$SRC/docs/examples/mixed.trace"

# A job that fits nowhere, on more types than anybody tries: it fails, and why is told.
echo 'workload,gpu,neighbour,throughput,watts,fits' >"$dir/unfit.csv"
for ((i = 0; i < 40; i++)); do
    echo "lstm-lm (batch size 20),g$i,,,,0" >>"$dir/unfit.csv"
    echo "resnet50 (batch size 32),g$i,,10,150,1" >>"$dir/unfit.csv"
    echo "gputype g$i like=v100" >>"$dir/unfit.cluster"
    echo "node n-$i g$i:1" >>"$dir/unfit.cluster"
done
echo 'job large at=0 workload="lstm-lm (batch size 20)" steps=1000' >"$dir/unfit.trace"
"$GOGH" import csv "$dir/unfit.csv" --db "$dir/unfit.db" >/dev/null 2>&1
"$GOGH" simulate --cluster "$dir/unfit.cluster" --trace "$dir/unfit.trace" --truth "$dir/unfit.db" \
    --jobs-out "$dir/jobs.csv" >"$dir/a"
grep -q '^"large",.*,out of memory$' "$dir/jobs.csv" ||
    no "a job that failed has a reason: $(cat "$dir/jobs.csv")"
"$GOGH" simulate --help | grep -q '^usage: gogh simulate' || no "help says how it is used"

refused 2 "--cluster" --trace x
refused 2 "--trace" --cluster x
refused 2 "unknown option" --wrong
refused 2 "--seed" "${small[@]}" --seed -1
refused 2 "there are gogh, gogh-oracle, watts" "${small[@]}" --policy wise
"$GOGH" simulate --help >"$dir/help"
for policy in $("$GOGH" simulate "${small[@]}" --policy wise 2>&1 | sed -n 's/.*there are //p' | tr -d ,); do
    grep -qw -- "$policy" "$dir/help" || no "help names $policy"
    grep -q "^ *words='gogh .*\b$policy\b" "$SRC/packaging/gogh.bash" || no "the shell completes $policy"
done
refused 2 "only 'gogh study --policy bound'" "${small[@]}" --policy bound
refused 1 "nowhere" --cluster "$dir/nowhere" --trace x
refused 1 "nowhere" "${small[@]}" --truth "$dir/nowhere"
echo 'node a v100:0' >"$dir/bad.cluster"
refused 1 "bad.cluster:1:" --cluster "$dir/bad.cluster" --trace "$SRC/docs/examples/mixed.trace"
echo 'job a at=0 workload=no-such-model steps=1' >"$dir/bad.trace"
refused 1 "no-such-model" --cluster "$SRC/docs/examples/small.cluster" --trace "$dir/bad.trace"

data=${GOGH_DATA:-$SRC/../shared/data}
if [[ -d $data/gavel ]]; then
    "$GOGH" import gavel "$data/gavel/simulation_throughputs.json" \
        --isolated "$data/gavel/physical_cluster_throughputs.json" \
        --workloads "$data/workloads/gavel_workloads.csv" --watts "$data/power/gavel_watts.csv" \
        --db "$dir/gavel.db" >/dev/null 2>&1
    reference=(--cluster "$SRC/docs/examples/reference.cluster" --truth "$dir/gavel.db")
    "$GOGH" trace generate "${reference[@]}" --jobs 100 --load 0.6 --seed 11 --out "$dir/r.trace"
    for policy in gogh greedy fifo-fastest; do
        "$GOGH" simulate "${reference[@]}" --trace "$dir/r.trace" --policy $policy --seed 11 \
            --known "$dir/gavel.db" --no-timing --json >"$dir/a"
        grep -qF '"finished": 100,' "$dir/a" || no "$policy finishes Gavel's jobs: $(cat "$dir/a")"
    done
fi
