#!/usr/bin/env bash
# Who cannot run says why, and holds up nobody; who did not fit once is not banned for good.
. "$SRC/tests/helpers/script.sh"
cd "$dir"
simulate() { "$GOGH" simulate --cluster c --trace t --no-timing --json "$@"; }
want() { # SENTENCE JQ-CONDITION FILE
    jq -e "$2" "$3" >/dev/null && return
    echo "not so: $1"
    cat "$3"
    exit 1
}

echo 'node n[1-2] p100:4' >c
cat >t <<'END'
job gang at=0 workload=resnet50 steps=100 gpus=64
job node at=0 workload=resnet50 steps=100 gpus=8 one_node
job huge at=0 workload=llama-70b batch=1 rate=1 duration=10
job fine at=0 workload=resnet18 steps=1000
END
simulate --jobs-out jobs.csv >out
want 'each says why it waits' '.finished == 1 and .waiting == {"memory": 1, "gang size": 2}' out
[ "$(grep -c -e ',gang size$' -e ',memory$' jobs.csv)" -eq 3 ]

# Five thousand that cannot run stand in front of three that can.
{
    for i in $(seq 5000); do echo "job g$i at=0 workload=resnet50 steps=9 gpus=64"; done
    for i in $(seq 3); do echo "job s$i at=0 workload=resnet18 steps=1000"; done
} >t
for policy in greedy fifo-fastest; do
    simulate --policy "$policy" >out
    want "hopeless jobs hold up nobody under $policy" '.finished == 3' out
done

# Nor do so many that looking at them all takes longer than they stay aside.
if [[ ${GOGH_TEST_ALL:-} ]]; then
    {
        awk 'BEGIN { for (i = 0; i < 270000; i++) print "job g" i " at=0 workload=resnet50 steps=9 gpus=64" }'
        echo 'job s at=0 workload=resnet18 steps=1000'
    } >t
    simulate >out
    want 'a very long queue of hopeless jobs is passed in the end' '.finished == 1' out
fi

# Two that do not fit together: the newcomer learns whom it did not fit beside, even when that
# one has ended before the newcomer is told.
cat >m.csv <<'END'
workload,gpu,neighbour,throughput,fits
resnet18,v100,,10,1
resnet50,v100,,10,1
resnet18,v100,resnet50,,0
resnet50,v100,resnet18,,0
END
"$GOGH" import csv m.csv --db truth.db >/dev/null
printf 'node n v100:1\nset report_s 1e9\n' >c
cat >t <<'END'
job first at=0 workload=resnet18 steps=1000
job second at=92 workload=resnet50 steps=1000
job third at=900 workload=resnet50 steps=1000
END
for policy in greedy fifo-first; do
    simulate --truth truth.db --policy "$policy" >out
    want "a misfit is not a ban under $policy" '.finished == 3 and .failed == 0' out
done

# Three on a GPU: the one that does not fit beside the first learns that it was the first.
cat >m.csv <<'END'
workload,gpu,neighbour,throughput,fits
resnet18,v100,,10,1
resnet34,v100,,10,1
resnet50,v100,,10,1
resnet18,v100,resnet50,,0
resnet50,v100,resnet18,,0
resnet18,v100,resnet34,9,1
resnet34,v100,resnet18,9,1
resnet34,v100,resnet50,9,1
resnet50,v100,resnet34,9,1
END
"$GOGH" import csv m.csv --db three.db >/dev/null
printf 'node n v100:1\nset theta 3\n' >c
cat >t <<'END'
job a at=0 workload=resnet18 steps=20000
job b at=0 workload=resnet34 steps=20000
job c at=50 workload=resnet50 steps=1000
END
simulate --truth three.db >out
want 'a misfit among three is learned from' '.finished == 3 and .failed == 0' out

# A deadline is judged by how far the job is by now, not by its last report: nobody is put
# beside it who would make it late.
cat >m.csv <<'END'
workload,gpu,neighbour,throughput,fits
ResNet-18 (batch size 128),v100,,10,1
ResNet-50 (batch size 64),v100,,10,1
ResNet-18 (batch size 128),v100,ResNet-50 (batch size 64),4,1
ResNet-50 (batch size 64),v100,ResNet-18 (batch size 128),4,1
END
"$GOGH" import csv m.csv --db pair.db >/dev/null
printf 'node n v100:1\nset noise 0\n' >c
cat >t <<'END'
job a at=0 workload="ResNet-18 (batch size 128)" steps=100000 deadline=12000
job b at=7000 workload="ResNet-50 (batch size 64)" steps=100000
END
simulate --truth pair.db --known pair.db --jobs-out jobs.csv >out
want 'the deadline is kept' '.promise_attainment > 0.99' out
awk -F, '$1 == "\"a\"" && $5 <= 12000 { kept = 1 } END { exit !kept }' jobs.csv

# The whole cluster stays under its power cap, also while empty GPUs are still awake.
printf 'node n p100:8\nset power_cap_w 440\nset sleep_after_s 3600\nset noise 0\n' >c
for i in $(seq 12); do echo "job j$i at=0 workload=resnet18 steps=2000"; done >t
simulate >out
want 'everybody runs in the end' '.finished == 12' out
want 'the mean is under the cap' '.energy_kwh * 3.6e6 / .makespan_s <= 440 * 1.15' out
