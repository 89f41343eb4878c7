#!/usr/bin/env bash
# `gogh whatif` end to end: figures that other seeds and a plain simulation confirm, keys, refusals.
. "$SRC/tests/helpers/script.sh"
verb=(whatif)

# is WANT QUERY: what jq finds in the last answer
is() {
    local got
    got=$(jq -c "$2" "$dir/a")
    [[ $got == "$1" ]] || no "$2 is $1 (was $got)"
}

# A site whose speeds and watts are known, so that worlds differ by noise and jobs alone.
cat >"$dir/site.cluster" <<'END'
node old-[1-2] k80:4
node mid-1     p100:4
node new-1     v100:4
gputype k80  idle=30 sleep=10 cap=149
gputype p100 idle=30 sleep=10 cap=250
gputype v100 idle=40 sleep=10 cap=250
END
cat >"$dir/m.csv" <<'END'
workload,gpu,throughput,watts
ResNet-50 (batch size 64),v100,6,200
ResNet-50 (batch size 64),p100,3,150
ResNet-50 (batch size 64),k80,1,120
bert-base (batch size 32),v100,4,240
bert-base (batch size 32),p100,1,180
bert-base (batch size 32),k80,0.4,130
ResNet-18 (batch size 128),v100,20,140
ResNet-18 (batch size 128),p100,12,110
ResNet-18 (batch size 128),k80,5,100
END
"$GOGH" import csv "$dir/m.csv" --db "$dir/m.db" >/dev/null
# jobs N GAP_S: of 48 to 96 minutes on a P100: lengths without a long tail, so that eighty of them, drawn anew,
# tell of 95 % of them too.
jobs() {
    awk -v n="$1" -v gap="$2" 'BEGIN {
        split("ResNet-50 (batch size 64)|bert-base (batch size 32)|ResNet-18 (batch size 128)", workload, "|")
        split("3 1 12", speed, " ")
        for (i = 0; i < n; i++) {
            x = (x * 1103 + 12345) % 65536
            k = i % 3 + 1
            printf "job j%d at=%d workload=\"%s\" steps=%d min=%.3f\n", i, (i + x / 131072) * gap, workload[k],
                speed[k] * 3600 * (0.8 + 0.8 * x / 65536), speed[k] * 0.3
        }
    }'
}
jobs 80 600 >"$dir/site.trace"
jobs 24 300 >"$dir/few.trace"
site=(--trace "$dir/site.trace" --cluster "$dir/site.cluster" --truth "$dir/m.db")
few=(--trace "$dir/few.trace" --cluster "$dir/site.cluster" --truth "$dir/m.db" --seeds 2)
change=(--remove k80 --add 4xv100@2 --price 0.3 --co2 0.4)

# ---- other seeds say the same, to three percent ----
"$GOGH" whatif "${site[@]}" "${change[@]}" --seeds 8 --json >"$dir/a"
"$GOGH" whatif "${site[@]}" "${change[@]}" --seeds 8 --first-seed 1000 --json >"$dir/b"
keys='["kwh_year","money_year","co2_kg_year","promises","mean_jct_s","p95_jct_s"]'
is true "[.before, .after, .difference] | all(keys_unsorted == $keys)"
is true '[.before, .after, .difference] | all(all(keys_unsorted == ["mean","low","high"] and .low <= .mean and .mean <= .high))'
is '{"jobs":0,"of":80,"first":null,"unfinished":0}' .cannot_run
is '["trace",80,16,8,1,"gogh"]' '.site | [.source, .jobs, .gpus, .seeds, .first_seed, .policy]'
jq -ne --slurpfile a "$dir/a" --slurpfile b "$dir/b" '
    def near($x; $y; $of): ($x - $y | fabs) <= 0.03 * $of;
    $a[0] as $a | $b[0] as $b |
    all(("before", "after") as $side | ($a[$side] | keys[]) as $key |
        near($a[$side][$key].mean; $b[$side][$key].mean; $a[$side][$key].mean); .) and
    all(($a.difference | keys[]) as $key |
        near($a.difference[$key].mean; $b.difference[$key].mean; $a.before[$key].mean); .) and
    $a != $b' >/dev/null || no "other seeds confirm it: $(cat "$dir/a" "$dir/b")"
# Without them, and with faster ones, all is better, and money and carbon are the energy's.
is true '.difference | .kwh_year.high < 0 and .mean_jct_s.high < 0 and .promises.mean > -0.01'
is true '[.before, .after] | all((.money_year.mean / .kwh_year.mean - 0.3 | fabs) < 1e-6 and (.co2_kg_year.mean / .kwh_year.mean - 0.4 | fabs) < 1e-6)'
is true '(.after.kwh_year.mean - .before.kwh_year.mean - .difference.kwh_year.mean | fabs) < 1e-4'

