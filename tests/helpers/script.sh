# shellcheck shell=bash
# script.sh - what scripts of tests/t share: a directory of their own, and how they judge.
#
#     . "$SRC/tests/helpers/script.sh"
#     expect 0 predict resnet50
#     says '^k80 ' 'every type has a row'
#
# The script fails where a command does, and at its end where something was not so.
set -euo pipefail
dir=$(mktemp -d)
failed=0
at_end() { :; }    # what else there is to clean up
# shellcheck disable=SC2317    # called by the trap
the_end() {
    local status=$?
    at_end || true
    rm -rf "$dir"
    exit $((status ? status : failed))
}
trap the_end EXIT
verb=()    # what 'expect' and 'refused' begin with

# no SENTENCE: what should be so is not.
no() {
    echo "not so: $*"
    failed=1
}

# expect STATUS ARGUMENT...: gogh ends with it; what it says is in $dir/out and $dir/err.
expect() {
    local want=$1 got=0
    shift
    "$GOGH" "${verb[@]}" "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
    [[ $got == "$want" ]] ||
        no "'gogh ${verb[*]} $*' ends with $want (was $got): $(cat "$dir/out" "$dir/err")"
}
says() { grep -qE -- "$1" "$dir/out" || no "$2 (wanted '$1' in: $(cat "$dir/out"))"; }
complains() { grep -qE -- "$1" "$dir/err" || no "$2 (wanted '$1' in: $(cat "$dir/err"))"; }

# refused STATUS WORDS ARGUMENT...: gogh ends with it, has these on stderr and nothing on stdout.
refused() {
    local want=$1 words=$2
    shift 2
    expect "$want" "$@"
    grep -qF -- "$words" "$dir/err" || no "'gogh ${verb[*]} $*' says '$words': $(cat "$dir/err")"
    [[ ! -s $dir/out ]] || no "'gogh ${verb[*]} $*' prints nothing when refused"
}
