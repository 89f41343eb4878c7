#!/usr/bin/env bash
# A run with a journal can be looked at afterwards: whole, stopped half-way, or killed.
. "$SRC/tests/helpers/script.sh"
cluster=$SRC/docs/examples/small.cluster
trace=$SRC/docs/examples/mixed.trace
simulate() { "$GOGH" simulate --cluster "$cluster" --trace "$trace" --no-timing --json "$@"; }

# Keeping a journal changes nothing else.
simulate >"$dir/plain.json"
simulate --journal "$dir/run.db" >"$dir/kept.json"
cmp "$dir/plain.json" "$dir/kept.json"
"$GOGH" replay --db "$dir/run.db" --json >"$dir/replay.json"
# Who serves has not served while it moved.
jq -e '.jobs | length == 9 and all(.state == "finished" and (.remaining == 0 or .name == "serve-1"))' \
    "$dir/replay.json" >/dev/null
jq -e '.events > 50 and .running == 0 and .ended == 9' "$dir/replay.json" >/dev/null

# What was learned is in there too.
"$GOGH" catalog --db "$dir/run.db" --json |
    jq -e '.measurements > 20 and .workloads == 8' >/dev/null

# A second run does not mix with the first.
if simulate --journal "$dir/run.db" >/dev/null 2>"$dir/err"; then
    echo "two runs went into one journal"
    exit 1
fi
grep -q 'another run' "$dir/err"

# Stopped half-way: those who run hold GPUs, and the rows agree with the journal alone.
simulate --journal "$dir/half.db" --until 4000 >/dev/null
"$GOGH" replay --db "$dir/half.db" --json >"$dir/half.json"
jq -e '.running > 0 and ([.jobs[] | select(.state == "running") | .gpus | length] | min) > 0' \
    "$dir/half.json" >/dev/null
sqlite3 "$dir/half.db" 'DELETE FROM job_states; DELETE FROM jobs; DELETE FROM gpus; DELETE FROM nodes;
    DELETE FROM meta WHERE key = "applied_seq"'
"$GOGH" replay --db "$dir/half.db" --json | cmp - "$dir/half.json"

# Killed at any moment: what was there replays, and is all that was there.
"$GOGH" trace generate --cluster "$cluster" --jobs 200 --load 0.5 --seed 5 --out "$dir/long.trace"
count() { sqlite3 "$1" 'SELECT count(*) FROM events' 2>/dev/null || echo 0; }
for ((round = 1; round <= 10; round += ${GOGH_TEST_ALL:-0} ? 1 : 3)); do
    db=$dir/killed-$round.db
    "$GOGH" simulate --cluster "$cluster" --trace "$dir/long.trace" --journal "$db" >/dev/null 2>&1 &
    pid=$!
    while [ "$(count "$db")" -lt $((round * 20)) ] && kill -0 "$pid" 2>/dev/null; do :; done
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    "$GOGH" replay --db "$db" --json >"$dir/killed.json"
    jq -e --argjson n "$(count "$db")" --argjson least $((round * 20)) \
        '.nodes == 4 and .events == $n and .events >= $least' "$dir/killed.json" >/dev/null
done