# ---- a simulation of the whole trace says the same, of a cluster that a person changed ----
{
    sed 's/^node old.*/node added-[1-2] v100:2/' "$dir/site.cluster"
    echo 'set delay_w 59.85'    # what it is on the site
} >"$dir/after.cluster"
period_s=$(jq .site.period_s "$dir/a")
for side in before after; do
    cluster=$dir/after.cluster gpus=12
    [[ $side == after ]] || cluster=$dir/site.cluster gpus=16
    for seed in 51 52 53; do
        "$GOGH" simulate --cluster "$cluster" --trace "$dir/site.trace" --truth "$dir/m.db" --known "$dir/m.db" \
            --seed $seed --json
    done | jq -se --argjson period "$period_s" --argjson sleep $((gpus * 10)) --arg side "$side" --slurpfile a "$dir/a" '
        (map((.energy_kwh + $sleep * ($period - .makespan_s) / 3.6e6) * 365 * 86400 / $period) | add / 3) as $kwh |
        (map(.mean_jct_s) | add / 3) as $jct | $a[0][$side] as $is |
        ($kwh / $is.kwh_year.mean - 1 | fabs) < 0.03 and ($jct / $is.mean_jct_s.mean - 1 | fabs) < 0.03' >/dev/null ||
        no "simulations confirm it, $side"
done

# ---- what to retire ----
"$GOGH" whatif "${few[@]}" --retire --json --price 0.3 >"$dir/a"
is '[["k80",8],["p100",4],["v100",4]]' '[.retire[] | [.type, .count]]'
is true ".retire | all(([keys_unsorted[] | select(. as \$k | $keys | index(\$k))]) == $keys)"
is true '.retire[0].kwh_year.high < 0 and .retire[2].promises.mean < -0.02 and .retire[2].mean_jct_s.low > 0'
is true '[.retire[].cost_kwh_year] | . == sort'
is '[null,null]' '[.before.co2_kg_year.mean, .retire[0].co2_kg_year.mean]'
is null .after

# ---- the same bytes again; one screen; settings and policies ----
"$GOGH" whatif "${few[@]}" --retire >"$dir/b"
"$GOGH" whatif "${few[@]}" --retire | cmp -s "$dir/b" - || no "the same bytes again"
grep -qE '^k80 +8 +-[0-9.]+ \(-[0-9.]+ to -[0-9.]+\)' "$dir/b" || no "a line for each type: $(cat "$dir/b")"
grep -q 'Of GPUs only' "$dir/b" || no "what is not in it is said"
expect 0 "${few[@]}" --remove k80:2 --add 1xl40s --power-cap 1.2kW --delay-w 200 --policy fifo-fastest,gogh
says '^24 jobs of .* on 16 GPUs; 2 worlds, from seed 1 on; fifo-fastest plans, and then gogh$' 'what was asked'
says '^  --remove k80:2 --add 1xl40s --power-cap 1.2kW --delay-w 200 --policy fifo-fastest,gogh$' 'the change'
says '^GPUs +16 +15 +-1$' 'how many there are'
says '^energy, kWh a year +[0-9.]+ \([0-9.]+ to [0-9.]+\)' 'energy with its interval'
says 'Not told: --price and --co2' 'what is missing'
! grep -q '.\{101\}' "$dir/out" "$dir/b" || no "no line is too wide"
[[ ! -s $dir/err ]] || no "nothing is said beside where nobody looks: $(cat "$dir/err")"
# A cap that only slow GPUs keep costs time; time that is worth nothing is spent for energy.
"$GOGH" whatif "${few[@]}" --power-cap 700W --json >"$dir/a"
is true '.difference.mean_jct_s.mean > 0'
{
    cat "$dir/site.cluster"
    echo 'set power_cap_w 700'
} >"$dir/capped.cluster"
"$GOGH" whatif "${few[@]}" --cluster "$dir/capped.cluster" --power-cap 0 --json |
    jq -e --slurpfile a "$dir/a" '.after == $a[0].before and .before == $a[0].after' >/dev/null ||
    no "without the cap all is as it would be without one"
"$GOGH" whatif "${few[@]}" --delay-w 0 --json >"$dir/a"
is true '.difference.mean_jct_s.mean > 0 and .difference.kwh_year.mean < 0'

# ---- other GPUs are no other price of time: the site's, 0.3 of its mean cap, holds on both sides ----
"$GOGH" whatif "${few[@]}" --remove k80 --json >"$dir/a"
is '"--remove k80"' .change
is true '(.site.delay_w - 0.3 * (8 * 149 + 8 * 250) / 16 | fabs) < 1e-6'
"$GOGH" whatif "${few[@]}" --remove k80 --delay-w 59.85 --json |
    jq -e --slurpfile a "$dir/a" 'del(.change) == ($a[0] | del(.change))' >/dev/null ||
    no "a price that is said is the same one"
