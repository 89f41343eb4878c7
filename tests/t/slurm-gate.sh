#!/usr/bin/env bash
# The gate: a job of GOGH's partition waits, held, with its request kept; users cannot place it themselves.
# By itself under every lua that is there, then in a real slurmctld with jobs of two users.
. "$SRC/tests/helpers/script.sh"
gate=$SRC/packaging/slurm/job_submit.lua

ran=0
for lua in lua5.1 lua5.2 lua5.3 lua5.4; do
    command -v "$lua" >/dev/null || continue
    ran=1
    "$lua" "$SRC/tests/helpers/slurm_gate.lua" "$gate" || no "the gate under $lua"
done

missing=""
for program in slurmctld slurmd munged sbatch setpriv; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || missing+=" $program"
done
if [[ -n $missing || $(id -u) -ne 0 ]]; then
    ((failed == 0)) || exit 1
    echo "skipped: needs root and Slurm${missing:+, and there is no$missing}$( ((ran)) && echo '; lua alone was tried')"
    exit 77
fi

chmod 755 "$dir"
cluster() { "$SRC/tools/slurm-cluster" "$@"; }
at_end() { cluster down "$dir/c" --purge >/dev/null 2>&1; }
sed 's/reports = ""/reports = "127.0.0.1:7118"/' "$gate" >"$dir/gate.lua"
cluster up "$dir/c" --gpus "v100:2" --lua "$dir/gate.lua" >"$dir/up" 2>&1 || {
    cat "$dir/up"
    exit 1
}
eval "$(cluster env "$dir/c")"

