#!/usr/bin/env bash
# `gogh eval`: rows and figures, the dump behind them, repeatable bytes, and what it refuses.
. "$SRC/tests/helpers/script.sh"

# Five workloads of three families on two types; b and c do not fit a K80 together.
{
    echo 'workload,gpu,neighbour,throughput,watts,fits'
    for w in 'a (batch size 8)' 'a (batch size 32)' 'b (batch size 8)' 'b (batch size 64)' c; do
        for g in k80 v100; do
            echo "$w,$g"
        done
    done | awk -F, '
        { name[NR] = $1; gpu[NR] = $2 }
        function speed(i) { return (20 + 7 * i) * (gpu[i] == "v100" ? 3 : 1) }
        END {
            for (i = 1; i <= NR; i++) {
                printf "%s,%s,,%g,%g,\n", name[i], gpu[i], speed(i), 90 + 9 * i
                for (j = 1; j <= NR; j++) {
                    if (gpu[i] != gpu[j]) continue
                    r = 1 - 0.03 * j - 0.02 * ((i + j) % 5)
                    if (gpu[i] == "k80" && name[i] name[j] ~ /^(b.*c|cb.*)$/)
                        printf "%s,%s,%s,,,0\n", name[i], gpu[i], name[j]
                    else
                        printf "%s,%s,%s,%g,,\n", name[i], gpu[i], name[j], r * speed(i)
                }
            }
        }'
} >"$dir/m.csv"
cat >"$dir/w.csv" <<'CSV'
family,params,flop_per_sample,bytes_per_sample,kernels_per_step
a,1e6,1e9,1e7,100
b,5e6,2e9,3e7,200
c,2e6,5e9,2e7,300
CSV
"$GOGH" import csv "$dir/m.csv" --workloads "$dir/w.csv" --db "$dir/m.db" >/dev/null

evaluate() { # NAME OPTIONS...
    local name=$1
    shift
    "$GOGH" eval --db "$dir/m.db" --seeds 2 --dump "$dir/$name.csv" --json "$@" >"$dir/$name.json"
}
evaluate family --split family --measurements 0,2 --threads 2
jq -e '.split == "family" and .folds == 3 and .workloads == 5' "$dir/family.json" >/dev/null
for method in roofline mean ridge hierarchical network gogh; do
    jq -e --arg m "$method" '[.rows[] | select(.method == $m)] | map(.k) == [0, 2] and
        all(.isolated_mape > 0 and (if $m == "roofline" then .pair_mape == null else .pair_mape > 0 end))' \
        "$dir/family.json" >/dev/null || no "family: $method"
done
jq -e '.rows | length == 2 * 7' "$dir/family.json" >/dev/null
jq -e '.rows[] | select(.k == 0 and .method == "gogh") |
    .fit_auc != null and .coverage90 != null and .joules_mape > 0' "$dir/family.json" >/dev/null
jq -e '.rows[] | select(.k == 0 and .method == "gogh") | .n == null and .isolated_abs_ln > 0 and
    .coverage90_slowdown != null and .order != null and has("campaign") == false' \
    "$dir/family.json" >/dev/null
jq -e '[.rows[] | select(.fit_auc != null) | .method] | unique == ["gogh"]' "$dir/family.json" >/dev/null
head -1 "$dir/family.csv" | grep -qx 'workload,sequence,n,k,method,gpu,neighbour,quantity,truth,mean,sd'

# Of slowdowns what is believed lies between both, and alone it is the model's.
awk -F, 'NR > 1 && ($(NF - 3) == "isolated" || $(NF - 3) == "watts" || $(NF - 3) == "slowdown") {
        key = $1 "," $2 "," $4 "," $6 "," $7 "," $(NF - 3)
        if ($5 == "hierarchical") m[key] = log($(NF - 1))
        if ($5 == "network") m2[key] = log($(NF - 1))
        if ($5 == "gogh") m3[key] = log($(NF - 1)) }
    END {
        for (k in m3) {
            if (k ~ /watts$/ && m[k] != m2[k]) exit 1
            if (k !~ /slowdown$/) { if (m3[k] != m[k]) exit 1; continue }
            if ((m3[k] - m[k]) * (m2[k] - m3[k]) < -1e-9) exit 1
            between += m3[k] != m[k] && m3[k] != m2[k]; n++ }
        exit !(n > 20 && between > n / 3) }' "$dir/family.csv" || no "between model and network"

# The same bytes again, with other threads.
evaluate again --split family --measurements 0,2 --threads 1
cmp "$dir/family.json" "$dir/again.json"
cmp "$dir/family.csv" "$dir/again.csv"

evaluate gpu --split gpu --measurements 0,1 --choose active
jq -e '.folds == 2 and .choose == "active" and (.rows | length == 2 * 8) and
    ([.rows[] | select(.method == "nearest") | .isolated_mape > 0] == [true, true])' "$dir/gpu.json" >/dev/null
for name in hierarchical network mean roofline; do
    evaluate one --split family --measurements 0,2 --estimator $name
    jq -e --arg m $name '[.rows[] | .method] | unique == (["gogh", $m] | sort)' "$dir/one.json" >/dev/null
    jq --arg m $name '.rows |= map(select(.method == "gogh" or .method == $m))' "$dir/family.json" |
        cmp - <(jq . "$dir/one.json")
