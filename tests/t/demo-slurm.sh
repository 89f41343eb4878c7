#!/usr/bin/env bash
# `make demo-slurm` ends by Ctrl-C at any time and leaves nothing; GOGH_TEST_ALL=1: all of it.
. "$SRC/tests/helpers/script.sh"

for program in slurmctld slurmd munged; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null ||
        { echo "skipped: $program is not installed"; exit 77; }
done
chmod 755 "$dir"    # users submit, too

# demo NAME COMMAND...: what it says goes to NAME; everything of it is below $dir.
demo() {
    local out=$dir/$1
    shift
    mkdir "$dir/tmp"
    TMPDIR=$dir/tmp COLUMNS=80 "$@" "$SRC/tools/demo-slurm" "$(dirname "$GOGH")" >"$out" 2>&1 || true
    [[ -z $(ls "$dir/tmp") ]] || { echo "left: $(ls "$dir/tmp")"; cat "$out"; exit 1; }
    if grep -l "$dir/tmp" /proc/[0-9]*/cmdline 2>/dev/null; then echo "these run on"; exit 1; fi
    rmdir "$dir/tmp"
}

# Ended in the middle: when the jobs have just been submitted.
begun() { grep -q '^== 3 of 6' "$dir/early" 2>/dev/null; }
(
    end=$((SECONDS + 300))
    until begun || ((SECONDS > end)); do sleep 0.1; done
    kill -INT "$(cat "$dir/pid")"
) &
# shellcheck disable=SC2016    # $$ and $0 are of the inner shell, which becomes the demo
demo early bash -c 'trap - INT; echo $$ >"$0/pid"; exec "$@"' "$dir"
wait
grep -q 'ended; nothing is left' "$dir/early" || { echo "Ctrl-C is not heard"; cat "$dir/early"; exit 1; }

[[ -n ${GOGH_TEST_ALL:-} ]] || exit 0
began=$SECONDS
demo whole env
cat "$dir/whole"
((SECONDS - began < 300)) || { echo "it took $((SECONDS - began)) s"; exit 1; }    # a busy machine's
grep -q 'less energy for each unit of work' "$dir/whole"
grep -q ' went from .* and goes on at step ' "$dir/whole"
if grep -E '^.{81}' "$dir/whole"; then echo "wider than a terminal"; exit 1; fi
