#!/usr/bin/env python3
"""GOGH steers a real Slurm cluster: jobs come in waves, everything is rearranged, nobody is astray.

With GOGH_TEST_ALL=1 there are 24 GPUs and 40 jobs in two waves, else 8 GPUs and 10 jobs in one, and
nothing is judged by seconds.

The speed of a job follows a table by GPU type and neighbour that the daemon never sees. Half of
them come by `gogh submit`, half by sbatch through the gate, of several users where the test is
root. Some are there throughout and do not say how long they will take; they are best on the newer
half of the GPUs, two on one. A wave is of short jobs that must have these GPUs alone, and go first:
all the others have to leave, and come back when it is over. What is meant here by

  rest            GOGH has nothing under way, and everybody is, by squeue, where GOGH says.
  rearrangement   from one moment at which all of those who stay run to a later such moment, three
                  quarters of them or more have changed GPUs, by what they themselves wrote down.
                  The next one counts from there. Away and back again: two in each wave.
  named           the daemon's record has each plan: which job on which GPUs. Each plan is in force
                  until the next. A job may be where a plan puts it while that plan is in force,
                  and MOVE_S longer, since whoever is moved must save and leave first. It may be
                  beside another where one and the same plan puts both on that GPU, in that time.
  seen            workers ask Slurm alone where they are, and the kernel's locks who is beside them,
                  and write it down every 0.2 s with the time. The daemon has no part in that.
  a move's time   from the order to the worker's start at the new place, in which it saves and ends,
                  Slurm takes it back, and it and whoever was there before are on their way.
  error           of a measured cell (workload, GPU type, neighbour): |believed / true - 1|, at the
                  end, with the table as the truth; before: of workloads alone, before the first.
"""
import json
import sys
import time
import urllib.parse

from slurm import CEILING_S, IS_ALL, Slurm, check, need_slurm, run, until

TYPES = ("k80", "p100", "v100", "a100")
FAST = TYPES[2:]
MOVE_S = 15 if IS_ALL else CEILING_S

# Steps a second alone on each type; how the workload is named.
WORKLOADS = {
    "lm": ((8, 17, 42, 80), "LM", 20),
    "distil": ((7, 15, 45, 85), "distilbert", 32),
    "bert": ((5, 12, 40, 90), "bert-base", 32),
    "vit": ((6, 13, 38, 88), "vit-base", 32),
    "trans": ((9, 18, 44, 82), "Transformer", 64),
    "roberta": ((5, 11, 36, 84), "roberta-base", 32),
}
ROWS = list(WORKLOADS)
LINES = ["slurm_poll_s 2", "warmup_s 1", "set report_s 7", "set settle_s 8", "set move_s 60"]


def factor(row, beside):
    """What is left of a workload's speed beside another: made up, and not symmetric."""
    return 0.6 + 0.04 * ((3 * ROWS.index(row) + 5 * ROWS.index(beside)) % 9)


def speed_of(row, gpu, beside=None):
    return WORKLOADS[row][0][TYPES.index(gpu)] * (factor(row, beside) if beside else 1)


def table():
    speeds = {}
    for gpu in TYPES:
        for row in ROWS:
            speeds[gpu, row] = speed_of(row, gpu)
            speeds.update({(gpu, row, other): factor(row, other) for other in ROWS})
    return speeds


# ---- jobs ----

class Jobs:
    """Submits, each job in another way than the one before."""

    def __init__(self, s):
        self.s, self.n, self.rows = s, 0, {}

    def submit(self, name, row, amount, wish):
        """'wish' as gogh submit has it: {"types": "v100,a100", "exclusive": True}"""
        _, model, batch = WORKLOADS[row]
        wish = dict(wish, workload=model, batch=batch)
        user = self.s.users[self.n % len(self.s.users)]
        if self.n % 3 == 0:
            wish["checkpoint-signal"] = "USR1"
        if self.n % 2 == 0:
            self.s.submit_worker(name, row, user=user, **amount, **wish)
        else:
            promise = " ".join("%s=%s" % (key.replace("-signal", ""), value)
                               for key, value in wish.items()).replace("=True", "=yes")
            self.s.sbatch_worker(name, row, user=user, promise=promise, **amount,
                                 by="script" if self.n % 4 == 1 else "comment")
        self.rows[name] = row
        self.n += 1

    def names(self):
        """{workload as the catalog has it: row}"""
        return {j["workload"]: self.rows[j["name"]] for j in self.s.jobs()}

    def submit_stayers(self, n):
        for i in range(n):
            self.submit("stay-%d" % i, ROWS[i % len(ROWS)], {"until_file": "enough"}, {})
        return ["stay-%d" % i for i in range(n)]

    def submit_wave(self, wave, n, work_s):
        names = ["wave-%d-%d" % (wave, i) for i in range(n)]
        for i, name in enumerate(names):
            row = ROWS[(i + 1) % len(ROWS)]
            wish = {"types": ",".join(FAST), "exclusive": True, "priority": 5}
            self.submit(name, row, {"steps": round(work_s * speed_of(row, "v100"))}, wish)
        return names