done

# Three campaigns of the same figures, two of which are kin: each is a site never seen in turn.
for campaign in west west-again east; do
    "$GOGH" import csv <(sed "1s/\$/,campaign/; 2,\$s/\$/,$campaign/" "$dir/m.csv") \
        --workloads "$dir/w.csv" --db "$dir/c.db" >/dev/null
done
sites() { # NAME OPTIONS...
    local name=$1
    shift
    "$GOGH" eval --db "$dir/c.db" --seeds 2 --dump "$dir/$name.csv" --json "$@" >"$dir/$name.json"
}
sites campaign --split campaign --site-cells 0,8 --measurements 0,2 --threads 2
jq -e '.campaigns == ["west", "west-again", "east"] and .folds == 9 and .workloads == 15 and
    (.rows | length) == 4 * 2 * 2 * 7' "$dir/campaign.json" >/dev/null
for method in roofline none mean ridge hierarchical network gogh; do
    jq -e --arg m "$method" '[.rows[] | select(.n == 8 and .k == 2 and .method == $m)] |
        map(.campaign) == ["west", "west-again", "east", null] and
        all(if $m == "none" then .slowdown_mae > 0 and .isolated_mape == null
            else .isolated_abs_ln > 0 and .watts_mape > 0 and .joules_mape > 0 end)' \
        "$dir/campaign.json" >/dev/null || no "campaign: $method"
done
sites campaign2 --split campaign --site-cells 0,8 --measurements 0,2 --threads 1
cmp "$dir/campaign.json" "$dir/campaign2.json"
cmp "$dir/campaign.csv" "$dir/campaign2.csv"
sites site --split site --campaign east --site-cells 8 --measurements 1
jq -e '.campaigns == ["east"] and ([.rows[] | .campaign] | unique == ["east"]) and
    ([.rows[] | [.n, .k]] | unique == [[8, 1]])' "$dir/site.json" >/dev/null
sites part --split family --campaign east --measurements 0,2
jq -e '.campaigns == ["east"] and .folds == 3 and .workloads == 5 and (.rows | all(.n == null)) and
    (.rows | length) == 2 * 7' "$dir/part.json" >/dev/null
"$GOGH" eval --db "$dir/m.db" --split site --site-cells 0,4 --measurements 0 --seeds 1 >"$dir/out"
grep -q '^  4   0 hierarchical ' "$dir/out"

# Whoever has the dump can recompute the table.
if command -v python3 >/dev/null; then
    for name in family gpu campaign site part; do
        python3 "$SRC/tools/eval-check" "$dir/$name.csv" "$dir/$name.json"
    done
    sed 's/,gogh,\(.*\),isolated,\([0-9]\)/,gogh,\1,isolated,9\2/' "$dir/family.csv" >"$dir/bad.csv"
    if python3 "$SRC/tools/eval-check" "$dir/bad.csv" "$dir/family.json" >"$dir/out"; then
        echo "eval-check did not notice a wrong truth"
        exit 1
    fi
    grep -q 'gogh: isolated_mape' "$dir/out"
else
    echo "no python3: the dump was not recomputed"
fi

verb=(eval)
refused 2 '--db' --split job
refused 2 'job, family or gpu' --db "$dir/m.db" --split node
refused 2 'campaign or site' --db "$dir/m.db" --split node
refused 2 'ascending numbers from 0 to 800' --db "$dir/m.db" --split site --site-cells 801
refused 2 'ascending numbers' --db "$dir/m.db" --split site --site-cells 5,5
refused 2 'takes each in turn' --db "$dir/m.db" --split campaign --campaign east
refused 2 'hierarchical, network, mean or roofline' --db "$dir/m.db" --estimator best
refused 1 "no campaign 'north'" --db "$dir/c.db" --split site --campaign north
refused 1 "campaign 'site': no workload" --db "$dir/c.db" --split site
refused 2 'random or active' --db "$dir/m.db" --choose best
for list in '' ',' 1,0 1,1 0,x -1 '0,' 101 0.5; do
    refused 2 'ascending numbers' --db "$dir/m.db" --measurements "$list"
done
refused 1 "$dir/absent/" --db "$dir/absent.db" --dump "$dir/absent/x.csv"    # before anything else
refused 1 'is a directory' --db "$dir/m.db" --dump "$dir"
refused 1 absent.db --db "$dir/absent.db"
printf 'workload,gpu,throughput\na (batch size 8),k80,1\na (batch size 16),k80,2\n' >"$dir/one.csv"
"$GOGH" import csv "$dir/one.csv" --workloads "$dir/w.csv" --db "$dir/one.db" >/dev/null
refused 1 'only one family' --db "$dir/one.db" --split family
refused 1 'only one GPU type' --db "$dir/one.db" --split gpu
printf 'workload,gpu,watts\na (batch size 8),k80,100\n' >"$dir/none.csv"
"$GOGH" import csv "$dir/none.csv" --workloads "$dir/w.csv" --db "$dir/none.db" >/dev/null
refused 1 'no workload was measured alone' --db "$dir/none.db"
