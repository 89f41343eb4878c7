#!/usr/bin/env bash
# gogh-pair: programs at known rates are measured alone and together; those that do not fit, die, say
# nothing or will not end are dealt with, and nobody outlives it.
. "$SRC/tests/helpers/script.sh"
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"
unset CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GOGH_REPORTS GOGH_GPU_TYPE
# No driver of this machine's, if it has one.
printf 'gpu 0 Tesla GPU-aaaa 16e9 123 -1 100 250 300\nuse 0 60 30 5e9\n' >"$dir/nvml"
export GOGH_NVML_LIB=$NVML_STUB_LIB GOGH_ROCM_LIB=$dir/none.so NVML_STUB=$dir/nvml
paced=(python3 "$SRC/tests/helpers/paced.py")
quick=(--seconds 2 --warmup 0.2 --out "$dir/pair.json")

# pair STATUS ARGUMENT...: gogh-pair ends with it.
pair() {
    local want=$1 got=0
    shift
    rm -f "$dir/pair.json"
    "$GOGH_PAIR" "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
    [[ $got == "$want" ]] ||
        no "'gogh-pair $*' ends with $want (was $got): $(cat "$dir/out" "$dir/err")"
    [[ -z $(ls "$TMPDIR" 2>/dev/null) ]] || no "'gogh-pair $*' leaves nothing behind"
    [[ $want == 0 || ! -e $dir/pair.json ]] || no "'gogh-pair $*' writes nothing when it fails"
}
has() { jq -e "$1" "$dir/pair.json" >/dev/null || no "$2: $1 of $(cat "$dir/pair.json")"; }

# until_so COMMAND...: wait until it succeeds; the ceiling is for what hangs.
until_so() {
    local end=$((SECONDS + 300))
    until "$@"; do
        ((SECONDS < end)) || { no "it comes to '$*' within five minutes"; return; }
        sleep 0.1
    done
}
# dead NUMBER: no such process, or a zombie.
dead() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; }
empty() { [[ -z $(ls "$1") ]]; }

# gone FILE: all processes whose numbers are in it end.
gone() {
    local pids pid
    read -ra pids <"$1"
    for pid in "${pids[@]}"; do until_so dead "$pid"; done
}

# Misuse.
pair 2
complains '^usage: gogh-pair' 'nothing to do'
pair 2 -- true
complains '^gogh-pair: --out is missing' 'no file'
for words in '---' 'true ---' '--- true'; do
    # shellcheck disable=SC2086    # several words
    pair 2 "${quick[@]}" -- $words
    complains "a command on both sides of '---'" "'$words' lacks one"
done
pair 2 "${quick[@]}" -- true --- true --- true
complains 'two commands at most' 'three are too many'
pair 2 --seconds 0 --out "$dir/pair.json" -- true
complains 'want seconds, from 1 to' 'no time to measure'
TMPDIR=$dir/none pair 1 "${quick[@]}" -- true
complains 'no directory for sockets in TMPDIR' 'nowhere to put sockets'

# Two programs, slower together; the GPU is read; the job around hears of the phases.
CUDA_VISIBLE_DEVICES=GPU-aaaa GOGH_GPU_TYPE=v100 GOGH_STEPS_DONE=17 GOGH_BATCH=4 \
    python3 "$SRC/tests/helpers/inbox.py" unix "$GOGH_PAIR" "${quick[@]}" -- \
    "${paced[@]}" 200 slow-in-3 "env=$dir/first" --- "${paced[@]}" 50 slow-in-3 "env=$dir/second" \
    >"$dir/out" 2>"$dir/err" || no "two programs are measured: $(cat "$dir/err")"
has '.gpu_type == "v100" and (.host | length > 0) and .seconds == 2' 'where and how long'
has '.alone | length == 2 and all(.fits and .watts == 123 and .mem_used_bytes == 5e9)' 'both ran'
has '.alone[0] | .gpu_activity - 0.6 | fabs < 1e-9' 'how busy the GPU was'
has '.alone[1] | .mem_activity - 0.3 | fabs < 1e-9' 'and its memory'
has '.alone[0].steps_s / .alone[1].steps_s | . > 2.5 and . < 6' 'four times as fast'
has '.together.steps_s[0] / .alone[0].steps_s | . > 0.3 and . < 0.8' 'half as fast together'
has '.together.steps_s[1] / .alone[1].steps_s | . > 0.3 and . < 0.8' 'the other one, too'
has '.together | .fits and .watts == 123 and (.noise | length == 2)' 'both fit'
says '^gogh1 7 2 5{32} 0$' 'it begins with nothing done'
says '^gogh1 7 2 5{32} 3$' 'three phases are three steps'
for name in first second; do
    grep -qx "GOGH_REPORTS=unix:$TMPDIR/gogh-pair\\..*/$name" "$dir/$name" || no "$name has an address"
    grep -qx 'GOGH_RUN=3' "$dir/$name" || no "$name knows its run"
    grep -qx 'GOGH_GPU_TYPE=v100' "$dir/$name" || no "$name keeps what is so"
    ! grep -qE '^GOGH_BATCH=|^GOGH_STEPS_DONE=17|^GOGH_SECRET=5{32}$' "$dir/$name" ||
        no "$name is told nothing of the job around"
