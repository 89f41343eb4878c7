#!/usr/bin/env bash
# gogh-slurm-setup: shows, writes, keeps what was there, does it once, takes it out; and a real Slurm takes it.
. "$SRC/tests/helpers/script.sh"
setup=$SRC/packaging/slurm/gogh-slurm-setup
expect() { # STATUS ARGUMENTS...
    local want=$1 got=0
    shift
    "$setup" --conf "$dir/site/slurm.conf" "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
    [[ $got == "$want" ]] || no "'$*' exits with $want (it is $got): $(cat "$dir/out" "$dir/err")"
}
says() { grep -qF -- "$1" "$dir/out" "$dir/err" || no "it says '$1': $(cat "$dir/out" "$dir/err")"; }
has() { grep -qxF -- "$2" "$dir/site/$1" || no "$1 has '$2': $(cat "$dir/site/$1")"; }
site() { # a site as they are: comments, continued lines, several kinds of nodes
    rm -rf "$dir/site" "$dir/was"
    mkdir "$dir/site"
    cat >"$dir/site/slurm.conf" <<'CONF'
# a site
ClusterName=site
SlurmctldHost=head
GresTypes=gpu    # these
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=DEFAULT CPUs=4 RealMemory=1000
NodeName=one[01-02] Gres=gpu:k80:1 # old ones
NodeName=big[1-2] Gres=gpu:v100:2(S:0) \
    Weight=3
nodename=odd gres=gpu:p100:1,gpu:a100:1
NodeName=cpu1
PartitionName=batch Nodes=ALL Default=YES
CONF
    cat >"$dir/site/gres.conf" <<'CONF'
NodeName=one[01-02] Name=gpu Type=k80 File=/dev/nvidia0
NodeName=big[1-2] Name=gpu Type=v100 File=/dev/nvidia[0-1] Cores=0-1
NodeName=odd Name=gpu Type=p100 File=/dev/nvidia0
NodeName=odd Name=gpu Type=a100 File=/dev/nvidia1
CONF
    cp -r "$dir/site" "$dir/was"
}
site

# Nothing is written before --apply.
expect 0
says '+NodeName=one[01-02] Gres=gpu:k80:1,shard:2 #gogh'
says '+PartitionName=gogh Nodes=one[01-02],big[1-2],odd Default=NO State=UP'
says 'several GPUs alike'
says 'DefMemPerCPU'
says 'nothing was written'
diff -r "$dir/site" "$dir/was" || no 'showing changes nothing'
expect 1 --check
expect 2 --frobnicate
expect 2 --check --apply
expect 2 --partition 'a b'
expect 2 --conf
"$setup" --help | grep -q '^usage' || no 'it has a help'

# Written, once.
expect 0 --apply --reports head:7118
has slurm.conf 'GresTypes=gpu,shard #gogh'
has slurm.conf '#gogh# GresTypes=gpu    # these'
has slurm.conf 'JobSubmitPlugins=lua'
has slurm.conf 'nodename=odd gres=gpu:p100:1,gpu:a100:1,shard:p100:2,shard:a100:2 #gogh'
has gres.conf 'NodeName=one[01-02] Name=shard Count=2'
has gres.conf 'NodeName=odd Name=shard Type=a100 Count=2 File=/dev/nvidia1'
grep -q '^    reports = "head:7118"' "$dir/site/job_submit.lua" || no 'the gate knows where reports go'
expect 0 --check
cp -r "$dir/site" "$dir/once"
expect 0 --apply
says 'nothing to change'
diff -r "$dir/site" "$dir/once" || no 'twice is once'
[[ $(find "$dir/site" -name 'slurm.conf.gogh-*' | wc -l) == 1 ]] || no 'there is one copy'
cmp -s "$dir/site"/slurm.conf.gogh-* "$dir/was/slurm.conf" || no 'the copy is what was there'

# What was said before counts; a newer gate keeps its settings.
sed -i -e 's/^    operators = {}/    operators = { 990 }/' -e 's/refuse_change/refuse_chance/' "$dir/site/job_submit.lua"
expect 1 --check
expect 0 --apply
grep -q '^    operators = { 990 }' "$dir/site/job_submit.lua" || no 'an upgrade keeps the settings'
grep -q '^    reports = "head:7118"' "$dir/site/job_submit.lua" || no 'and where reports go'
! grep -q refuse_chance "$dir/site/job_submit.lua" || no 'an upgrade is one'

sed -i 's/^    shards = 2/    shards = 4/' "$dir/site/job_submit.lua"
expect 0 --check
for odd in 's/^    reports = .*/    reports = "a\&b|c:1",/' 's/^    operators = .*/    operators = { 1 | 2 },/'; do
    cp "$dir/site/job_submit.lua" "$dir/gate"
    sed -i "$odd" "$dir/site/job_submit.lua"
    expect 1 --apply
    says 'set it right there'
    cp "$dir/gate" "$dir/site/job_submit.lua"
done
expect 0 --check

expect 0 --apply --user nobody
grep -q "^    operators = { $(id -u nobody) }" "$dir/site/job_submit.lua" || no "goghd's user is named"
expect 1 --user nobody-of-this-name
expect 0 --check