# ---- waiting ----

def places(s):
    """{name: [GPU, ...]} of what runs, as GOGH has it."""
    return {j["name"]: sorted(j["gpus"]) for j in s.jobs() if j["state"] == "running"}


def nodes_of(gpus):
    return sorted({g.rsplit("/", 1)[0] for g in gpus})


def rest(s):
    """Where everybody is, once GOGH and Slurm agree and nothing is under way; else None."""
    ours, theirs = places(s), s.placed()
    is_rest = (s.status()["under_way"] == 0 and set(ours) == set(theirs) and
               all(nodes_of(ours[name]) == [theirs[name]] for name in ours))
    return ours if is_rest else None


def are_back(s, names):
    """All of them run, at rest, and most on the newer half."""
    now = rest(s)
    if now is None or not set(names) <= set(now):
        return False
    return sum(now[name][0].split("-")[0] in FAST for name in names) >= 0.75 * len(names)


def is_measured(s, names):
    """Was each of them measured, on such a GPU and beside such a neighbour as it has now?"""
    now = {j["name"]: j for j in s.jobs() if j["state"] == "running"}
    cells = {(m["workload"], m["gpu"], m["beside"])
             for m in s.get("/v1/measurements?limit=1000")["measurements"] if m["measured"]}
    if not set(names) <= set(now):
        return False
    for name in names:
        beside = [j["workload"] for j in now.values() if j["gpus"] == now[name]["gpus"] and
                  j["name"] != name]
        if (now[name]["workload"], now[name]["gpu_type"], (beside or [None])[0]) not in cells:
            return False
    return True


# ---- the daemon's record ----

class Plan:
    def __init__(self, time_s, where):
        self.time_s, self.end_s, self.where = time_s, float("inf"), where


def in_turn(plans):
    """Each is in force until the next."""
    for plan, following in zip(plans, plans[1:]):
        plan.end_s = following.time_s
    return plans


def read_record(path):
    """Plans in their order, Plan.where is {name: {GPU, ...}}; and moves: (time, name, GPUs)."""
    gpus, names, plans, moves = [], [], [], []
    with open(path) as f:
        for line in map(json.loads, f):
            if line["what"] == "event" and line["kind"] == "node_added":
                n = len(line["body"]["gpus"])
                gpus += ["%s/%d" % (line["body"]["node"], i) for i in range(n)]
            elif line["what"] == "event" and line["kind"] == "job_submitted":
                names.append(line["body"]["name"])
            elif line["what"] == "plan":
                where = {names[job]: {gpus[g] for g in on} for job, _, *on in line["run"]}
                plans.append(Plan(line["time_s"], where))
            elif line["what"] == "move":
                moves.append((line["time_s"], names[line["job"]], {gpus[g] for g in line["gpus"]}))
    return in_turn(plans), moves


def late_s(plans, row, other=None):
    """How long ago the last plan that puts it there (and the other beside it) was replaced. 0: it
    is in force; infinite: there is none.
    """
    at = set(row["places"])
    for plan in reversed(plans):
        if (plan.time_s <= row["time_s"] and plan.where.get(row["name"]) == at and
                (other is None or plan.where.get(other, set()) & at)):
            return max(0, row["time_s"] - plan.end_s)
    return float("inf")


def lateness(plans, rows):
    """Of each line of 'seen', for its place and for each neighbour: [(late_s, line, neighbour)]."""
    return [(late_s(plans, row, other), row, other)
            for row in rows for other in [None] + row["beside"]]


