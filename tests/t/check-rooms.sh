#!/usr/bin/env bash
# Includes may point left and never right; see tools/check-rooms.
. "$SRC/tests/helpers/script.sh"

# expect STATUS ROOM INCLUDED 'sentence'
expect() {
    rm -rf "$dir/src"
    mkdir -p "$dir/src/$2"
    echo "#include \"$3/thing.h\"" >"$dir/src/$2/thing.c"
    status=0
    "$SRC/tools/check-rooms" "$dir" >/dev/null || status=$?
    [[ $status == "$1" ]] || no "$4 ($2 including $3 gave exit $status)"
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
expect 0 act/slurm act/driver 'a folder may look at those before it'
expect 0 act/slurm act "a folder may look at its room's own files"
expect 0 optimize optimize/search "a room's own files may look at folders before them"
expect 1 optimize/search optimize 'and those not at them'
expect 1 act/local act/slurm 'a folder must not look right'
expect 0 monitor act/slurm 'other rooms do not care for folders'
expect 1 act/attic base 'a folder that the room does not name is found out'
