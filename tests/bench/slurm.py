#!/usr/bin/env python3
"""How GOGH steers a Slurm cluster of 100 nodes and 400 jobs, all of it real, on this machine.

    slurm.py [--nodes N] [--jobs N] [--runs N] [--seconds S]        (100, 400, 3, 900)

Prints one JSON object. A run: the nodes come up, one slurmd each, a GPU of one of four types on
each. The jobs come, held, half by GOGH's API and half by sbatch through the gate; each is a
`sleep`, as Slurm and GOGH are measured here, and no worker is. Then

  start    all of them are released at once: two for each GPU are started, the others wait;
  next     every other one that runs is cancelled: others take their place;
  gather   what waits is held, and every other one that runs is cancelled: the rest is moved
           together, where that pays;

and until the run has lasted S seconds nothing happens. What is told, for each run and as median and
range of all:

  cycle_s       from the moment at which a decision froze the state to that at which GOGH has seen,
                in Slurm, the last job run that it ordered to start or move: by the daemon's record
                and its events;
  calls_per_s   Slurm's commands that the driver ran, over the run, from the daemon's start on;
  rpcs_per_s    requests that slurmctld counted (sdiag) of the kinds that such commands make; the
                test's own sbatch calls are taken off;
  stalls        turns of the daemon's loop that took longer than 100 ms.
"""
import argparse
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../helpers"))
from slurm import Failure, Slurm, UnixConnection, need_slurm, read_events, run, until  # noqa: E402

LIMITS = {"cycle_s": 15, "calls_per_s": 5, "rpcs_per_s": 5, "stalls": 0}
TYPES = ("k80", "p100", "v100", "a100")
WORKLOADS = (("LM", 20), ("bert-base", 32), ("vit-base", 32), ("Transformer", 64),
             ("ResNet-18", 128))
LINES = ["slurm_poll_s 2", "decide_s 2", "set settle_s 30", "set move_s 5", "log warn"]
SLEEP = ["/bin/sleep", "100000"]
INNER = ("MESSAGE_", "RESPONSE_", "REQUEST_COMPLETE_", "REQUEST_STEP_", "REQUEST_PERSIST",
         "ACCOUNTING_", "REQUEST_STATS_INFO")  # of slurmds, and of sdiag itself


class Listener(threading.Thread):
    """The daemon's events, with the time at which each was heard."""

    def __init__(self, s):
        super().__init__(daemon=True)
        self.s, self.heard = s, []

    def run(self):
        connection = UnixConnection(self.s.socket, None)
        try:
            connection.request("GET", "/v1/events?after=0")
            for event in read_events(connection.getresponse()):
                self.heard.append((time.time(), event))
        except (OSError, ValueError):
            pass  # the daemon has ended

    def starts(self):
        return [(at, e["job"]) for at, e in list(self.heard) if e["kind"] == "job_started"]


# ---- jobs ----

def submit(s, i):
    workload, batch = WORKLOADS[i % len(WORKLOADS)]
    name = "j%d" % i
    if i % 2 == 0:
        s.must("POST", "/v1/jobs", {"name": name, "argv": SLEEP, "cwd": "/", "stdout": "/dev/null",
                                    "steps": 1000000, "workload": workload, "batch": batch,
                                    "hold": True})
    else:
        s.slurm("sbatch", "--parsable", "-p", "gogh", "-J", name, "-o", "/dev/null", "--hold",
                "--comment=gogh: workload=%s batch=%d steps=1000000" % (workload, batch),
                text="#!/bin/sh\nexec sleep 100000\n")


def is_quiet(s):
    status = s.get("/v1/status")
    return status["slurm"]["under_way"] == 0 and status["slurm"]["up"]


def settle(s, what, seconds=120):
    """Nothing is under way, for some seconds in a row."""
    since = [None]

    def is_long_quiet():
        if not is_quiet(s):
            since[0] = None
        elif since[0] is None:
            since[0] = time.monotonic()
        return since[0] is not None and time.monotonic() - since[0] > 6
    until(what, is_long_quiet, seconds)


def change_all(s, what, state, every):
    for j in [j for j in s.jobs() if j["state"] == state][::every]:
        s.must("POST", "/v1/jobs/%d/%s" % (j["id"], what))


# ---- what came of it ----

def read_cycles(path, starts):
    """[{"look_s", "orders", "took_s", "plan_s"}] of decisions that ordered something."""
    cycles, now = [], None
    with open(path) as f:
        for line in f:
            try:
                row = json.loads(line)
            except ValueError:
                break  # the last one, half written
            if row["what"] == "plan":
                now = {"look_s": row["look_s"], "plan_s": row["took_s"], "orders": {}, "stops": 0}
                cycles.append(now)
            elif row["what"] in ("start", "move") and now is not None:
                now["orders"][row["job"]] = row["time_s"]
            elif row["what"] == "stop" and now is not None:
                now["stops"] += 1
    for c in cycles:
        ends = [min((at for at, job in starts if job == j and at >= ordered_s), default=None)
                for j, ordered_s in c["orders"].items()]
        c["n"] = len(ends)
        c["n_unseen"] = sum(e is None for e in ends)
        c["took_s"] = max((e for e in ends if e is not None), default=c["look_s"]) - c["look_s"]
    return [c for c in cycles if c["n"]]