def astray(plans, rows):
    return [found for found in lateness(plans, rows) if found[0] > MOVE_S]


def check_checker(plans, rows):
    """That nobody was astray says something only if the check can tell."""
    row = next(r for r in rows if not astray(plans, [r]))
    forged = (("a job on a GPU that no plan has", dict(row, places=["nowhere-0/0"])),
              ("a neighbour of no plan", dict(row, beside=["nobody"])),
              ("a start without a plan", dict(row, time_s=plans[0].time_s - 1)),
              ("a job that stays on", dict(row, time_s=plans[-1].time_s + MOVE_S + 1)))
    ended = in_turn([Plan(p.time_s, p.where) for p in plans[:-1]] + [Plan(plans[-1].time_s, {})])
    for what, line in forged:
        check(astray(ended, [line]), what, "goes unnoticed")


def check_places(plans, rows):
    check_checker(plans, rows)
    found = lateness(plans, rows)
    late = [f[0] for f in found if f[0] > 0]
    bad = astray(plans, rows)
    print("%d times a job was seen where it is, %d times beside another; %d plans" %
          (len(rows), len(found) - len(rows), len(plans)))
    check(not bad, len(bad), "times where no plan has put it:", bad[:5])
    check(len(found) > len(rows), "nobody had a neighbour")
    print("%.1f %% as the plan in force has it, the others at most %.1f s after it was replaced" %
          (100 - 100 * len(late) / len(found), max(late, default=0)))


def configurations(log, names):
    """Where all of them were at each moment at which all of them ran: [(time, {name: places})]."""
    now, found = {}, []
    for r in log:  # in the order of time, near enough: each line is written when it happens
        if r["name"] not in names:
            continue
        if r["what"] == "start":
            now[r["name"]] = tuple(r["places"])
        else:
            now.pop(r["name"], None)
        if len(now) == len(names):
            found.append((r["time_s"], dict(now)))
    return found


def check_rearrangements(log, names, want):
    found = configurations(log, names)
    _, before = found[0]
    n_moved = []
    for _, now in found[1:]:
        n = sum(now[name] != before[name] for name in names)
        if n >= 0.75 * len(names):
            n_moved.append(n)
            before = now
    print("%d rearrangements, in which %s of %d jobs changed places" %
          (len(n_moved), ", ".join(map(str, n_moved)), len(names)))
    check(len(n_moved) >= want, "want", want, "complete rearrangements")