# Out again, to the byte.
expect 0 --remove
expect 0 --check
expect 0 --remove --apply
rm "$dir/site"/*.gogh-*
diff -r "$dir/site" "$dir/was" || no 'all is as it was'
expect 0 --remove --apply
says 'nothing to change'

# A type for each device, other names, some of the nodes.
expect 0 --apply --typed --partition energy --nodes big[1-2],one02
has slurm.conf 'PartitionName=energy Nodes=big[1-2],one02 Default=NO State=UP'
has slurm.conf \
    'NodeName=big[1-2] Gres=gpu:v100_0:1,gpu:v100_1:1,shard:v100_0:2,shard:v100_1:2      Weight=3 #gogh'
has gres.conf 'NodeName=big[1-2] Name=gpu Type=v100_1 File=/dev/nvidia1 Cores=0-1 #gogh'
has gres.conf 'NodeName=big[1-2] Name=shard Type=v100_0 Count=2 File=/dev/nvidia0'
has slurm.conf 'nodename=odd gres=gpu:p100:1,gpu:a100:1'
grep -q '^    partitions = { "energy" }' "$dir/site/job_submit.lua" || no 'the gate knows its partition'
expect 0 --check
expect 0 --remove --apply
says "took away $dir/site/job_submit.lua"
says 'cancel or drain what is in partition energy'
rm "$dir/site"/*.gogh-*
diff -r "$dir/site" "$dir/was" || no 'all is as it was, once more'

# A site's own script is left alone.
echo 'return slurm.SUCCESS' >"$dir/site/job_submit.lua"
expect 0 --apply
says "dofile(\"$dir/site/gogh_submit.lua\")"
has job_submit.lua 'return slurm.SUCCESS'
expect 1 --check
says 'does not call'
sed -i "1i dofile('$dir/site/gogh_submit.lua')" "$dir/site/job_submit.lua"
expect 0 --check
expect 1 --remove --apply
says 'take that line out first'

# What cannot be.
site
sed -i 's/cons_tres/linear/' "$dir/site/slurm.conf"
expect 1 --apply
says 'SelectType=select/linear'
site
expect 1 --apply --nodes big[1-3]
says 'there is no NodeName= for big3'
sed -i 's/Gres=gpu/Gres=nic/; s/gres=gpu.*/gres=nic:1/' "$dir/site/slurm.conf"
expect 1 --apply
says 'no node has a gpu'
site
rm "$dir/site/gres.conf"
expect 1 --apply
says 'gres.conf is not there'
site
sed -i 's/^NodeName=big\[1-2\] Name/Name/' "$dir/site/gres.conf"
expect 1 --apply --typed
says 'give those a line of their own'
site
sed -i 's/gpu:v100:2(S:0)/gpu:2/' "$dir/site/slurm.conf"
expect 0
says 'write gpu:TYPE:COUNT'
site
sed -i 's/gpu:v100:2(S:0)/gpu:3090:2/' "$dir/site/slurm.conf"
sed -i 's/Type=v100/Type=3090/' "$dir/site/gres.conf"
expect 0
says 'several GPUs alike (gpu:3090:2)'
expect 0 --typed
says '+NodeName=big[1-2] Gres=gpu:3090_0:1,gpu:3090_1:1,shard:3090_0:2,shard:3090_1:2'
site
sed -i 's/v100:2/v100:4/' "$dir/site/slurm.conf"
expect 0 --typed
says 'must say File= for each of its 4 v100, and has 2'
site
sed -i 's/v100:2(S:0)/v100:2,shard:4/' "$dir/site/slurm.conf"
expect 0
says 'has shards already'
expect 1 --apply --typed
says '--typed: big[1-2] has shards already (gpu:v100:2,shard:4)'
[[ $(ls "$dir/site") == $'gres.conf\nslurm.conf' ]] || no 'and nothing is written'
if command -v scontrol >/dev/null; then
    site
    cp -r "$dir/site" "$dir/before"
    echo 'SlurmctldHots=x' >>"$dir/site/slurm.conf"
    expect 1 --apply
    says 'nothing was written'
    [[ $(ls "$dir/site") == $'gres.conf\nslurm.conf' ]] || no 'nothing is left behind'
fi
if [[ $(id -u) -ne 0 ]]; then
    site
    chmod 555 "$dir/site"
    expect 1 --apply
    says 'nothing was changed'
    chmod 755 "$dir/site"
    diff -r "$dir/site" "$dir/was" || no 'what cannot be written is as it was'
fi

# A real one: without shards and partition before, with both after, and the gate in force.
missing=""
for program in slurmctld slurmd munged sbatch; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || missing+=" $program"
done
if [[ -n $missing ]]; then
    ((failed == 0)) || exit 1
    echo "skipped: no$missing; all but the real Slurm was tried"
    exit 77
fi
cluster() { "$SRC/tools/slurm-cluster" "$@"; }
at_end() { cluster down "$dir/c" --purge >/dev/null 2>&1; }
cluster up "$dir/c" --gpus "v100:2" --partition batch >"$dir/up" 2>&1 || {
    cat "$dir/up"
    exit 1
}
eval "$(cluster env "$dir/c")"
sed -i -e 's/,shard:[0-9]*//' -e 's/^GresTypes=.*/GresTypes=gpu/' "$dir/c/slurm.conf"
sed -i '/Name=shard/d' "$dir/c/gres.conf"
"$setup" --conf "$dir/c/slurm.conf" --apply >"$dir/out" 2>"$dir/err" || no "a real site: $(cat "$dir/out" "$dir/err")"
for who in slurmctld 'v100-[0-1]'; do
    cluster kill "$dir/c" "$who" >/dev/null
    cluster start "$dir/c" "$who" >/dev/null
done
[[ $(sinfo -h -p gogh -o %N) == 'v100-[0-1]' ]] || no "the partition is there: $(sinfo)"
[[ $(sinfo -h -p gogh -o %G) == *shard*:2* ]] || no "so are shards: $(sinfo -h -o '%n %G')"
id=$(cd / && sbatch --parsable -p gogh --gres=gpu:1 -o /dev/null --wrap=true)
[[ $(scontrol show job "$id") == *Reason=JobHeld*'AdminComment=gogh1 new gres=gpu:1 nodes=1 held=no'* ]] ||
    no "the gate is in force: $(scontrol show job "$id")"
