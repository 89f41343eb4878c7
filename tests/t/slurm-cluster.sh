#!/usr/bin/env bash
# tools/slurm-cluster: real Slurm daemons in a private directory; jobs are pinned to a GPU and
# share it, the controller dies and comes back, a node sleeps and wakes, and nothing stays behind.
. "$SRC/tests/helpers/script.sh"
export PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd munged sbatch; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
cluster=$SRC/tools/slurm-cluster
chmod 755 "$dir"
at_end() { "$cluster" down "$dir/c"; }

# await WHAT COMMAND...: until the command holds; the ceiling is a busy machine's.
await() {
    local end=$((SECONDS + 300)) what=$1
    shift
    until "$@"; do
        ((SECONDS < end)) || { no "$what"; return; }
        sleep 0.1
    done
}
job_is() { [[ $(squeue -h -t all -j "$1" -o '%T %N') == "$2" ]]; }
# shellcheck disable=SC2053    # a pattern
daemon_is() { [[ $("$cluster" status "$dir/c" | sed -n "s/^$1  *//p") == $2 ]]; }
# shellcheck disable=SC2317    # called by 'await'
node_is() { [[ $(sinfo -hNn "$1" -p gogh -o %T) == "$2" ]]; }

# A job that asks for nothing, held; then it is told where.
submit() { sbatch --parsable -p gogh --hold -o "$dir/out.%j" --wrap 'env; exec sleep 600'; }
pin() {
    scontrol update jobid="$1" reqnodelist="$2" gres=gres:shard:1
    scontrol release "$1"
}

"$cluster" up "$dir/c" --gpus 'k80:2 v100:2' --power-save
eval "$("$cluster" env "$dir/c")"
[[ $(sinfo -hN -p gogh -o '%N %T' | xargs) == 'k80-0 idle k80-1 idle v100-0 idle v100-1 idle' ]] ||
    no 'four nodes of two types are idle'
[[ $(sinfo -hNn v100-1 -p gogh -o %G) == gpu:v100:1,shard:*2 ]] || no 'a GPU has two shards'
[[ $(sinfo -hNn v100-1 -p debug -o %T) == idle ]] || no 'another partition has them too'
if "$cluster" up "$dir/c" 2>"$dir/err"; then no 'a second cluster in its place is refused'; fi
grep -q 'has a cluster' "$dir/err" || no 'the refusal says why'

# Two jobs beside each other on the GPU they were given, a third waits for it.
one=$(submit) two=$(submit) three=$(submit)
job_is "$one" 'PENDING ' || no 'a held job waits'
for job in "$one" "$two" "$three"; do pin "$job" v100-1; done
await 'a released job runs where it was pinned' job_is "$one" 'RUNNING v100-1'
await 'two jobs share one GPU' job_is "$two" 'RUNNING v100-1'
job_is "$three" 'PENDING ' || no 'a third finds no room'
await 'a job is told its GPU' grep -qx 'CUDA_VISIBLE_DEVICES=0' "$dir/out.$two"

# Where root runs it, others submit too, and their jobs are theirs.
if ((EUID == 0)) && command -v setpriv >/dev/null; then
    # shellcheck disable=SC2016    # the job's own
    other=$(cd / && setpriv --reuid=65534 --regid=65534 --clear-groups \
        sbatch --parsable -w k80-0 -o /dev/null --wrap '[ "$(id -u)" = 65534 ]')
    await 'a job runs as its owner' job_is "$other" 'COMPLETED k80-0'
fi

# Jobs older than slurmctld's last save (5 s) outlive it.
await 'the jobs are saved' test "$dir/c/run/state/job_state" -nt "$dir/out.$two"
"$cluster" kill "$dir/c" slurmctld
if scontrol ping | grep -q 'is UP'; then no 'a killed controller is down'; fi
"$cluster" start "$dir/c" slurmctld
await 'jobs outlive the controller' job_is "$one" 'RUNNING v100-1'
scancel "$one" "$two" "$three"

# Sleep ends the node's daemon; a job that needs it brings it back. A job that woke its node starts
# at the controller's next half minute.
daemon_is k80-1 '[1-9]*' || no 'status names the pid of a node'
scontrol update nodename=k80-1 state=power_down
await 'a node told to sleep sleeps' node_is k80-1 'idle~'
daemon_is k80-1 - || no 'its daemon has ended'
four=$(submit)
pin "$four" k80-1
await 'a job wakes the node it needs' job_is "$four" 'RUNNING k80-1'

# A lost node's job, a hung controller: down ends them all the same.
"$cluster" kill "$dir/c" k80-1
"$cluster" kill "$dir/c" slurmctld STOP
if ((EUID == 0)); then
    find -L "$dir/c/run/dev" -type c -exec stat -c '%t:%T' {} + | grep -qvx 1:3 &&
        no 'no GPU of a real machine is opened to everybody'
fi
touch "$dir/c/mine.conf"
"$cluster" down "$dir/c" || no 'down ends what is left'
left=$(find /proc/[0-9]*/fd -lname "$dir/*" 2>/dev/null | cut -d/ -f3 | sort -u || true)
[[ -z $left ]] || no "no process holds a file of it: $(ps -o pid,args -p "$(xargs <<<"$left")")"
[[ $(cd "$dir/c" && echo *) == 'log mine.conf' ]] || no 'what is left is logs, and not its own'
rm "$dir/c/mine.conf"
"$cluster" down "$dir/c" --purge
[[ ! -e $dir/c ]] || no 'nor these, if so wished'
