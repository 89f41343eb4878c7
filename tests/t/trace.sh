#!/usr/bin/env bash
# `gogh trace` end to end: generated traces repeat and are read again; published ones are read.
. "$SRC/tests/helpers/script.sh"
cluster=$SRC/docs/examples/small.cluster

verb=(trace)

"$GOGH" trace generate --cluster "$cluster" --jobs 40 --load 0.5 --seed 5 --inference 0.2 \
    --gangs 0.2 --out "$dir/a"
"$GOGH" trace generate --cluster "$cluster" --jobs 40 --load 0.5 --seed 5 --inference 0.2 \
    --gangs 0.2 >"$dir/b"
cmp -s "$dir/a" "$dir/b" || no "the same seed gives the same trace, to a file or not"
[[ $(grep -c '^job ' "$dir/a") == 40 ]] || no "there are forty jobs"
"$GOGH" simulate --cluster "$cluster" --trace "$dir/a" --seed 5 --json >"$dir/out"
grep -qF '"jobs": 40,' "$dir/out" || no "a generated trace can be simulated"

printf 'big\tx\t-n\t1\t900\t0\t1\nbig\tx\t-n\t1\tmany\t1\t1\n' >"$dir/g.trace"
refused 1 "g.trace:2: total_steps 'many'" import gavel "$dir/g.trace"
refused 2 "generate or import"
refused 2 "--cluster" generate
refused 2 "exclude each other" generate --cluster "$cluster" --load 1 --rate 2
refused 2 "cannot import" import bookings "$dir/g.trace"
refused 2 "for 'generate'" import gavel "$dir/g.trace" --load 1
refused 1 "nowhere" import philly "$dir/nowhere"

data=${GOGH_DATA:-$SRC/../shared/data}
if [[ -d $data/gavel ]]; then
    "$GOGH" trace import gavel "$data/gavel/traces.tar.gz" \
        --member traces/msr/seed=0/0e4a51.trace --out "$dir/gavel.trace"
    "$GOGH" trace import gavel "$data/gavel/traces.tar.gz" \
        --member traces/physical_cluster/max_min_fairness.trace --out "$dir/physical.trace"
    "$GOGH" trace import philly "$data/philly_via_pollux/philly.csv.gz" --jobs 300 \
        --out "$dir/philly.trace" 2>/dev/null
    "$GOGH" trace import alibaba "$data/alibaba_openb_v2023/openb_pod_list_gpuspec33.csv.gz" \
        --out "$dir/alibaba.trace" 2>/dev/null
    "$GOGH" trace import alibaba-nodes "$data/alibaba_openb_v2023/openb_node_list_gpu_node.csv.gz" \
        --out "$dir/alibaba.cluster"
    [[ $(grep -c '^node ' "$dir/alibaba.cluster") == 1213 ]] || no "Alibaba has 1,213 GPU nodes"
    [[ $(grep -c '^job ' "$dir/philly.trace") == 300 ]] || no "--jobs takes as many"
    "$GOGH" simulate --cluster "$dir/alibaba.cluster" --trace "$dir/alibaba.trace" --until 10000000 \
        --policy fifo-first --json >"$dir/out"
    grep -qF '"policy": "fifo-first"' "$dir/out" || no "Alibaba's cluster runs Alibaba's pods"
fi
