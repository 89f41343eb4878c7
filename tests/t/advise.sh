#!/usr/bin/env bash
# `gogh advise` end to end: the history's energy reckoned twice, text, keys, repetition, refusals.
. "$SRC/tests/helpers/script.sh"
data=$SRC/tests/data/sacct
site=(--cluster "$data/site.cluster")
make=(python3 "$SRC/tests/helpers/make_sacct.py")

verb=(advise)

# is WANT QUERY: what jq finds in the last answer
is() {
    local got
    got=$(jq -c "$2" "$dir/a")
    [[ $got == "$1" ]] || no "$2 is $1 (was $got)"
}

# near WANT GOT WHAT: the same to a millionth
near() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b < 1e-6 * a + 1e-9 && b - a < 1e-6 * a + 1e-9) }' ||
        no "$3: $2, reckoned otherwise $1"
}

# A site's own measurements: watts that both sides of the reckoning know.
cat >"$dir/m.csv" <<'END'
workload,gpu,throughput,watts
ResNet-50 (batch size 64),v100,6,200
ResNet-50 (batch size 64),p100,3,150
bert-base (batch size 32),v100,4,240
bert-base (batch size 32),p100,1,180
ResNet-18 (batch size 128),v100,20,140
ResNet-18 (batch size 128),p100,12,110
gpt2 (batch size 4),v100,2,245
gpt2 (batch size 4),p100,0.7,220
vit-base (batch size 32),v100,5,230
vit-base (batch size 32),p100,2,200
END
"$GOGH" import csv "$dir/m.csv" --db "$dir/m.db" >/dev/null

# ---- Slurm 22.05: every line is something, and the joules are those of a calculator ----
"$GOGH" advise --sacct "$data/slurm-22.05.sacct" "${site[@]}" --truth "$dir/m.db" --seeds 1 --json \
    --price 0.5 --co2 400 >"$dir/a"
is '{"all":12,"runs":7,"steps":2,"other_partitions":0,"never_ran":1,"no_gpu":1,"repeated":0,"refused":1,"refused_line":13,"refused_why":"more fields than the header has: a '"'|'"' in a name?"}' .lines
is '{"outside":0,"unknown_nodes":1,"unknown_node":"gpu099","no_room":0,"no_room_job":null,"unfit":0,"mixed":0}' .left_out
is '[6,1,"2026-03-02T08:00:00","2026-03-02T10:40:00",9600,6]' '[.jobs, .requeued, .from, .to, .span_s, .gpus]'
is '{"by_comment":0,"by_name":3,"by_default":3,"default":"ResNet-50 (batch size 64)","not_fitting":0,"unknown":0,"unclear_comments":0}' .workloads
# All six GPUs idle throughout, and above that: three hours and a bit on V100s with ResNet-50 (one job
# on both), half an hour on a P100, two hours on P100s with BERT.
joules=$((9600 * (4 * 40 + 2 * 30) + (7200 + 3600 + 2 * 1800) * (200 - 40) +
    1800 * (150 - 30) + 2 * 3600 * (180 - 30)))
is '["2026-03-02T09:00:00","2026-03-02T10:00:00"]' '[.first_end, .last_start]'
near $joules "$(jq '.runs[0].energy_kwh * 3.6e6' "$dir/a")" "joules as they were"
printf '%s\n' 'gpu001 40 - 200' 'gpu003 40 - 200' 'gpu002 30 - 150' 'gpu002 30 bert-base 180' >"$dir/watts"
read -r kwh wait_s < <("${make[@]}" --reckon "$data/slurm-22.05.sacct" "$dir/watts" 'gpu001*2' 'gpu002*2' 'gpu003*2')
near "$kwh" "$(jq '.runs[0].energy_kwh' "$dir/a")" "kWh, by a program"
near "$wait_s" "$(jq '.runs[0].mean_wait_s' "$dir/a")" "the mean wait"
near "$(jq '.runs[0].energy_kwh - .runs[2].energy_kwh' "$dir/a")" "$(jq .saved.kwh "$dir/a")" "what is saved"
near "$(jq '.saved.kwh * 0.5' "$dir/a")" "$(jq .saved.cost "$dir/a")" "its price"
near "$(jq '.saved.kwh * 0.4' "$dir/a")" "$(jq .saved.co2_kg "$dir/a")" "its carbon"
is '["was","was-asleep","gogh","gogh-no-sharing","gogh-no-sleep"]' '[.runs[].name]'
is '[6,6,6]' '[.runs[2:][].finished]'
is true '.runs[2].energy_kwh < .runs[0].energy_kwh'

"$GOGH" advise --sacct "$data/slurm-22.05.sacct" "${site[@]}" --seeds 1 --no-levers >"$dir/a"
grep -q '^edges  *Nobody ended before 2026-03-02T09:00:00, and nobody began after 2026-03-02T10:00:00' "$dir/a" ||
    no "the page tells of edges: $(cat "$dir/a")"
grep -q '(gpu099)$' "$dir/a" || no "the page names a node that is not there"

# ---- Slurm 24.11: other columns, shards, nodes, comments ----
"$GOGH" advise --sacct "$data/slurm-24.11.sacct" "${site[@]}" --seeds 1 --no-levers --json >"$dir/a"
is '[4,2,1,1,0]' '[.jobs, .shared, .lines.never_ran, .lines.steps, .lines.refused]'
is '[2,0,2]' '[.workloads.by_comment, .workloads.by_name, .workloads.by_default]'
is '{"asked":2,"tolerance":1.1}' .promises
is '[2,0,0,1,1,0]' '.states | [.completed, .failed, .cancelled, .timeout, .node_fail, .running]'
is '["was","was-asleep","gogh"]' '[.runs[].name]'
is 4 '.runs[2].finished'
"$GOGH" advise --sacct "$data/slurm-24.11.sacct" "${site[@]}" --seeds 1 --no-levers --site-sleeps --json >"$dir/a"
is '["was-asleep",0]' '[.base, .runs[0].saved]'

