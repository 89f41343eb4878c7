"""A made-up site's accounting, in the form of sacct --parsable2.

make_sacct.py JOBS NODES GPUS SEED LOAD prints it: nodes n001, n002, ... with GPUS GPUs each, jobs by day more
than by night, each started as soon as a node has room, first come, first served. The same arguments
give the same bytes.

make_sacct.py --reckon FILE WATTS reckons, from such a file and in its own way, what its GPUs used: WATTS
has a line "node idle_w workload watts" for each node and workload ("-": any other). Prints kWh, and the mean
wait in seconds.
"""

import datetime
import random
import sys

BEGIN = datetime.datetime(2026, 3, 2)
COLUMNS = (
    "JobIDRaw JobID JobName User Partition State Submit Eligible Start End ElapsedRaw AllocTRES ReqTRES "
    "NodeList Comment AdminComment"
).split()
NAMES = (
    "train_resnet50_bs64 bert-base-squad run.sh resnet18_cifar10 job interactive gpt2_ft vit-base eval.py "
    "unet3"
).split()
STATES = 6 * ["COMPLETED"] + ["FAILED", "TIMEOUT", "CANCELLED by 1003"]


def clock(s):
    return (BEGIN + datetime.timedelta(seconds=s)).isoformat()


def line(job, **more):
    print("|".join(str({**job, **more}.get(c, "")) for c in COLUMNS))


def make(n_jobs, n_nodes, n_gpus, seed, load):
    chance = random.Random(seed)
    busy = [[0] * n_gpus for _ in range(n_nodes)]
    gap = 2340 * 1.5 / (n_nodes * n_gpus * load)  # seconds between jobs: of a mean run on 1.5 GPUs
    print("|".join(COLUMNS))
    t = 0.0
    for i in range(n_jobs):
        is_day = 8 <= t / 3600 % 24 < 20
        t += chance.expovariate(1 / gap) * (0.6 if is_day else 2)
        at = int(t)
        k = min(chance.choices([1, 2, 4], [75, 17, 8])[0], n_gpus)
        run = int(min(chance.lognormvariate(7, 1.2), 86400)) + 5
        start, node = min((max(at, sorted(b)[k - 1]), n) for n, b in enumerate(busy))
        free = [g for g in range(n_gpus) if busy[node][g] <= start][:k]
        for g in free:
            busy[node][g] = start + run
        tres = f"billing={8 * k},cpu={8 * k},gres/gpu={k},mem={32 * k}G,node=1"
        job = dict(
            JobIDRaw=1000 + i,
            JobID=1000 + i,
            JobName=chance.choice(NAMES),
            User=f"u{chance.randrange(20):02}",
            Partition="gpu",
            State=chance.choice(STATES),
            Submit=clock(at),
            Eligible=clock(at),
            Start=clock(start),
            End=clock(start + run),
            ElapsedRaw=run,
            AllocTRES=tres,
            ReqTRES=tres,
            NodeList=f"n{node + 1:03}",
            Comment="gogh: workload=resnet50 batch=64" if chance.random() < 0.1 else "",
        )
        line(job)
        line(job, JobIDRaw=f"{1000 + i}.batch", JobID=f"{1000 + i}.batch", JobName="batch", Comment="")
        if chance.random() < 0.1:
            line(job, JobIDRaw=900000 + i, JobID=900000 + i, AllocTRES="cpu=4,node=1", Partition="cpu")


def reckon(path, watts_path):
    watts, idle = {}, {}
    for text in open(watts_path):
        node, idle_w, workload, w = text.split()
        watts[node, workload] = float(w)
        idle.setdefault(node, float(idle_w))
    joules, waits, first, last = 0.0, [], None, None
    rows = [text.rstrip("\n").split("|") for text in open(path)]
    for row in rows[1:]:
        job = dict(zip(rows[0], row))
        n = sum(int(x[9:]) for x in job["AllocTRES"].split(",") if x.startswith("gres/gpu="))
        node = job["NodeList"]
        if "." in job["JobIDRaw"] or len(row) != len(rows[0]) or n == 0 or node not in idle:
            continue
        ran = int(job["ElapsedRaw"])
        submit = datetime.datetime.fromisoformat(job["Eligible"])
        start = datetime.datetime.fromisoformat(job["Start"])
        first = min(first or submit, submit)
        last = max(last or start, start + datetime.timedelta(seconds=ran))
        what = "resnet50" if "resnet50" in job["Comment"] + job["JobName"] else job["JobName"]
        joules += n * ran * (watts.get((node, what), watts[node, "-"]) - idle[node])
        waits.append((start - submit).total_seconds())
    joules += (last - first).total_seconds() * sum(
        idle[node] * int(n) for node, n in (x.split("*") for x in sys.argv[4:])
    )
    print(f"{joules / 3.6e6:.9f} {sum(waits) / len(waits):.6f}")


if sys.argv[1] == "--reckon":
    reckon(sys.argv[2], sys.argv[3])
else:
    make(*map(int, sys.argv[1:5]), float(sys.argv[5]))