done
! cmp -s <(grep ^GOGH_SECRET "$dir/first") <(grep ^GOGH_SECRET "$dir/second") || no "secrets differ"

# One program; another GPU is not read.
CUDA_VISIBLE_DEVICES=GPU-bbbb pair 0 "${quick[@]}" -- "${paced[@]}" 100
has '.together == null and (.alone | length == 1) and .gpu_type == null' 'one alone'
has '.alone[0] | .steps_s > 50 and .watts == null and .gpu_activity == null' 'nothing is made up'

# A driver that hangs is left alone.
cp "$dir/nvml" "$dir/hangs"
echo 'hang nvmlDeviceGetPowerUsage' >>"$dir/hangs"
NVML_STUB=$dir/hangs pair 0 "${quick[@]}" -- "${paced[@]}" 100
has '.alone[0] | .steps_s > 50 and .watts == null' 'a driver that hangs'

# What does not fit: alone, and together.
pair 0 "${quick[@]}" -- "${paced[@]}" 100 unfit-in-1 --- "${paced[@]}" 100
has '.alone[0] | .fits == false and .steps_s == null and .steady == null' 'it says so itself'
has '.alone[1].fits and .alone[1].steps_s > 50' 'the other one is measured'
has '.together | .fits == false and .steps_s == [null, null] and .steady == [null, null]' 'so they do not fit together'
pair 0 "${quick[@]}" -- "${paced[@]}" 100 --- "${paced[@]}" 100 full-in-3
has '(.alone | all(.fits and .steps_s > 50)) and .together.fits == false' 'its last words say so'

# What fails otherwise; a file of before stays as it was.
pair 1 "${quick[@]}" -- "${paced[@]}" 100 --- "${paced[@]}" 100 die-in-2
complains 'the second program \(python3\) ended with exit status 5; its last words:' 'it dies'
complains '^before it died$' 'and what it said last'
pair 1 "${quick[@]}" -- "${paced[@]}" 100 end-in-1
complains 'has ended before it was measured: let it run' 'it ends too early'
pair 1 "${quick[@]}" -- "$dir/none"
complains "cannot run '$dir/none': No such file" 'it is not there'
pair 1 "${quick[@]}" --wait 1 -- sleep 1000
complains 'the first program \(sleep\) has reported nothing for 1 s: let it report.*--wait' 'silence'
pair 1 "${quick[@]}" -- sh -c 'kill -SEGV $$'
complains 'ended by signal 11' 'a signal'
echo before >"$dir/old.json"
pair 1 --seconds 2 --out "$dir/old.json" -- false
grep -qx before "$dir/old.json" || no "a failure leaves the file as it was"
pair 1 --seconds 2 --warmup 0 --out "$dir/none/pair.json" -- "${paced[@]}" 100
complains 'none/pair.json' 'a file that cannot be written'

# Programs that will not end, and their families.
pair 0 "${quick[@]}" --grace 0.2 -- "${paced[@]}" 100 stubborn "family=$dir/stubborn"
has '.alone[0].steps_s > 50' 'it was measured all the same'
gone "$dir/stubborn.1"

# begin ARGUMENT...: gogh-pair in the background, until both of its programs are there, in phase 3.
begin() {
    rm -f "$dir"/family* "$dir/pair.json"
    "$@" "$GOGH_PAIR" "${quick[@]}" --grace 0.2 --wait 600 -- \
        "${paced[@]}" 100 stubborn "family=$dir/family-1" --- \
        "${paced[@]}" 100 stubborn silent-in-3 "family=$dir/family-2" >"$dir/out" 2>"$dir/err" &
    pid=$!
    until_so test -e "$dir/family-1.3"
    until_so test -e "$dir/family-2.3"
}

# Killed, asked to end, or with its parent gone: nobody is left, and no file is written.
for signal in KILL TERM HUP; do
    begin
    kill -$signal $pid
    wait $pid 2>/dev/null && no "SIG$signal is no success"
    gone "$dir/family-1.3"
    gone "$dir/family-2.3"
    until_so empty "$TMPDIR"
    [[ ! -e $dir/pair.json ]] || no "SIG$signal: there is no file"
    [[ $signal == KILL ]] || complains 'asked to end before all was measured' "SIG$signal is told"
done
# shellcheck disable=SC2016    # for the inner shell
begin sh -c '"$@" & wait' parent
kill -KILL $pid
wait $pid 2>/dev/null || true
gone "$dir/family-1.3"
gone "$dir/family-2.3"
until_so empty "$TMPDIR"

# The benchmarks that ship, where there is a device for them.
export POCL_CACHE_DIR=$dir/pocl
mkdir "$POCL_CACHE_DIR"
if "$GOGH_BURN" host --any-device --steps 1 >"$dir/out" 2>"$dir/err"; then
    pair 0 "${quick[@]}" -- "$GOGH_BURN" launch --any-device --- "$GOGH_BURN" host --any-device
    has '(.alone | all(.steps_s > 0)) and (.together.steps_s | all(. > 0))' 'benchmarks are measured'
else
    echo "skipped: benchmarks that ship (no PoCL; Debian: pocl-opencl-icd)"
fi
