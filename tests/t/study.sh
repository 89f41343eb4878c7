#!/usr/bin/env bash
# `gogh study` end to end: keys, repetition, going on after kill -9, refusals.
. "$SRC/tests/helpers/script.sh"
small=(--scenario builtin --seeds 1 --policy 'fifo-fastest,gogh' --policy bound)

verb=(study)

"$GOGH" study --list >"$dir/out"
grep -qE '^reference +432 +0.3,0.6,0.9 +6 +(there|missing) ' "$dir/out" ||
    no "--list has runs, loads and seeds of the reference scenario"
grep -qE '^builtin +80 +0.7 +4 +- ' "$dir/out" || no "--list says that builtin needs no data"
"$GOGH" study --list --data "$dir/nowhere" --scenario msr | grep -q ' missing ' ||
    no "--list says that data is missing"
"$GOGH" study --list --scenario builtin learning,large >"$dir/out"
(($(wc -l <"$dir/out") == 4)) || no "--scenario takes names with blanks and commas: $(cat "$dir/out")"
"$GOGH" study builtin --out "$dir/x" 2>"$dir/out" && no "a name without --scenario is refused"
grep -q 'want --scenario builtin' "$dir/out" || no "and told how to be given: $(cat "$dir/out")"
"$GOGH" study --list --scenario builtin --seeds 5 >"$dir/out"
grep -qE '^builtin +100 ' "$dir/out" || no "--list counts with --seeds: $(cat "$dir/out")"

# Once in one go.
"$GOGH" study "${small[@]}" --jobs-parallel 2 --out "$dir/a" >"$dir/out" 2>"$dir/err"
[[ $(cat "$dir/err") == "6 runs, 2 at a time" ]] || no "it says what it begins: $(cat "$dir/err")"
grep -q '^gogh  *yes .* %' "$dir/out" || no "the table has a row for gogh with limits"
grep -qF '6 runs done, 0 found from before, 0 failed' "$dir/out" || no "six runs are done"
[[ $(jq length "$dir/a/results.json") == 6 ]] || no "results.json has six rows"
for key in scenario load policy seed sleep power_limit energy_j_per_work energy_kwh \
    promise_attainment mean_jct_s allocation_efficiency moves; do
    jq -e "all(has(\"$key\"))" "$dir/a/results.json" >/dev/null || no "every row has $key"
done
jq -e 'all((.sleep | type) == "boolean" and (.power_limit | type) == "boolean")' \
    "$dir/a/results.json" >/dev/null || no "sleep and power_limit are true or false"
jq -e 'map(select(.policy != "bound")) | all(.finished == 200 and .energy_j_per_work > 0)' \
    "$dir/a/results.json" >/dev/null || no "every run finishes its jobs"
jq -e '(map(select(.policy == "bound" and .power_limit)) | .[0].energy_kwh) as $least |
    map(select(.policy != "bound")) | all(.energy_kwh > $least)' \
    "$dir/a/results.json" >/dev/null || no "nobody uses less than the bound"
jq -e 'map(select(.policy == "bound")) | all(.finished == null and .moves == null and .jobs == 200)' \
    "$dir/a/results.json" >/dev/null || no "a bound counts nothing but its jobs"