def rpcs(s):
    """{kind: count} of what commands ask of slurmctld."""
    counts, is_by_type = {}, False
    for line in s.slurm("sdiag").splitlines():
        if line.startswith("Remote Procedure Call statistics by"):
            is_by_type = "message type" in line
        elif is_by_type and "count:" in line:
            kind = line.split()[0]
            if not kind.startswith(INNER):
                counts[kind] = int(line.split("count:")[1].split()[0])
    return counts


def cycle_of(cycles, phase, begin_s, end_s):
    mine = [c for c in cycles if begin_s <= c["look_s"] < end_s]
    if not mine:
        return {"phase": phase, "jobs": 0, "cycle_s": 0}
    c = max(mine, key=lambda one: one["n"])
    return {"phase": phase, "jobs": c["n"], "stops": c["stops"], "unseen": c["n_unseen"],
            "plan_s": round(c["plan_s"], 3), "cycle_s": round(c["took_s"], 2),
            "all_s": round(max(m["look_s"] + m["took_s"] for m in mine) - begin_s, 2),
            "decisions": len(mine)}


# ---- a run ----

def phases(s, n_jobs, pause_s, say):
    """The moments at which each phase began; the last is the end. The driver may make some hundred
    calls at once, and 4 a second on average: between phases it gets that back.
    """
    marks = [("come", time.time())]
    for i in range(n_jobs):
        submit(s, i)
    until("GOGH has them all", lambda: s.get("/v1/status")["jobs"]["held"] == n_jobs, 120)
    settle(s, "all of them wait")
    say("%d jobs are there" % n_jobs)
    time.sleep(pause_s)
    marks.append(("start", time.time()))
    change_all(s, "release", "held", 1)
    settle(s, "as many as can run", 240)
    say("%d run" % s.get("/v1/status")["jobs"]["running"])
    for name in ("next", "gather"):
        time.sleep(pause_s)
        marks.append((name, time.time()))
        if name == "gather":
            change_all(s, "hold", "waiting", 1)
        change_all(s, "cancel", "running", 2)
        settle(s, name, 240)
        say("%s: %d run" % (name, s.get("/v1/status")["jobs"]["running"]))
    marks.append(("end", time.time()))
    return marks


def one_run(o):
    def say(text):
        print("%6.1f s  %s" % (time.monotonic() - began, text), file=sys.stderr, flush=True)

    gpus = " ".join("%s:%d" % (t, o.nodes // len(TYPES)) for t in TYPES)
    began = time.monotonic()
    with Slurm(gpus, LINES + ["slurm_rate %g" % o.rate]) as s:
        say("%d nodes are up" % s.n_gpus)
        s.start(["record " + s.path("record")])
        since, before = time.monotonic(), rpcs(s)
        listener = Listener(s)
        listener.start()
        marks = phases(s, o.jobs, o.seconds / 4, say)
        time.sleep(max(0, o.seconds - (time.monotonic() - since)))
        passed_s, calls = time.monotonic() - since, s.status()["calls"]
        after = rpcs(s)
        asked = {k: n - before.get(k, 0) for k, n in after.items() if n > before.get(k, 0)}
        cycles = read_cycles(s.path("record"), listener.starts())
        result = {
            "nodes": s.n_gpus, "jobs": o.jobs, "seconds": round(passed_s, 1),
            "cycles": [cycle_of(cycles, name, at, marks[i + 2][1])
                       for i, (name, at) in enumerate(marks[1:-1])],
            "calls": calls, "calls_per_s": round(calls / passed_s, 2),
            "late": s.status()["late"],
            "rpcs": asked, "rpcs_per_s": round((sum(asked.values()) - o.jobs // 2) / passed_s, 2),
            "stalls": int(s.metric("gogh_loop_stalls_total")),
            "held_by": [x for x in s.log().splitlines() if "loop was held" in x][:5]}
        result["cycle_s"] = max(c["cycle_s"] for c in result["cycles"])
        s.stop()
        s.end()
        return result


def middle(values):
    values = sorted(values)
    return {"median": values[len(values) // 2], "min": values[0], "max": values[-1]}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nodes", type=int, default=100)
    p.add_argument("--jobs", type=int, default=400)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--seconds", type=float, default=900)
    p.add_argument("--rate", type=float, default=4, help="calls a second that the driver may make")
    o = p.parse_args()
    runs = []
    for i in range(o.runs):
        print("run %d of %d" % (i + 1, o.runs), file=sys.stderr)
        runs.append(one_run(o))
        print(json.dumps(runs[-1]), file=sys.stderr)
    figures = {key: dict(middle([r[key] for r in runs]), limit=limit)
               for key, limit in LIMITS.items()}
    print(json.dumps({"bench": "slurm", "figures": figures, "runs": runs}, indent=1))
    bad = [key for key, f in figures.items() if f["median"] > f["limit"]]
    if bad:
        raise Failure("beyond the limit: " + ", ".join(bad))


if __name__ == "__main__":
    need_slurm()
    sys.exit(run(main, 6 * 3600))
