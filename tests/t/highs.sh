#!/usr/bin/env bash
# `gogh optimize --exact` against HiGHS (python3-scipy), which is given the plainest program there
# is, by a script that shares no line with ours.
. "$SRC/tests/helpers/script.sh"
python=/usr/bin/python3

if ! "$python" -c 'from scipy.optimize import milp' 2>/dev/null; then
    echo "skipped: no scipy with milp (Debian: python3-scipy)"
    exit 0
fi

# compare ARGUMENT...: a generated problem, planned by both
compare() {
    "$GOGH" optimize --generate "$@" --out "$dir/p.json"
    "$GOGH" optimize "$dir/p.json" --exact --nodes 2000 --json >"$dir/ours"
    "$python" "$SRC/tests/helpers/highs.py" "$dir/p.json" >"$dir/theirs"
    jq -e --slurpfile t "$dir/theirs" '.status == "optimal" and
        (.objective - $t[0] | fabs) <= 1e-5 * ([($t[0] | fabs), 1] | max)' \
        "$dir/ours" >/dev/null && return
    no "$*: $(jq -c '[.status, .objective]' "$dir/ours"), HiGHS $(cat "$dir/theirs")"
}

for seed in 1 2 3 4 5 6; do
    compare 8 6 3 "$seed" --kinds 4
done
compare 7 5 2 11 --kinds 3 --theta 3
compare 7 5 2 12 --kinds 3 --watts
compare 7 5 2 13 --kinds 3 --overload 2
compare 10 8 2 14 --kinds 5
