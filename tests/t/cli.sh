#!/usr/bin/env bash
# Every command explains itself, and misuse is told apart from failure.
. "$SRC/tests/helpers/script.sh"

expect 0 help
grep -q Examples "$dir/out"
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' "$dir/out" | grep -v -e '^help$' -e '^version$')
[ "$(wc -w <<<"$commands")" -ge 8 ]
for c in $commands; do
    expect 0 "$c" --help
    grep -q '^usage: gogh '"$c" "$dir/out"
    grep -q Examples "$dir/out"
    expect 0 help "$c"
    expect 2 "$c" --no-such-option
    grep -q 'no-such-option' "$dir/err"
done
expect 0 bench --help
grep -q 'estimate|services' "$dir/out"
expect 0 simulate --help
! grep -q daemon "$dir/out" || exit 1
expect 0 version
grep -q '^gogh [0-9]' "$dir/out"

expect 2
expect 2 no-such-command
expect 2 demo --jobs many
expect 2 demo --load -1
expect 2 demo left-over
expect 2 bench no-such-bench
expect 2 bench --runs 0
expect 2 replay
expect 2 predict
expect 1 replay --db "$dir/absent.db"
grep -q absent.db "$dir/err"

# Completion: levers, and lists after a comma.
# shellcheck source=packaging/gogh.bash
. "$SRC/packaging/gogh.bash"
completes() { # WANT WORDS...: what the last of the words may become
    local want=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _gogh
    if [ "${COMPREPLY[*]}" != "$want" ]; then
        echo "$*: completes to '${COMPREPLY[*]}', wanted '$want'"
        exit 1
    fi
}
completes 'types sharing moving sleep limits joules' gogh simulate --without ''
completes 'sleep,sharing' gogh simulate --without sleep,sh
completes 'gogh,gavel,watts' gogh study --policy gogh,gavel,w
completes 'bound' gogh study --policy bo

# A full disk under the output is a failure, not silence.
if [ -w /dev/full ]; then
    got=0
    "$GOGH" help >/dev/full 2>/dev/null || got=$?
    [ "$got" -eq 1 ]
fi
