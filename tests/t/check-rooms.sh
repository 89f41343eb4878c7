#!/usr/bin/env bash
# Includes may point left and never right; see tools/check-rooms.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# expect STATUS ROOM INCLUDED 'sentence'
expect() {
    rm -rf "$tree/src"
    mkdir -p "$tree/src/$2"
    echo "#include \"$3/thing.h\"" >"$tree/src/$2/thing.c"
    status=0
    "$SRC/tools/check-rooms" "$tree" >/dev/null || status=$?
    [[ $status == "$1" ]] && return
    echo "not so: $4 ($2 including $3 gave exit $status)"
    failed=1
}

expect 0 optimize estimate 'a room may look left'
expect 0 optimize optimize 'a room may look at itself'
expect 0 monitor store 'every room may look at the store'
expect 0 sim cycle 'the simulator may look at all rooms'
expect 0 cli daemon 'the command line may look at everything'
expect 1 estimate optimize 'a room must not look right'
expect 1 catalog cycle 'a room must not look at the cycle'
expect 1 base store 'base has heard of nobody'
expect 1 nn store 'the networks know only base'
expect 1 store nn 'the store knows only base'
expect 1 sim daemon 'the simulator must not look at the daemon'
expect 0 daemon sim 'the daemon may look back with the simulator'
expect 1 daemon study 'the daemon must not look at studies'
expect 1 cycle sim 'the cycle must not look at who runs it'
expect 1 attic base 'a folder that is no room is found out'
exit $failed
