#!/bin/bash
# The published measurements, imported: exact counts. Skipped where they are absent.
. "$SRC/tests/helpers/script.sh"
data=${GOGH_DATA:-$SRC/../shared/data}
gavel=$data/gavel/simulation_throughputs.json
if [ ! -r "$gavel" ]; then
    echo "skipped: no measured data"
    exit 77
fi
cd "$dir"

expect() {
    grep -qF -- "$1" out || { echo "FAILED: no '$1' in: $(head -c 600 out)"; exit 1; }
}

# ---- Gavel, with descriptors and watts ----
options=(--workloads "$data/workloads/gavel_workloads.csv" --watts "$data/power/gavel_watts.csv")
"$GOGH" import gavel "$gavel" "${options[@]}" --db g.db --json >out
expect '"isolated": 78, "pairs": 1881, "unfit": 77, "gangs": 333'
expect '"dropped": 6285, "copies": 2106'
"$GOGH" catalog --db g.db --json >out
expect '{"workloads": 26, "gpu_types": 3, "isolated": 78, "pairs": 1881, "unfit_pairs": 77,'
expect '"unfit_isolated": 0, "gangs": 333, "limited": 0, "watts": 78, "measurements": 2517'
sqlite3 g.db .dump >before
"$GOGH" import gavel "$gavel" "${options[@]}" --db g.db >out
expect 'already known'
sqlite3 g.db .dump | cmp - before
"$GOGH" catalog show 'ResNet-18 (batch size 16)' --db g.db --json >out
expect '"family": "ResNet-18"'
expect '"params": 11200000'

# ---- isolated speeds of another campaign, slowdowns of this one ----
"$GOGH" import gavel "$gavel" --isolated "$data/gavel/physical_cluster_throughputs.json" \
    "${options[@]}" --db p.db >out 2>err
"$GOGH" catalog --db p.db --json >out
expect '"isolated": 77, "pairs": 1881, "unfit_pairs": 77, "unfit_isolated": 1'
"$GOGH" catalog show 'Recommendation (batch size 1024)' --db p.db --json >out
expect '"throughput": 150.539375840'
for store in g p; do
    "$GOGH" catalog show 'LM (batch size 20)' --db $store.db --json |
        grep -o '"slowdown": 0\.[0-9]\{9\}' >$store.slowdowns
done
cmp g.slowdowns p.slowdowns

# ---- Zeus ----
"$GOGH" import zeus "$data/zeus" --db z.db >out
"$GOGH" catalog --db z.db --json >out
expect '{"workloads": 74, "gpu_types": 4, "isolated": 218, "pairs": 0'
expect '"limited": 1391, "watts": 1609, "measurements": 1609'

# ---- export and import give the same bytes ----
for store in g p z; do
    "$GOGH" catalog export --db $store.db >$store.csv
    "$GOGH" import csv $store.csv --db again-$store.db >out
    "$GOGH" catalog export --db again-$store.db | cmp - $store.csv
done
