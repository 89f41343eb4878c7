#!/bin/bash
# Every published data set that is there, as it is, each into a campaign of one store; exact counts.
# What is absent is skipped and named.
. "$SRC/tests/helpers/script.sh"
data=${GOGH_DATA:-$SRC/../shared/data}
cd "$dir"
found=0

# take CAMPAIGN FORMAT PATH WARNINGS COUNTS: the report has COUNTS, and so many warnings; the same
# again adds nothing.
take() {
    local campaign=$1 format=$2 path=$data/$3 warnings=$4 counts=$5
    if [ ! -r "$path" ]; then
        echo "skipped: no $path"
        return
    fi
    found=$((found + 1))
    "$GOGH" import "$format" "$path" --campaign "$campaign" --db all.db --json >out 2>err ||
        no "$campaign: $(cat err)"
    grep -qF -- "$counts" out || no "$campaign: no '$counts' in $(cat out)"
    [ "$(jq '.warnings | length' out)" = "$warnings" ] || no "$campaign: $(jq .warnings out)"
    sqlite3 all.db .dump >before
    "$GOGH" import "$format" "$path" --campaign again --db all.db >out 2>err
    grep -q 'already known' out || no "$campaign, again: $(cat out)"
    sqlite3 all.db .dump | cmp -s - before ||
        no "$campaign: again changed the store"
}

take gavel gavel gavel/simulation_throughputs.json 0 \
    '"measurements": 2439, "workloads": 26, "gpu_types": 3, "isolated": 78, "pairs": 1881, "unfit": 77'
take gavel-oracle gavel gavel/oracle_throughputs.json 3 \
    '"measurements": 2172, "workloads": 26, "gpu_types": 3, "isolated": 78, "pairs": 1924, "unfit": 90'
take gavel-physical gavel gavel/physical_cluster_throughputs.json 0 \
    '"measurements": 2439, "workloads": 26, "gpu_types": 3, "isolated": 77, "pairs": 1881, "unfit": 78'
take zeus zeus zeus 0 '"measurements": 1609, "workloads": 74, "gpu_types": 4, "isolated": 218'
take neusight neusight neusight_e2e/e2e_latency.csv 0 \
    '"measurements": 97, "workloads": 18, "gpu_types": 10, "isolated": 97'
take pytorch-gpu-benchmark pytorch-gpu-benchmark pytorch_gpu_benchmark/batch_time_ms.csv.gz 0 \
    '"measurements": 1904, "workloads": 128, "gpu_types": 6, "isolated": 752'
take pollux pollux pollux_t4/throughput_profiles_t4.csv.gz 0 \
    '"measurements": 7103, "workloads": 57, "gpu_types": 1, "isolated": 57'
take parvagpu parvagpu parvagpu_a100_mig_mps/mig_mps_inference_profile.csv 0 \
    '"measurements": 990, "workloads": 99, "gpu_types": 5, "isolated": 420, "pairs": 370, "unfit": 200'
take miso miso miso_a100_mig 0 \
    '"measurements": 130, "workloads": 24, "gpu_types": 6, "isolated": 106'
take elasticflow elasticflow elasticflow/throughputs_A100_T4.tar.gz 0 \
    '"measurements": 109, "workloads": 17, "gpu_types": 1, "isolated": 17'
take mlenergy mlenergy mlenergy_v3/inference_energy_h100_b200.csv.gz 0 \
    '"measurements": 250, "workloads": 162, "gpu_types": 2, "isolated": 250'
if [ $found = 0 ]; then
    echo "skipped: no measured data"
    exit 77
fi

# Cells of campaigns stand apart: nothing of it is the site's own.
"$GOGH" catalog --db all.db --json >out
jq -e '.by_campaign[0] | .name == "site" and .isolated == 0 and .pairs == 0' out >verdict ||
    no "site: $(jq .by_campaign out)"
jq -e '.isolated == ([.by_campaign[].isolated] | add) and .pairs == ([.by_campaign[].pairs] | add)' \
    out >verdict || no "campaigns do not add up: $(jq .by_campaign out)"

# What was exported comes back, campaign by campaign.
"$GOGH" catalog export --db all.db >all.csv
"$GOGH" import csv all.csv --db again.db >out 2>err
"$GOGH" catalog export --db again.db | cmp - all.csv || no "export, import, export differ"
