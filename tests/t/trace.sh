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

# Requests: the trace names their file, from wherever it is simulated.
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n' >"$dir/azure.csv"
for ((i = 0; i < 300; i++)); do
    printf '2023-11-16 18:%02d:%02d.5,%d,%d\n' $((i / 60)) $((i % 60)) $((i * 7 % 900)) $((i % 50))
done >>"$dir/azure.csv"
printf 'node a-1 a100:2\n' >"$dir/a100.cluster"
mkdir "$dir/in" "$dir/here"
"$GOGH" trace import azure "$dir/azure.csv" --ttft 2s --tpot 100ms --out "$dir/in/azure.trace" \
    2>"$dir/err"
grep -qF "$dir/in/azure.arrivals" "$dir/err" || no "it says where the requests are"
grep -qF ' ttft=2 tpot=0.1 max_gpus=8 arrivals=azure.arrivals' "$dir/in/azure.trace" ||
    no "the service is a language model's: $(cat "$dir/in/azure.trace")"
[[ $(sed -n 2p "$dir/in/azure.arrivals") == '241.000000 7 1' ]] || no "a request has its lengths"
"$GOGH" simulate --cluster "$dir/a100.cluster" --trace "$dir/in/azure.trace" --json --no-timing \
    >"$dir/one"
grep -qF '"service_hours_kept": 1.0,' "$dir/one" || no "its requests are served: $(cat "$dir/one")"
"$GOGH" simulate --cluster "$dir/a100.cluster" --trace "$dir/in/azure.trace" >"$dir/out"
grep -qE '^late requests +[0-9.]+ %$' "$dir/out" || no "people read how many were late, too"
gzip "$dir/azure.csv"
(cd "$dir/here" && "$GOGH" trace import azure ../azure.csv.gz >../azure.trace 2>/dev/null)
[[ -s $dir/here/azure.arrivals ]] || no "without --out they are in this folder"
"$GOGH" simulate --cluster "$dir/a100.cluster" --trace "$dir/azure.trace" --json --no-timing \
    >"$dir/two"
cmp -s "$dir/one" "$dir/two" || no "and the trace says where that is"
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00,many,1\n' >"$dir/bad.csv"
refused 1 "bad.csv:2: " import azure "$dir/bad.csv" --out "$dir/bad.trace"
[[ ! -e $dir/bad.trace && ! -e $dir/bad.arrivals ]] || no "what is refused leaves nothing"
refused 2 "for 'import azure'" import philly "$dir/azure.csv" --ttft 1s
refused 2 "for 'import azure'" generate --cluster "$cluster" --workload llama-8b
refused 1 "--ttft" import azure "$dir/azure.csv.gz" --ttft 0s
echo 'service a at=0 workload=resnet50-infer rate=1 ttft=1 tpot=1 traffic=steady' >"$dir/cnn.trace"
verb=(simulate)
refused 1 "cnn.trace:1: service a promises ttft= and tpot=, and" --cluster "$cluster" \
    --trace "$dir/cnn.trace"

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
if [[ -d $data/azure_llm_trace_2023 ]]; then
    "$GOGH" trace import azure "$data/azure_llm_trace_2023/AzureLLMInferenceTrace_conv.csv.gz" \
        --out "$dir/conv.trace" 2>/dev/null
    [[ $(wc -l <"$dir/conv.arrivals") == 19366 ]] || no "Azure's conversations are 19,366 requests"
else
    echo "no azure_llm_trace_2023 in $data: Azure's own requests are not read"
fi