def check_moves(moves, log):
    """An order that another one overtook, or whose job has ended meanwhile, has no start."""
    took = []
    for time_s, name, gpus in moves:
        later = [r for r in log if r["name"] == name and r["time_s"] >= time_s]
        start = next((r for r in later if r["what"] == "start"), None)
        if start is not None and set(start["places"]) == gpus:
            took.append(start["time_s"] - time_s)
    took.sort()
    check(took, "nobody was moved")
    middle = took[len(took) // 2]
    print("%d moves: %.1f s in the middle, at most %.1f s" % (len(took), middle, took[-1]))
    check(len(took) >= 0.8 * len(moves), "of", len(moves), "moves only", len(took), "came true")
    check(not IS_ALL or middle < 10 and took[-1] < MOVE_S, "moves took", took)


# ---- what is believed ----

def believed(s, workload, gpu, beside=None):
    query = {"workload": workload, "gpu": gpu}
    if beside:
        query["beside"] = beside
    return s.get("/v1/estimates?" + urllib.parse.urlencode(query))["estimates"][0]["speed"]


def errors_alone(s, names):
    """Of all known workloads, on all types."""
    return [abs(believed(s, name, gpu) / speed_of(row, gpu) - 1)
            for name, row in names.items() for gpu in TYPES]


def errors_measured(s, names):
    found = []
    for cell in s.get("/v1/measurements?limit=1000")["measurements"]:
        if cell["workload"] not in names or cell["measured"] == 0:
            continue
        row, beside = names[cell["workload"]], cell["beside"] and names[cell["beside"]]
        truth = speed_of(row, cell["gpu"].split("-")[0], beside)  # a gres type a100 is our a100-40
        found.append((abs(believed(s, cell["workload"], cell["gpu"], cell["beside"]) / truth - 1),
                      cell["workload"], cell["gpu"], cell["beside"], round(cell["throughput"], 2),
                      round(truth, 2), cell["measured"]))
    return sorted(found)


def check_estimates(s, names, before):
    found = errors_measured(s, names)
    mean = sum(f[0] for f in found) / max(1, len(found))
    print("estimates: error %.0f %% before, %.1f %% after, in %d measured cells" %
          (100 * sum(before) / len(before), 100 * mean, len(found)))
    check(len(found) >= 6, "only", len(found), "cells were measured")
    check(mean < 0.1, "believed otherwise than true:", found[-8:])
    bad = [f for f in found if f[0] > 0.1]
    check(len(bad) <= 0.1 * len(found), "more than one in ten by more than a tenth:", bad)


# ---- ends ----

def check_ends(s, n):
    jobs = s.jobs()
    bad = [(j["name"], j["state"], j["reason"]) for j in jobs if j["state"] != "finished"]
    check(len(jobs) == n and not bad, len(jobs), "jobs; these did not finish:", bad)
    log = s.work_log()
    check(not [r for r in log if r["what"] == "twice"], "a job ran twice at a time")
    for j in jobs:
        mine = [r for r in log if r["name"] == j["name"]]
        starts = [r for r in mine if r["what"] == "start"]
        check(mine and mine[-1]["how"] == "done" and len(mine) == 2 * len(starts), j["name"],
              "has", mine)
        check(len({r["slurm_id"] for r in mine}) == 1, j["name"], "was several jobs:", mine)
        steps = [r["steps"] for r in mine]
        check(steps == sorted(steps), j["name"], "lost steps:", mine)
        if j["steps"] is not None:
            check(j["steps_done"] == j["steps"], j["name"], "ended at", j["steps_done"])
    return log


def check_manners(s, began):
    """A day's moves in two minutes: the driver's bucket of calls (500) may be drawn on, not its
    rate raised.
    """
    status, passed_s = s.status(), time.monotonic() - began
    print("%.1f calls a second, %d late" % (status["calls"] / passed_s, status["late"]))
    check(status["calls"] < 500 + 4 * passed_s, "too many calls:", status)
    check(status["resubmits"] == 0 and status["strays"] == 0, "Slurm:", status)


def scenario(s, n_waves, n_stay, n_wave, work_s):
    """Submit, rearrange, let all end; the jobs, and how wrong the first beliefs were."""
    jobs, began = Jobs(s), time.monotonic()
    stayers = jobs.submit_stayers(n_stay)
    until("all of the first run", lambda: set(rest(s) or ()) == set(stayers))
    before = errors_alone(s, jobs.names())
    for wave in range(n_waves):
        until("all of these are measured", lambda: is_measured(s, stayers) and rest(s))
        mine = jobs.submit_wave(wave, n_wave, work_s)
        until("the wave is over",
              lambda mine=mine: all(s.job(n)["state"] == "finished" for n in mine))
        until("all are back", lambda: are_back(s, stayers))
        print("wave %d was there after %.0f s" % (wave, time.monotonic() - began), flush=True)
    with open(s.path("work/enough"), "w"):
        pass
    until("all jobs have ended", lambda: s.have_ended(jobs.n))
    return jobs, stayers, before


def play():
    n, n_waves = (6, 2) if IS_ALL else (2, 1)
    with Slurm(" ".join("%s:%d" % (t, n) for t in TYPES), LINES) as s:
        s.write_table(table())
        began = time.monotonic()
        s.start(["record " + s.path("record")])
        jobs, stayers, before = scenario(s, n_waves, 2 * n, 2 * n + 2, 20 if IS_ALL else 14)
        print("all of %d jobs ended after %.0f s" % (jobs.n, time.monotonic() - began))
        check_manners(s, began)
        log = check_ends(s, jobs.n)
        # On a busy machine the short wave may be over before all have made room for it.
        check_rearrangements(log, stayers, 2 * n_waves if IS_ALL else 1)
        check_estimates(s, jobs.names(), before)
        s.stop_well()
        plans, moves = read_record(s.path("record"))
        check_places(plans, s.seen())
        check_moves(moves, log)
        s.end()


if __name__ == "__main__":
    need_slurm()
    sys.exit(run(play))
