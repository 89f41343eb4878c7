#!/usr/bin/env bash
# `gogh bench optimize` in small: each row says what it found, what was asked for and whether that is
# met; goals are not judged here.
. "$SRC/tests/helpers/script.sh"

# so WHAT FILTER: the filter is true of what was printed
so() {
    jq -e "$2" "$dir/json" >/dev/null || no "$1: $(cat "$dir/json")"
}

"$GOGH" bench optimize --rows 10000,changed,events --seeds 1 --scale 200 --json >"$dir/json" 2>"$dir/err"
so "a row for each name" '[.rows[].name] == ["10000", "changed", "events"]'
for key in seeds gap_mean_percent gap_worst_percent seconds_mean seconds_worst rss_bytes \
    must_percent must_s must_met aim_percent aim_s aim_met; do
    so "every row has $key" "[.rows[] | has(\"$key\")] | all"
done
so "no plan is below its bound" '[.rows[].gap_mean_percent >= -1e-6] | all'
so "a two-hundredth of the jobs and GPUs" '[.rows[] | .jobs == 70 and .gpus == 50] | all'
so "events are counted, and what they led to" \
    '.rows[2] | .events == 25 and .arrival_p99_us >= .arrival_p50_us and .moves_per_event > 0
        and .seconds_worst >= .seconds_p99 and .own_gap_worst_percent >= 0'
grep -q '^gogh bench: events: 24: .* % above the bound' "$dir/err" || no "it says how far it is"

"$GOGH" bench optimize --rows small30 --seeds 1 --scale 5 --prove 2>/dev/null >"$dir/out"
grep -q '^ *small30 *10 *6 ' "$dir/out" || no "rows are a table without --json: $(cat "$dir/out")"

if "$GOGH" bench --prove 2>"$dir/err"; then
    no "--prove without 'optimize' is refused"
fi
grep -q "are for 'optimize'" "$dir/err" || no "and the cure named"
