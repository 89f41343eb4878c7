#!/usr/bin/env bash
# An acknowledged group of events survives kill -9 at any moment; nothing is doubled or torn.
. "$SRC/tests/helpers/script.sh"
for seed in 1 2; do
    "$JOURNAL_KILL" "$dir/store-$seed.db" 20 "$seed"
done
