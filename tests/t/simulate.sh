#!/usr/bin/env bash
# `gogh simulate` end to end: keys, repetition, refusals; with Gavel's data where it is there.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
small=(--cluster "$SRC/docs/examples/small.cluster" --trace "$SRC/docs/examples/mixed.trace")

no() {
    echo "not so: $1"
    failed=1
}

# refused STATUS WORDS ARGUMENT...: ends with STATUS, WORDS on stderr and nothing on stdout
refused() {
    local want=$1 words=$2 status=0
    shift 2
    "$GOGH" simulate "$@" >"$dir/out" 2>"$dir/err" || status=$?
    [[ $status == "$want" ]] || no "simulate $* ends with $want (was $status)"
    grep -qF -- "$words" "$dir/err" || no "simulate $* says '$words' (said: $(cat "$dir/err"))"
    [[ ! -s $dir/out ]] || no "simulate $* prints nothing when refused"
}

for policy in gogh greedy fifo-fastest fifo-random fifo-first; do
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
"$GOGH" simulate "${small[@]}" --seed 4 --no-timing --json >"$dir/b"
"$GOGH" simulate "${small[@]}" --seed 3 --no-timing --json >"$dir/a"
! cmp -s "$dir/a" "$dir/b" || no "another seed is another world"
"$GOGH" simulate "${small[@]}" --jobs-out "$dir/jobs.csv" >"$dir/a"
grep -q '^promise attainment  *[0-9.]* %$' "$dir/a" || no "the table names promise attainment"
[[ $(wc -l <"$dir/jobs.csv") == 10 ]] || no "--jobs-out has a line for each job"
"$GOGH" simulate --help | grep -q '^usage: gogh simulate' || no "help says how it is used"

refused 2 "--cluster" --trace x
refused 2 "--trace" --cluster x
refused 2 "unknown option" --wrong
refused 2 "--seed" "${small[@]}" --seed -1
refused 1 "fifo-first" "${small[@]}" --policy wise
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
exit $failed