mkdir -m 777 "$dir/work"
cd "$dir/work"
cat >job.sh <<'JOB'
#!/bin/sh
#SBATCH -p gogh
#GOGH workload=resnet50 batch=64
env | grep ^GOGH_ >"out.$SLURM_JOB_ID"
JOB
one() { setpriv --reuid 1 --regid 1 --clear-groups "$@"; }           # two users that every
two() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }    # Debian has
submit() { one sbatch --parsable -o /dev/null "$@" 2>"$dir/err" || true; }
shown() { scontrol show job "$1"; }
field() { shown "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
text() { shown "$1" | sed -n "s/^ *$2=\(.*[^ ]\) *\$/\1/p"; }
refuses() { # WORDS COMMAND...
    local words=$1 log=$dir/c/log/slurmctld.log size
    shift
    size=$(stat -c %s "$log")
    ! "$@" >"$dir/err" 2>&1 || no "'$*' is refused"
    tail -c "+$size" "$log" | grep "gogh: " >>"$dir/err" || true    # where Slurm before 23.02 says why
    grep -qF -- "$words" "$dir/err" || no "'$*' says '$words', not: $(cat "$dir/err")"
}

# Held, without gres, with a note.
id=$(submit --gres=gpu:v100:1 --comment='p7; gogh: batch=32' job.sh)
[[ $(field "$id" Reason) == JobHeld* ]] || no "it is held: $(cat "$dir/err"; shown "$id")"
[[ -z $(field "$id" TresPerNode) || $(field "$id" TresPerNode) == gres: ]] || no 'its gres is taken off'
note=$(text "$id" AdminComment)
[[ $note =~ ^gogh1\ new\ gres=gpu:v100:1\ nodes=1\ held=no\ secret=([0-9a-f]{32})$ ]] || no "its note is: $note"
secret=${BASH_REMATCH[1]:-}
[[ $(text "$id" Comment) == 'p7; gogh: batch=32 workload=resnet50' ]] || no "its comment: $(text "$id" Comment)"
[[ $(field "$id" Requeue) == 1 ]] || no 'it can be requeued'

# Neither its owner nor anybody else can start or place it.
refuses "gogh release JOB" one scontrol release "$id"
refuses "gogh release JOB" one scontrol update "JobId=$id" Priority=100
refuses "its nice value cannot be changed" one scontrol update "JobId=$id" Nice=1
[[ $(field "$id" Priority) == 0 ]] || no "it is still held: $(shown "$id")"
refuses "its nodes cannot be changed" one scontrol update "JobId=$id" ReqNodeList=v100-0
refuses "its GPUs cannot be changed" one scontrol update "JobId=$id" Gres=gpu:2
refuses "its comment cannot be changed" one scontrol update "JobId=$id" Comment=x
refuses "its partition cannot be changed" one scontrol update "JobId=$id" Partition=debug
refuses "gogh hold JOB" one scontrol hold "$id"
refuses "" two scontrol release "$id"
one scontrol update "JobId=$id" TimeLimit=10 || no 'its owner may change what GOGH does not care for'

# An operator's way, as the driver goes it; the secret reaches the job, and another does not win.
scontrol update "JobId=$id" ReqNodeList=v100-1 Gres=gres:shard:1 AdminComment='gogh1 token=0123456789abcdef-1'
scontrol release "$id"
until_state() { # ID STATE
    local end=$((SECONDS + 300))
    until [[ $(field "$1" JobState) == "$2" ]]; do
        ((SECONDS < end)) || { no "job $1 is $2: $(shown "$1")"; return; }
        sleep 0.1
    done
}
until_state "$id" COMPLETED
[[ $(cat "out.$id") == *"GOGH_SECRET=$secret"* && $(cat "out.$id") == *GOGH_REPORTS=udp:127.0.0.1:7118* ]] ||
    no "its environment: $(cat "out.$id")"

# The user's own hold, and the forms of a request.
noted() { # WANT ARGUMENTS...
    local want=$1 id
    shift
    id=$(submit "$@")
    [[ $(text "$id" AdminComment) == "gogh1 new $want secret="* ]] ||
        no "sbatch $*: $(cat "$dir/err") $(text "$id" AdminComment)"
    [[ $(field "$id" JobState) == PENDING && $(field "$id" Priority) == 0 ]] || no "sbatch $*: held"
    one scancel "$id" || no 'its owner may cancel it'
}
noted 'gres=gpu:1 nodes=1 held=yes' --hold job.sh
noted 'gres=gpu:2 held=no' --gpus=2 job.sh
noted 'gres=gpu:v100:1 nodes=2 held=no' --gpus-per-node=v100:1 -N2 job.sh
noted 'gres=gpu:2 held=no' --gpus-per-task=1 -n2 job.sh
noted 'gres=gpu:1 nodes=1 held=no' --wrap=true -p gogh
noted 'gres=gpu:1 nodes=1 held=no' --nice=5 job.sh
noted 'gres=shard:2 nodes=1 held=no' --gres=shard:2 job.sh
noted 'gres=gpu:3090:2 nodes=1 held=no' --gres=gpu:3090:2 job.sh

# Tasks of an array have one secret.
id=$(GOGH_SECRET=mine submit --array=1-2 --export=ALL job.sh)
[[ $(squeue -h -r -j "$id" -o %r | sort -u) == JobHeld* ]] || no 'all tasks are held'
scontrol update "JobId=$id" ReqNodeList=v100-0 Gres=gres:shard:1
scontrol release "$id"
until_state "${id}_1" COMPLETED
until_state "${id}_2" COMPLETED
[[ $(cat out.* | grep -c ^GOGH_SECRET=) == 3 && $(cat out.* | grep ^GOGH_SECRET= | sort -u | wc -l) == 2 ]] ||
    no "an array's secret: $(cat out.*)"

# What cannot be steered.
refuses 'use sbatch' one srun -p gogh true
refuses '--no-requeue' one sbatch --no-requeue job.sh
refuses '--nodelist' one sbatch -w v100-0 job.sh
refuses '--exclude' one sbatch -x v100-0 job.sh
refuses 'exclusive=yes' one sbatch --exclusive job.sh
refuses 'heterogeneous' one sbatch -n1 : -n1 -p gogh job.sh
refuses '--dependency' one sbatch --dependency=singleton job.sh
refuses '--begin' one sbatch --begin=now+1hour job.sh
refuses '--cpus-per-task' one sbatch --gpus=1 --cpus-per-gpu=2 job.sh
refuses 'alone' one sbatch -p gogh,debug job.sh
refuses "no 'stepz'" one sbatch --comment='gogh: stepz=4' job.sh
refuses 'above 0' one sbatch --comment='gogh: rate=0' job.sh
refuses 'a GPU has 2 shards' one sbatch --gres=shard:3 job.sh
refuses 'want a number' one sbatch --comment='gogh: min-throughput=fast' job.sh

# GOGH's own submissions pass as they are; other partitions are left alone.
id=$(submit --hold --comment='gogh: token=0123456789abcdef-17' job.sh)
[[ $(text "$id" Comment) == 'gogh: token=0123456789abcdef-17' && -z $(text "$id" AdminComment) ]] ||
    no "a job of GOGH's own: $(cat "$dir/err"; shown "$id")"
refuses "gogh release JOB" one scontrol release "$id"
id=$(two sbatch --parsable -o /dev/null -p debug -w v100-0 --no-requeue --wrap=true)
until_state "$id" COMPLETED
[[ -z $(text "$id" AdminComment) ]] || no 'a job of another partition is left alone'
id=$(two sbatch --parsable -o /dev/null -p debug --hold --wrap=true)
refuses 'submit it there' two scontrol update "JobId=$id" Partition=gogh
refuses 'submit it there' scontrol update "JobId=$id" Partition=gogh
two scontrol release "$id" || no 'a job of another partition is released by its owner'
