#!/usr/bin/env bash
# `gogh optimize` end to end: problems by chance, plans and their judge, JSON, refusals.
. "$SRC/tests/helpers/script.sh"
verb=(optimize)

# ---- problems by chance ----
"$GOGH" optimize --generate 40 30 4 7 --out "$dir/p.json"
"$GOGH" optimize --generate 40 30 4 7 >"$dir/q.json"
cmp -s "$dir/p.json" "$dir/q.json" || no "the same numbers give the same bytes, in a file or not"
"$GOGH" optimize --generate 40 30 4 8 >"$dir/q.json"
! cmp -s "$dir/p.json" "$dir/q.json" || no "another seed gives another problem"
[[ $(jq '.jobs | length' "$dir/p.json") == 40 ]] || no "it has 40 jobs"
[[ $(jq '[.gpus[].count] | add' "$dir/p.json") == 30 ]] || no "it has 30 GPUs"
"$GOGH" optimize --generate 40 30 4 7 --theta 3 --kinds 5 --watts --overload 2 --standing 0 \
    --out "$dir/q.json"
[[ $(jq -c '[.theta, .objective, (.kinds | length), ([.jobs[] | select(.present)] | length)]' \
    "$dir/q.json") == '[3,"watts",5,0]' ]] || no "its options show in the problem"

# ---- a plan, and what it says ----
"$GOGH" optimize "$dir/p.json" --fast --nodes 2000 --out "$dir/plan.json" --json >"$dir/json"
for key in method status objective bound gap_percent seconds jobs gpus unserved shortfalls moves \
    rss_bytes; do
    jq -e "has(\"$key\")" "$dir/json" >/dev/null || no "--json has $key"
done
jq -e '.jobs == 40 and .gpus == 30 and .objective >= .bound - 1e-6 and .rss_bytes > 1e6' \
    "$dir/json" >/dev/null || no "its figures make sense: $(cat "$dir/json")"
jq -e --slurpfile j "$dir/json" '.objective - $j[0].objective | fabs < 1e-6' "$dir/plan.json" \
    >/dev/null || no "plan and summary agree on the objective"
[[ $(jq '.jobs | length' "$dir/plan.json") == 40 ]] || no "every job is in the plan"
jq -e '[.jobs[] | select((.gpus | length) == 0 and .waits == null)] == []' "$dir/plan.json" \
    >/dev/null || no "who has no place has a reason"

# The same seed and steps: the same plan, on one thread and on two, from a file and a pipe.
"$GOGH" optimize - --fast --nodes 2000 --threads 1 --out "$dir/one.json" >"$dir/out" <"$dir/p.json"
"$GOGH" optimize "$dir/p.json" --fast --nodes 2000 --threads 2 --out "$dir/two.json" >/dev/null
cmp -s "$dir/one.json" "$dir/two.json" || no "one thread and two make the same plan"
cmp -s "$dir/one.json" "$dir/plan.json" || no "a pipe and a file make the same plan"
grep -q '^placed [0-9]* of 40 jobs on [0-9]* of 30 GPUs' "$dir/out" || no "it says what is placed"
grep -q '^no plan costs less than' "$dir/out" || no "it says the bound"
grep -q "^written to $dir/one.json" "$dir/out" || no "it says where the plan is"

# ---- the judge ----
"$GOGH" optimize "$dir/p.json" --check "$dir/plan.json" >"$dir/out"
grep -q "plan.json holds; made by gogh" "$dir/out" || no "our plan holds: $(cat "$dir/out")"
"$GOGH" optimize "$dir/p.json" --check "$dir/plan.json" --json | jq -e .holds >/dev/null ||
    no "--check --json says that it holds"
jq 'del(.objective, .bound)' "$dir/plan.json" >"$dir/bare.json"
"$GOGH" optimize "$dir/p.json" --check "$dir/bare.json" >/dev/null || no "claims may be left out"
jq '.objective -= 1' "$dir/plan.json" >"$dir/lie.json"
refused 1 'lie.json: objective: it says' "$dir/p.json" --check "$dir/lie.json"
jq '.bound = .objective + 1' "$dir/plan.json" >"$dir/lie.json"
refused 1 'lie.json: bound:' "$dir/p.json" --check "$dir/lie.json"
jq 'del(.jobs[3])' "$dir/plan.json" >"$dir/lie.json"
refused 1 "lie.json: jobs: 'job-3' is missing" "$dir/p.json" --check "$dir/lie.json"
jq '.jobs |= map(.gpus = [0] | del(.limit_w, .waits))' "$dir/plan.json" >"$dir/lie.json"
refused 1 'GPU 0 has more than 2 jobs' "$dir/p.json" --check "$dir/lie.json"
refused 1 'q.json' "$dir/p.json" --check "$dir/q.json"

# ---- refusals ----
jq '.jobs[5].need = "fast"' "$dir/p.json" >"$dir/bad.json"
refused 1 'bad.json: jobs[5].need: want a number, not "fast"' "$dir/bad.json"
jq '.types[1].speed[2] = -1' "$dir/p.json" >"$dir/bad.json"
refused 1 'bad.json: types[1].speed[2] is -1' "$dir/bad.json"
sed 's/"price_w": 5/"price_w": 1e999/' "$dir/p.json" >"$dir/bad.json"
refused 1 'bad.json:1: no JSON' "$dir/bad.json"
refused 1 'missing.json' "$dir/missing.json"
refused 2 'say which problem'
refused 2 'exclude each other' "$dir/p.json" --exact --fast
refused 2 'for planning' "$dir/p.json" --check "$dir/plan.json" --time 1
refused 2 'for --generate' "$dir/p.json" --theta 3
refused 2 '--generate wants JOBS GPUS TYPES SEED' --generate 5 5
refused 2 'TYPES wants a whole number from 1 to 64' --generate 5 5 65 1
refused 2 "unexpected argument" "$dir/p.json" "$dir/p.json"
refused 2 '--threads wants' "$dir/p.json" --threads 3

# Nothing to plan is planned.
for size in '0 0 1 1' '5 0 2 1' '0 5 2 1' '1 1 1 1'; do
    # shellcheck disable=SC2086
    "$GOGH" optimize --generate $size | "$GOGH" optimize - --json >"$dir/json" ||
        no "$size can be planned"
done

# The integer solver is for those who ask for a proof, not for the daemon.
! ldd "$GOGHD" | grep -qi cbc || no "goghd does without CBC"
