#!/usr/bin/env python3
"""A run on a real Slurm cluster, recorded; then the same in the simulator.

Jobs come by `gogh submit` and sbatch; their speed follows a table, and so does what the GPUs draw:
a meter, a page as dcgm-exporter's with all nodes on it, sees by the workers' locks who is where.
What the daemon decided is decided again, plan by plan, from what the record says it was made from;
and what the simulator draws for the same orders, with the table as the truth, is what the meter has
read, within a twentieth where GOGH_TEST_ALL says that seconds count.
"""
import json
import sys
import time

from meter import Meter, gogh, locked
from slurm import IS_ALL, Slurm, check, need_slurm, run, until
from slurm_scenario import Jobs, ROWS, TYPES, factor, speed_of, table

NAMES = {"v100": "v100-16", "a100": "a100-40"}  # what the catalog calls them
LOADS = dict(zip(ROWS, (0.45, 0.38, 0.52, 0.41, 0.36, 0.48)))  # of what is between idle and cap

# From order to start Slurm took 0.3 to 5.5 s (16 orders, two cores, idle), most about 3.3, and of a
# move nearly all of it is lost: simulated starts take restart_s, moves that and move_s.
LINES = ["warmup_s 1", "power_s 1", "set report_s 7", "set settle_s 8", "set move_s 1.7",
         "set restart_s 1.5"]

# When (seconds after the first), name, row, seconds of work alone on a v100, and what is asked.
JOBS = [
    (0, "first", "lm", 30, {"min-throughput": 20}),
    (0, "second", "bert", 30, {}),
    (0, "third", "vit", 25, {"min-throughput": 5}),
    (0, "fourth", "trans", 20, {}),
    (4, "alone", "distil", 15, {"exclusive": True}),
    (6, "newer", "roberta", 12, {"types": "v100,a100"}),
    (8, "older", "trans", 6, {"types": "k80,p100"}),
    (12, "urgent", "bert", 12, {"types": "a100", "exclusive": True, "priority": 5}),
    (14, "late", "vit", 10, {}),
    (16, "last", "lm", 10, {}),
]


def figures():
    """{type: (idle, cap)} in watts."""
    known = {k["name"]: k for k in json.loads(gogh("catalog", "gpus", "--json"))}
    return {t: (known[NAMES.get(t, t)]["idle_w"], known[NAMES.get(t, t)]["cap_w"]) for t in TYPES}


class ClusterMeter(Meter):
    """One GPU to a node."""

    def __init__(self, s, gpus):
        self.s = s
        super().__init__({gpu: 'gpu="0",Hostname="%s"' % gpu for gpu in gpus}, figures(), LOADS)

    def type_of(self, gpu):
        return gpu.split("-")[0]

    def shares(self):
        there, found = {}, {}
        for place, _, row in locked(self.s.path("work")):
            if row in LOADS:
                there.setdefault(place.split(":")[0], []).append(row)
        for gpu, rows in there.items():
            for i, row in enumerate(rows):
                share = 1
                for other in rows[:i] + rows[i + 1:]:
                    share *= factor(row, other)
                found.setdefault(gpu, []).append((row, share))
        return found


def write_truth(s, meter, names):
    """The table, as measurements: 'names' has the row of each of the catalog's workloads."""
    lines = ["workload,gpu,neighbour,n_gpus,throughput,watts,noise"]
    for gpu in TYPES:
        called = NAMES.get(gpu, gpu)
        for name, row in names.items():
            lines.append('"%s",%s,,1,%.9g,%.9g,0.0001' % (name, called, speed_of(row, gpu),
                                                          meter.alone_w(gpu, row)))
            lines += ['"%s",%s,"%s",1,%.9g,,0.0001' % (name, called, beside,
                                                       speed_of(row, gpu, other))
                      for beside, other in names.items()]
    with open(s.path("truth.csv"), "w") as f:
        f.write("\n".join(lines) + "\n")
    gogh("import", "csv", s.path("truth.csv"), "--db", s.path("truth.db"))


def submit_all(s):
    jobs, began = Jobs(s), time.monotonic()
    for at_s, name, row, work_s, wish in JOBS:
        until("the time comes", lambda at_s=at_s: time.monotonic() - began >= at_s)
        jobs.submit(name, row, {"steps": round(work_s * speed_of(row, "v100"))}, wish)
    until("all jobs have ended", lambda: s.have_ended(len(JOBS)))
    return jobs.names()


def check_same(s):
    said = json.loads(gogh("replay", "--record", s.path("record"), "--truth", s.path("truth.db"),
                           "--json", "--tolerance", "1"))
    print("%d decisions, %d the same" % (said["decisions"], said["same"]))
    print("%.1f kJ metered, %.1f kJ simulated: %+.2f %%; jobs took %+.1f %% there" %
          (said["energy_cluster_j"] / 1e3, said["energy_sim_j"] / 1e3, 100 * said["difference"],
           100 * said["jct_off"]))
    check(said["decisions"] >= 10 and said["same"] == said["decisions"], "plans differ:",
          said["differs"])
    check(said["watts_off"] < 1e-9, "plans draw otherwise than then:", said["watts_off"])
    check(not IS_ALL or abs(said["difference"]) <= 0.05, "joules differ:", json.dumps(said))
    check(said["finished_sim"] == said["finished"] == len(JOBS), "jobs do not end:",
          json.dumps(said))


def main():
    with Slurm("k80:2 p100:2 v100:2 a100:2", LINES) as s:
        s.write_table(table())
        with ClusterMeter(s, ["%s-%d" % (t, i) for t in TYPES for i in range(2)]) as meter:
            s.start(["power dcgm=" + meter.url(), "record " + s.path("record")])
            names = submit_all(s)
            s.stop_well()
            write_truth(s, meter, names)
        check_same(s)
        s.end()


if __name__ == "__main__":
    need_slurm()
    sys.exit(run(main))
