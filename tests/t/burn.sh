#!/usr/bin/env bash
# The benchmarks that ship, run for real on a CPU by PoCL: what they do is what their descriptors say,
# they report as any job does, and where they cannot run they name the cure.
. "$SRC/tests/helpers/script.sh"
export POCL_CACHE_DIR=$dir/pocl
mkdir "$POCL_CACHE_DIR"
unset CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES GOGH_OPENCL_LIB GOGH_REPORTS GOGH_STEPS_DONE

# burn STATUS ARGUMENT...: gogh-burn ends with it.
burn() {
    local want=$1 got=0
    shift
    "$GOGH_BURN" "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
    [[ $got == "$want" ]] ||
        no "'gogh-burn $*' ends with $want (was $got): $(cat "$dir/out" "$dir/err")"
}
has() { jq -e "$1" "$dir/out" >/dev/null || no "$2: $1 of $(cat "$dir/out")"; }

# Misuse, and machines without OpenCL.
burn 2
complains '^usage: gogh-burn' 'nothing to do is misuse'
burn 2 gemm
complains "no benchmark 'gemm'; gogh-burn --list has them" 'an unknown benchmark leads to the list'
burn 2 host stream
complains 'one benchmark at a time' 'two are too many'
burn 2 host --size 0
complains 'want a whole number from 1 to' 'a size is a number of samples'
burn 2 host --steps 3 --seconds 3
complains 'steps and --seconds: which of them ends it' 'one end'
burn 2 host --seconds -1
complains 'want a number from' 'a time goes forward'
GOGH_OPENCL_LIB=$dir/none.so burn 1 host
complains 'OpenCL is not there .*install the loader' 'no library: the cure is named'
GOGH_OPENCL_LIB=$NVML_STUB_LIB burn 1 host
complains 'has no clGetPlatformIDs' 'another library is none of OpenCL'

# The list has the built-in models of the task, all of them.
burn 0 --list --json
jq -r '.[] | "\(.name) (batch size \(.batch))"' "$dir/out" >"$dir/list"
"$GOGH" catalog models --json >"$dir/models"
jq -r '.[] | select(.features.task == "benchmark").name' "$dir/models" | diff "$dir/list" - ||
    no "the list is that of built-in models"
[[ $(wc -l <"$dir/list") -ge 6 ]] || no "there are six or more"
"$GOGH" predict burn-gemm-2048 --json >"$dir/predicted" || no "a benchmark can be predicted"

burn 0 --list
says '^burn-launch +--size 16 +1000 tiny kernels$' 'what each does'
benchmarks=$(awk '{ print $1 }' "$dir/out")
"$GOGH_BURN" burn-launch --any-device --steps 1 >"$dir/out" 2>"$dir/err" ||
    { echo "skipped: no PoCL (Debian: pocl-opencl-icd), so nothing runs: $(cat "$dir/err")"; exit $failed; }

# Each of them, small, and at a size that is no multiple of anything: what was counted is what the
# descriptor says of that batch.
for name in $benchmarks; do
    for size in 3 70; do
        [[ $name != burn-stream ]] || size=1
        burn 0 "$name" --size $size --steps 2 --any-device --json
        has ".workload == \"$name\" and .batch == $size and .steps == 2 and .steps_s > 0" "it ran"
        has '.gpu == false and (.device | length > 0) and (.platform | length > 0)' 'it says where'
        jq -e --slurpfile did "$dir/out" --arg name "$name" '
            def near($a; $b): ($a - $b) <= 1e-9 * $b and ($b - $a) <= 1e-9 * $b;
            .[] | select(.features.family == $name).features | . as $f | $did[0] |
            near(.flop_per_step; $f.flop_per_sample * .batch) and
            near(.bytes_per_step; $f.bytes_per_sample * .batch + 4 * $f.params) and
            .kernels_per_step == $f.kernels_per_step and
            near(1 + .host_s_per_step; 1 + $f.cpu_ms_per_step / 1000)' "$dir/models" >/dev/null ||
            no "$name does what its descriptor says: $(cat "$dir/out")"
    done
done

# Reports: as any job, going on from what was done before; steps are counted since the first start.
GOGH_STEPS_DONE=40 python3 "$SRC/tests/helpers/inbox.py" unix \
    "$GOGH_BURN" host --any-device --steps 42 --json >"$dir/out" 2>"$dir/err" || no "it reports"
says '^gogh1 7 2 5{32} 42$' 'its last report has all its steps'
says '"steps": 2' 'it did what was left to do'

# Asked to end it ends well, and says what it did.
"$GOGH_BURN" launch --any-device >"$dir/out" 2>"$dir/err" &
pid=$!
until [[ -n $(find "$POCL_CACHE_DIR" -name '*.so' -print -quit) ]] || ! kill -0 $pid; do sleep 0.1; done
until [[ $(awk '{ print $14 }' /proc/$pid/stat) -gt 50 ]] || ! kill -0 $pid; do sleep 0.1; done
kill -TERM $pid
wait $pid || no "SIGTERM is no error (was $?): $(cat "$dir/err")"
says 'burn-launch \(batch size 16\) on .* steps in .* steps/s' 'it says what it did'

# Without a GPU, and with a variable that means another.
burn 1 host
complains 'OpenCL shows no GPU for this job \(1 other device\).*--any-device' 'a CPU is no GPU'
burn 1 stream --size 10000000 --any-device
complains 'out of memory: .* take a smaller --size' 'what cannot fit is refused before it is taken'
python3 "$SRC/tests/helpers/inbox.py" unix "$GOGH_BURN" stream --size 10000000 --any-device \
    >"$dir/out" 2>"$dir/err" && no "too large is an error"
says 'unfit=1$' 'and GOGH is told'

# A library in front of PoCL that lies.
read -ra cc <<<"$CC"
"${cc[@]}" -shared -fPIC -o "$dir/lies.so" "$SRC/tests/helpers/opencl_lies.c" \
    -Wl,--no-as-needed -l:libOpenCL.so.1
export GOGH_OPENCL_LIB=$dir/lies.so
OPENCL_LIES=gpu burn 0 host --steps 1 --json
has '.gpu == true' 'a GPU is taken without being told'
OPENCL_LIES=gpu CUDA_VISIBLE_DEVICES=0 burn 0 host --steps 1 --json
has '.gpu == true' 'the one that is visible'
OPENCL_LIES=gpu ROCR_VISIBLE_DEVICES=0 burn 1 host --steps 1
complains 'OpenCL shows no GPU for this job' 'another vendor is not meant'
for name in gemm-512 stream launch; do
    OPENCL_LIES=wrong burn 1 $name --size 1 --any-device --steps 1
    complains 'computes wrongly: number 0 of the' 'a wrong result is an error'
done
OPENCL_LIES=mute burn 0 host --any-device --steps 1
OPENCL_LIES=name burn 0 host --any-device --steps 1 --json
has '.device | startswith("?GPU")' 'a name that is no UTF-8 is cleaned'
OPENCL_LIES=full python3 "$SRC/tests/helpers/inbox.py" unix "$GOGH_BURN" host --any-device \
    >"$dir/out" 2>"$dir/err" && no "memory that cannot be had is an error"
says 'unfit=1$' 'and no fault of the program'
complains 'out of GPU memory' 'it says so'