"$GOGH" whatif "${few[@]}" --remove k80 --delay-w auto --json >"$dir/b"
"$GOGH" whatif "${few[@]}" --remove k80 --delay-w 75 --json |
    jq -e --slurpfile b "$dir/b" 'del(.change) == ($b[0] | del(.change))' >/dev/null ||
    no "auto is by the caps of the GPUs that are left"
! cmp -s "$dir/a" "$dir/b" || no "which is another price here"

# ---- who cannot run any more is told of ----
{
    cat "$dir/few.trace"
    echo 'job wide at=10 workload="ResNet-50 (batch size 64)" steps=1000 gpus=8'
    echo 'job picky at=20 workload="ResNet-50 (batch size 64)" steps=1000 types=k80'
} >"$dir/more.trace"
more=(--trace "$dir/more.trace" --cluster "$dir/site.cluster" --truth "$dir/m.db" --seeds 1)
expect 0 "${more[@]}" --remove k80
says '^2 of 26 jobs could not run any more: they fit no GPU that would be left \(wide first\)' 'jobs that are left out'
"$GOGH" whatif "${more[@]}" --retire --json >"$dir/a"
is '[["p100",0],["v100",0],["k80",2]]' '[.retire[] | [.type, .cannot_run.jobs]]'
is null '.before.kwh_year.low'


# ---- and who never finishes: below 200 W only the K80 can run BERT ----
printf 'node a k80:1\nnode b v100:1\n' | cat - "$dir/site.cluster" | grep -v '^node [omn]\|p100' >"$dir/duo.cluster"
{
    printf 'job a%d at=%d workload="ResNet-18 (batch size 128)" steps=20000\n' 1 0 2 600
    echo 'job b at=900 workload="bert-base (batch size 32)" steps=100'
} >"$dir/duo.trace"
duo=(--trace "$dir/duo.trace" --cluster "$dir/duo.cluster" --truth "$dir/m.db" --retire --seeds 1)
"$GOGH" whatif "${duo[@]}" --power-cap 200 --json >"$dir/a"
is '[["v100",0],["k80",1]]' '[.retire[] | [.type, .cannot_run.unfinished]]'
is true '.retire[0].cost_kwh_year > .retire[1].cost_kwh_year'
expect 0 "${duo[@]}" --power-cap 200
says '^without +GPUs +kWh a year +promises +mean, h +95 %, h +cannot run +unfinished$' 'columns of what was told'
says '^k80 .* 0 +1$' 'how many do not finish'
refused 1 'under a power cap of 100 W the site as it is finishes no job: say a higher one' "${duo[@]}" --power-cap 100W

# ---- other histories: a store, and accounting ----
"$GOGH" simulate --cluster "$dir/site.cluster" --trace "$dir/few.trace" --truth "$dir/m.db" --journal "$dir/j.db" \
    --json >/dev/null
cp "$dir/j.db" "$dir/was.db"
"$GOGH" whatif --db "$dir/j.db" --remove k80 --add 4xl40s --seeds 2 --json >"$dir/a"
is '["db",24,16]' '.site | [.source, .jobs, .gpus]'
is true '.difference.kwh_year.high < 0'
cmp -s "$dir/j.db" "$dir/was.db" || no "the store is as it was"
python3 "$SRC/tests/helpers/make_sacct.py" 30 4 4 7 0.7 >"$dir/site.sacct"
printf 'node n00[1-2] v100:4\nnode n00[3-4] p100:4\n' >"$dir/sacct.cluster"
"$GOGH" whatif --sacct "$dir/site.sacct" --cluster "$dir/sacct.cluster" --remove p100:4 --add 4xa100 --seeds 2 \
    --json >"$dir/a"
is '["sacct",30,16]' '.site | [.source, .jobs, .gpus]'
is true '.after.mean_jct_s.mean < .before.mean_jct_s.mean'
expect 0 --sacct "$dir/site.sacct" --cluster "$dir/sacct.cluster" --retire --seeds 1
says '^p100 ' 'types of a site under Slurm'

# ---- the period begins with the first arrival ----
for from in 0 1000000; do
    printf 'job a%d at=%d workload=resnet50 steps=1000\n' 1 $from 2 $((from + 600)) 3 $((from + 1800)) >"$dir/$from.trace"
    "$GOGH" whatif --trace "$dir/$from.trace" --cluster "$dir/site.cluster" --remove k80 --seeds 1 --json >"$dir/$from"
