#!/usr/bin/env bash
# `gogh demo` ends by itself, says what was saved, writes the summary, and repeats itself.
. "$SRC/tests/helpers/script.sh"

"$GOGH" demo --plain --jobs 80 --seed 3 --out "$dir/one.json" >"$dir/one.txt"
"$GOGH" demo --plain --jobs 80 --seed 3 --out "$dir/two.json" >"$dir/two.txt"
"$GOGH" demo --plain --jobs 80 --seed 4 --out "$dir/other.json" >/dev/null

grep -q 'Energy saved per unit of work against first come, first served:' "$dir/one.txt"
cmp "$dir/one.json" "$dir/two.json"
if cmp -s "$dir/one.json" "$dir/other.json"; then
    echo "another seed gave the same world"
    exit 1
fi
jq -e '.gogh.finished == 80 and .baseline.finished == 80 and (.energy_saved | type) == "number"
       and .gogh.energy_kwh > 0 and .gogh.promise_attainment <= 1' "$dir/one.json" >/dev/null

# The live screen, on a terminal of its own; ended early it still sums up.
if command -v script >/dev/null; then
    printf 'echo $$ >"%s/pid"\nexec "%s" demo --seconds 60 --jobs 200\n' "$dir" "$GOGH" >"$dir/live.sh"
    TERM=xterm script -qfec "sh '$dir/live.sh'" /dev/null </dev/null >"$dir/live.txt" &
    done_by() { grep -qsE "^$1 .* [0-9]+ +[0-9]+ +[1-9][0-9]* +[0-9]+.?\$" "$dir/live.txt"; }
    until done_by gogh && done_by fifo-fastest; do kill -0 $!; sleep 0.1; done
    kill -INT "$(cat "$dir/pid")"
    wait $! || true
    grep -q 'a cell: who runs there, watts' "$dir/live.txt"
    if sed 's/\x1b\[[?0-9;]*[a-zA-Z]//g' "$dir/live.txt" | tr -d '\r' | grep -E '^.{80}'; then
        echo "a line of the live screen is wider than a terminal"
        exit 1
    fi
    grep -q 'Energy saved per unit of work against' "$dir/live.txt"
fi

# Nowhere to write the summary: an error that names the file.
if "$GOGH" demo --plain --jobs 5 --out "$dir/no/such/place.json" >/dev/null 2>"$dir/err.txt"; then
    echo "a summary that cannot be written went unnoticed"
    exit 1
fi
grep -q 'no/such/place.json' "$dir/err.txt"