[[ $(jq -r .data "$dir"/a/runs/*.json | sort -u) == none ]] || no "builtin reads no data"
[[ $(wc -l <"$dir/a/runs.csv") == 7 ]] || no "runs.csv has a line for each run"
grep -q '<svg' "$dir/a/report.html" || no "the report has charts"

# Again: nothing is left to do.
"$GOGH" study "${small[@]}" --out "$dir/a" --json >"$dir/out"
cmp -s "$dir/out" "$dir/a/results.json" || no "--json prints results.json"
"$GOGH" study "${small[@]}" --out "$dir/a" | grep -qF '0 runs done, 6 found from before' ||
    no "what is there is not done again"
mkdir -p "$dir/data/power"
echo 'gpu,workload,watts' >"$dir/data/power/gavel_watts.csv"
"$GOGH" study "${small[@]}" --data "$dir/data" --out "$dir/a" | grep -qF '6 found from before' ||
    no "data that a scenario does not read changes nothing"

# From runs of another build, without running.
cp -r "$dir/a" "$dir/d"
sed -i 's/"build":"[^"]*"/"build":"other"/' "$dir"/d/runs/*.json
rm "$dir/d/results.json" "$dir/d/runs.csv" "$dir/d/report.html"
"$GOGH" study "${small[@]}" --out "$dir/d" --report >"$dir/out"
grep -q '^6 of 6 runs; results' "$dir/out" || no "--report says what it found: $(tail -1 "$dir/out")"
for file in results.json runs.csv report.html; do
    cmp -s "$dir/a/$file" "$dir/d/$file" || no "--report makes $file of the runs that are there"
done

# Some are missing, one is garbage.
rm "$dir"/d/runs/*fifo-fastest-limits*
echo '{' >"$dir/d/runs/builtin-0.7-gogh-empty-s11.json"
"$GOGH" study "${small[@]}" --out "$dir/d" --report >"$dir/out" 2>"$dir/err"
grep -q '^4 of 6 runs; 2 missing' "$dir/out" || no "what is missing is told: $(tail -1 "$dir/out")"
grep -qF 'builtin-0.7-gogh-empty-s11.json: is no run' "$dir/err" || no "garbage is named"
"$GOGH" study --out "$dir/d" --report 2>/dev/null | grep -q '^4 of 80 runs; 76 missing' ||
    no "without names, scenarios that were never studied are not missing"

# Killed in the middle, then gone on with: the same bytes.
"$GOGH" study "${small[@]}" --jobs-parallel 1 --out "$dir/b" >/dev/null 2>&1 &
study=$!
until compgen -G "$dir/b/runs/*.json" >/dev/null || ! kill -0 $study 2>/dev/null; do
    sleep 0.05
done
kill -9 $study || no "there was something to kill"
wait $study 2>/dev/null || true
[[ ! -e $dir/b/results.json ]] || no "a study that was killed has no results yet"
"$GOGH" study "${small[@]}" --out "$dir/b" >"$dir/out" 2>/dev/null
grep -q '[1-9][0-9]* found from before, 0 failed' "$dir/out" || no "it goes on: $(tail -1 "$dir/out")"
for file in results.json runs.csv slices.csv types.csv stays.csv report.html; do
    cmp -s "$dir/a/$file" "$dir/b/$file" || no "$file has the same bytes after kill -9"
done
! compgen -G "$dir/b/runs/*.tmp" >/dev/null || no "nothing half-written is left"

# Without data, and without names, what needs none is done and the rest is named.
"$GOGH" study --data "$dir/nowhere" --policy bound --out "$dir/c" >"$dir/out" 2>"$dir/err"
[[ $(grep -c . "$dir/err") == 2 ]] || no "what is left out is one line: $(cat "$dir/err")"
grep -q 'left out for want of data: reference, front, levers, .*study.md#data)$' "$dir/err" ||
    no "what is left out is named: $(cat "$dir/err")"
[[ $(jq -r 'map(.scenario) | unique | join(" ")' "$dir/c/results.json") == builtin ]] ||
    no "without data, builtin alone is studied"

# ---- files ----
"$GOGH" study --show builtin >"$dir/Mine 2.scenario"
grep -q '^# ' "$dir/Mine 2.scenario" || no "what ships with the program has comments"
cmp -s "$dir/Mine 2.scenario" "$SRC/data/scenarios/builtin.scenario" || no "--show prints the file"
for file in "$SRC"/data/scenarios/*.scenario; do
    grep -qE "^$(basename "$file" .scenario) " <("$GOGH" study --list) || no "$file is in the program"
done
sed -i 's/^jobs .*/jobs drawn 30/; s/^policy .*/policy gavel gogh/; s/^limits .*/limits no/' "$dir/Mine 2.scenario"
file=(--scenario "$dir/Mine 2.scenario" --first-seed 20 --seeds 2)
"$GOGH" study "${file[@]}" --out "$dir/f" >"$dir/out" 2>/dev/null
jq -e 'length == 4 and all(.scenario == "mine-2" and .jobs == 30) and
    (map(.seed) | unique) == [20, 21] and all(.delay_w == null and .history_jobs == 0) and
    all(.effective_delay_w == 84)' \
    "$dir/f/results.json" >/dev/null || no "a file is a scenario: $(cat "$dir/f/results.json")"
grep -qF -- '--first-seed 20' "$dir/f/report.html" || no "the report has the command"
sed -i 's/^title.*/# another title/' "$dir/Mine 2.scenario"
"$GOGH" study "${file[@]}" --out "$dir/f" 2>/dev/null | grep -qF '4 found from before' ||
    no "a comment changes nothing"
sed -i 's/^jobs .*/jobs drawn 31/' "$dir/Mine 2.scenario"
"$GOGH" study "${file[@]}" --out "$dir/f" 2>/dev/null | grep -qF '4 runs done, 0 found' ||
    no "other jobs are other runs"
"$GOGH" study "${file[@]}" --delay-w auto,30 --history 20 --seeds 1 --out "$dir/f" >"$dir/out" 2>/dev/null
jq -e 'length == 3 and all(.history_jobs == 20 and .knows == "history") and
    (map(select(.policy == "gogh").delay_w) == [null, 30])' "$dir/f/results.json" >/dev/null ||
    no "prices and a history: $(jq -c 'map([.policy, .delay_w, .knows])' "$dir/f/results.json")"
[[ $(sed -n '2s/,.*//p;1s/.*power_model,//p' "$dir/f/runs.csv" | head -1) == delay_w,promise_w,history_jobs,* ]] ||
    no "tables have them too"
echo 'lode 0.5' >>"$dir/Mine 2.scenario"
refused 1 "Mine 2.scenario:16: a line begins with" "${file[@]}" --out "$dir/x"

# ---- a site's own ----
own=(--cluster "$SRC/docs/examples/small.cluster" --trace "$SRC/docs/examples/mixed.trace")
"$GOGH" study "${own[@]}" --policy gavel,gogh --seeds 2 --delay-w 15,240 --out "$dir/g" >"$dir/out" 2>/dev/null
jq -e 'length == 6 and all(.scenario == "site" and .load == 0 and .finished == .jobs)' \
    "$dir/g/results.json" >/dev/null || no "a site's jobs: $(tail -1 "$dir/out")"
# Inputs that cannot be used leave an earlier study as it is, and are named.
cp "$dir/g/report.html" "$dir/before.html"
sed 's/steps=/stepz=/' "$SRC/docs/examples/mixed.trace" >"$dir/bad.trace"
refused 1 "bad.trace:2: no key 'stepz'" --cluster "$SRC/docs/examples/small.cluster" --trace "$dir/bad.trace" --out "$dir/g"
cmp -s "$dir/g/report.html" "$dir/before.html" || no "a report of before stays"
# A command in a report can be given to a shell; a price that nobody minds is told.
cp "$SRC/docs/examples/small.cluster" "$dir/it's a & b.cluster"
"$GOGH" study --cluster "$dir/it's a & b.cluster" --trace "$SRC/docs/examples/mixed.trace" --limits no \
    --policy fifo-first --delay-w 15,60 --seeds 1 --out "$dir/q" >/dev/null 2>"$dir/err"
grep -q 'delay-w changes nothing' "$dir/err" || no "who minds no price: $(cat "$dir/err")"
sed -n '1s/^# gogh study //p' "$dir/q/site.scenario" | xargs printf '%s\n' | grep -qxF "$dir/it's a & b.cluster" ||
    no "paths are quoted: $(head -1 "$dir/q/site.scenario")"
# The first seed is what a simulation of the same trace gives.
"$GOGH" simulate "${own[@]}" --policy gavel --seed 11 --json >"$dir/sim"
[[ $(jq '.energy_kwh, .mean_jct_s' "$dir/sim") == \
    $(jq 'map(select(.policy == "gavel" and .seed == 11))[0] | .energy_kwh, .mean_jct_s' "$dir/g/results.json") ]] ||
    no "the first seed has the jobs as they were"
grep -q '<h2 id="front">' "$dir/g/report.html" || no "a sweep draws the front"
grep -q 'other seeds draw blocks' "$dir/g/report.html" || no "the report says what seeds are"
"$GOGH" study --scenario "$dir/g/site.scenario" --seeds 2 --out "$dir/h" >/dev/null 2>&1
cmp -s "$dir/g/results.json" "$dir/h/results.json" || no "site.scenario does the same again"
(cd "$SRC/data" && "$GOGH" study "${own[@]}" --policy gogh --model pretrained.weights --seeds 1 --out "$dir/j") >/dev/null 2>&1
"$GOGH" study --scenario "$dir/j/site.scenario" --out "$dir/k" >/dev/null 2>&1 ||
    no "a model is found from elsewhere: $(grep ^model "$dir/j/site.scenario")"
cmp -s "$dir/j/results.json" "$dir/k/results.json" || no "and gives the same"
"$GOGH" study --sacct "$SRC/tests/data/sacct/slurm-22.05.sacct" --cluster "$SRC/tests/data/sacct/site.cluster" \
    --policy fifo-fastest --seeds 2 --json --out "$dir/i" 2>/dev/null >"$dir/out"
jq -e 'length == 2 and all(.jobs == 6 and .finished == 6)' "$dir/out" >/dev/null ||
    no "accounting is a site's jobs: $(cat "$dir/out")"

cat "${own[1]}" - >"$dir/vain.cluster" <<<'set confidence_z 2'
"$GOGH" study --cluster "$dir/vain.cluster" "${own[@]:2}" --policy fifo-first --seeds 1 --out "$dir/l" >/dev/null 2>"$dir/err"
(($(grep -c 'confidence_z' "$dir/err") == 1)) || no "what a cluster says in vain is told: $(cat "$dir/err")"

refused 2 "in one way: --trace, --sacct or --record" --cluster "$dir/c" --out "$dir/x"
refused 2 "on which cluster" --trace "$dir/t" --out "$dir/x"
refused 2 "leave it out" --scenario builtin "${own[@]}" --out "$dir/x"
refused 2 "of one's own jobs" --truth "$dir/t" --out "$dir/x"
refused 2 "--policy has gogh twice" "${own[@]}" --policy gogh,gogh --out "$dir/x"
refused 2 "--load has 0.50 twice" "${own[@]}" --load 0.5,0.50 --out "$dir/x"
refused 2 "no policy 'wise'" "${own[@]}" --policy wise --out "$dir/x"
refused 2 "or auto" --scenario builtin --delay-w much --out "$dir/x"
refused 2 "no, yes or both" --scenario builtin --limits some --out "$dir/x"
refused 2 "ships with the program" --show no-such
refused 1 "no-such.scenario" --scenario "$dir/no-such.scenario" --out "$dir/x"
refused 2 "leave out one's own jobs" --record "$dir/out" --list
refused 2 "no policy 'wise'" --record "$dir/out" --policy wise --out "$dir/x"
refused 2 "or auto" --record "$dir/out" --delay-w much --out "$dir/x"
refused 1 "no-such.weights: cannot be read" "${own[@]}" --model "$dir/no-such.weights" --out "$dir/x"
refused 1 "leave out 'history'" --scenario alibaba --history 50 --out "$dir/x"
refused 1 "no-such.record" --record "$dir/no-such.record" --out "$dir/x"

refused 2 "--out" --scenario builtin
refused 2 "there are reference" --scenario no-such --out "$dir/x"
refused 2 "single commas" --scenario builtin, --out "$dir/x"
refused 2 "policy 'wise'; there are fifo-random, fifo-fastest, " --scenario builtin --policy wise --out "$dir/x"
refused 2 "load '7'; there are 0.7" --scenario builtin --load 7 --out "$dir/x"
refused 2 "at one of these loads" --scenario learning,builtin --policy bound --load 0.6 --report \
    --out "$dir/x"
refused 1 "no study was run there" --report --out "$dir/x"
refused 2 "--seeds" --seeds 0 --out "$dir/x"
refused 1 "none of these runs" --report --scenario reference --load 0.3 --out "$dir/a"
refused 1 "GOGH_DATA" --scenario reference --data "$dir/nowhere" --out "$dir/x"
[[ ! -e $dir/x ]] || no "a study that is refused leaves nothing"
touch "$dir/file"
refused 1 "wants a directory" "${small[@]}" --out "$dir/file"
flock "$dir/a/runs/lock" "$GOGH" study "${small[@]}" --out "$dir/a" >/dev/null 2>"$dir/err" &&
    no "a directory has one study at a time"
grep -qF 'another study is at work' "$dir/err" || no "who has it is told: $(cat "$dir/err")"