# ---- a larger site: reckoned twice, the same bytes twice, one screen ----
"${make[@]}" 150 4 4 7 0.7 >"$dir/big.sacct"
printf 'node n00[1-2] v100:4\nnode n00[3-4] p100:4\ngputype v100 idle=40 sleep=10\n' >"$dir/big.cluster"
printf 'gputype p100 idle=30 sleep=10\n' >>"$dir/big.cluster"
for node in 'n001 40 200 240 140 245 230' 'n002 40 200 240 140 245 230' \
    'n003 30 150 180 110 220 200' 'n004 30 150 180 110 220 200'; do
    read -r name idle resnet bert small gpt vit <<<"$node"
    printf "$name $idle %s %s\n" - "$resnet" resnet50 "$resnet" bert-base-squad "$bert" \
        resnet18_cifar10 "$small" gpt2_ft "$gpt" vit-base "$vit"
done >"$dir/watts"
big=(--sacct "$dir/big.sacct" --cluster "$dir/big.cluster")
"$GOGH" advise "${big[@]}" --truth "$dir/m.db" --seeds 1 --no-levers --json >"$dir/a"
read -r kwh wait_s < <("${make[@]}" --reckon "$dir/big.sacct" "$dir/watts" 'n001*4' 'n002*4' 'n003*4' 'n004*4')
near "$kwh" "$(jq '.runs[0].energy_kwh' "$dir/a")" "kWh of a larger site"
near "$wait_s" "$(jq '.runs[0].mean_wait_s' "$dir/a")" "the mean wait of a larger site"
is '[150,0,0]' '[.jobs, .left_out.no_room, .lines.refused]'
is 150 '.runs[2].finished'
"$GOGH" advise "${big[@]}" --truth "$dir/m.db" --seeds 1 --no-levers --json >"$dir/b"
cmp -s "$dir/a" "$dir/b" || no "the same bytes again"

"$GOGH" advise "${big[@]}" --seeds 2 --price 0.3 --co2 380 >"$dir/a"
(($(wc -l <"$dir/a") <= 24)) || no "one screen: $(wc -l <"$dir/a") lines"
! grep -q '.\{101\}' "$dir/a" || no "no line is too wide"
for words in '^jobs *150 runs on GPUs, of 3[0-9]* lines' '^left out *150 steps, [0-9]* without a GPU$' \
    '^workloads *[0-9]* told by comments, [0-9]* by names, [0-9]* taken for ResNet-50' \
    'divided by 1.1$' '^as it was  *[0-9.]*  *-' '^GOGH  *[0-9.]*  *[0-9.]*  *[0-9.]* to [0-9.]*' \
    '^GOGH without sharing' '^GOGH without sleep' '^saved .* at 0.3 a kWh, .* kg of CO2' '^idle ' \
    'estimates, of built-in tables; 2 worlds'; do
    grep -q -- "$words" "$dir/a" || no "the page says '$words': $(cat "$dir/a")"
done
gzip -k "$dir/big.sacct"
"$GOGH" advise --sacct "$dir/big.sacct.gz" --cluster "$dir/big.cluster" --seeds 1 --no-levers --days 0.1 --json >"$dir/a"
is true '.span_s <= 8640 and .left_out.outside > 0 and .jobs > 0'
is true '[.runs[2].finished == .jobs] | all'
"$GOGH" advise "${big[@]}" --seeds 1 --no-levers --json --from 2026-03-02T01:00:00 --to 2026-03-02T02:00:00 >"$dir/a"
is true '.from >= "2026-03-02T01:00:00" and .to <= "2026-03-02T02:00:00"'
"$GOGH" advise "${big[@]}" --seeds 1 --no-levers --json --keep-types --partition gpu --tolerance 2 \
    --workload bert-base >"$dir/a"
is '["gpu",2,"bert-base (batch size 32)"]' '[.partition, .promises.tolerance, .workloads.default]'
is true '.lines.other_partitions > 0 and .lines.no_gpu == 0'

# ---- refusals ----
refused 2 'say what ran: --sacct FILE' "${site[@]}"
refused 2 'say where it ran: --cluster FILE' --sacct "$data/slurm-22.05.sacct"
refused 2 'leave out --from and --to' "${big[@]}" --days 1 --from 2026-03-02
refused 2 'tolerance' "${big[@]}" --tolerance 0.5
refused 1 'want 2026-03-01 or' "${big[@]}" --from march
refused 1 'is not after' "${big[@]}" --from 2026-03-02 --to 2026-03-01
refused 1 '--workload nonsense: neither built in' "${big[@]}" --workload nonsense
refused 1 'absent' --sacct "$dir/absent" "${site[@]}"
refused 1 'of 150 runs on GPUs none is left' --sacct "$dir/big.sacct" "${site[@]}"
refused 1 '150 outside the window' "${big[@]}" --from 2030-01-01
sed 1d "$dir/big.sacct" >"$dir/headless"
refused 1 "no column 'JobIDRaw' in the header: make the file with 'sacct --allusers --parsable2" \
    --sacct "$dir/headless" "${site[@]}"
sed 's/,gres[^|]*//g' "$dir/big.sacct" >"$dir/untracked"
refused 1 'does AccountingStorageTRES in slurm.conf name gres/gpu?' --sacct "$dir/untracked" "${site[@]}"
refused 1 "no run on GPUs in partition 'none'; there are runs in " "${big[@]}" --partition none
"$GOGH" advise --help | grep -q '^usage: gogh advise' || no "help says how it is used"
