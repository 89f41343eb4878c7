#!/usr/bin/env bash
# The network that ships with the program is what `gogh train --network` makes, byte for byte.
. "$SRC/tests/helpers/script.sh"

"$GOGH" train --network --seed 1 --out "$dir/network" --json >"$dir/json"
jq -e '.weights == 73034 and .seed == 1 and (.about | test("seed 1; "))' "$dir/json" >/dev/null ||
    no "the summary: $(cat "$dir/json")"
cmp "$dir/network" "$SRC/data/network.weights" ||
    no "gogh train --network makes data/network.weights (make pretrained writes it anew)"