done
cmp -s "$dir/0" "$dir/1000000" || no "it does not matter when that is: $(cat "$dir/0" "$dir/1000000")"

# ---- where GPUs never sleep, each that goes saves what it idles, 30 W ----
{
    cat "$dir/site.cluster"
    echo 'set sleep_after_s 1e9'
} >"$dir/on.cluster"
for steps in 1000 5000; do    # ten minutes are enough for the first
    echo "job a at=0 workload=resnet50 steps=$steps" >"$dir/short.trace"
    "$GOGH" whatif --trace "$dir/short.trace" --cluster "$dir/on.cluster" --remove k80 --period 10m --seeds 1 --json \
        >"$dir/a"
    is true '(.difference.kwh_year.mean + 8 * 0.03 * 8760 | fabs) < 0.01'
done

# ---- refusals ----
refused 2 'say what ran, in one way' --remove k80
refused 2 'say what ran, in one way' "${site[@]}" --db "$dir/j.db" --remove k80
refused 2 'say where it ran: --cluster FILE' --trace "$dir/site.trace" --remove k80
refused 2 'say what would change' "${site[@]}"
refused 2 'leave out --remove and --add' "${site[@]}" --retire --remove k80
refused 2 'one --policy' "${site[@]}" --retire --policy gogh,greedy
refused 2 'a daemon has measured' --db "$dir/j.db" --truth "$dir/m.db" --retire
refused 1 "no GPU of type 't4' to remove; there are k80 (8), p100 (4), v100 (4)" "${site[@]}" --remove t4
refused 1 '9 GPUs of type k80 cannot be removed: there are 8' "${site[@]}" --remove k80:9
refused 1 'no GPU would be left' "${site[@]}" --remove k80 --remove p100 --remove v100
refused 1 "GPU type 'nosuch' is neither the site's nor built in" "${site[@]}" --add 4xnosuch
refused 1 'want COUNTxTYPE' "${site[@]}" --add l40s
refused 1 'want TYPE or TYPE:COUNT' "${site[@]}" --remove k80:all
refused 1 '--power-cap: 20MW: want watts, as 20kW, 500W or 500' "${site[@]}" --power-cap 20MW
refused 1 '--power-cap' "${site[@]}" --power-cap -5W
refused 1 '--delay-w dear: want a number from 0 to 1e6, or auto' "${site[@]}" --delay-w dear
refused 1 '--delay-w -1: want a number from 0 to 1e6, or auto' "${site[@]}" --delay-w -1
refused 2 '--promise-w' "${site[@]}" --promise-w 1e7
refused 1 'nosuch' "${site[@]}" --policy gogh,nosuch
refused 1 'jobs arrived for longer than that' "${site[@]}" --retire --period 1h
echo 'job a at=0 workload=resnet50 steps=1000' >"$dir/one.trace"
refused 1 'do not tell what a year is like: say how long a time they are of, with --period' \
    --trace "$dir/one.trace" --cluster "$dir/site.cluster" --retire
expect 0 --trace "$dir/one.trace" --cluster "$dir/site.cluster" --retire --period 7d --seeds 1
printf 'node a k80:2\n' >"$dir/plain.cluster"
refused 1 'there is none to retire' --trace "$dir/one.trace" --cluster "$dir/plain.cluster" --retire --period 1d
printf 'node a k80:2\nset confidence_z 2\n' >"$dir/vain.cluster"
refused 1 'confidence_z does nothing' --trace "$dir/one.trace" --cluster "$dir/vain.cluster" --retire --period 1d
refused 1 'absent' --db "$dir/absent" --retire
refused 1 'absent' --record "$dir/absent" --retire
echo 'job a at=9 workload=llama-7b batch=512 steps=1000' >"$dir/huge.trace"
refused 1 'none of 1 jobs could run on any GPU' --trace "$dir/huge.trace" --cluster "$dir/plain.cluster" \
    --add 1xp100 --period 1d
"$GOGH" whatif --help | grep -q '^usage: gogh whatif' || no "help says how it is used"
# Nothing is left behind, also when it is interrupted.
TMPDIR=$dir/tmp
export TMPDIR
mkdir "$TMPDIR"
"$GOGH" whatif "${duo[@]}" >/dev/null
"$GOGH" whatif "${few[@]}" --seeds 500 --retire >/dev/null 2>"$dir/err" &
pid=$!
until compgen -G "$TMPDIR/*/runs/*.json" >/dev/null || ! kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
kill -TERM "$pid"
wait "$pid" && no "an interruption is no answer"
[[ -z $(ls -A "$TMPDIR") ]] || no "nothing is left behind: $(ls -R "$TMPDIR")"
