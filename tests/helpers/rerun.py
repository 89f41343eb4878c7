#!/usr/bin/env python3
"""A run of real programs, recorded; then the same in the simulator.

The day of serve.py, with a meter: a page as dcgm-exporter's has each GPU's watts and joules, which
follow a table by GPU type and who is there. What the daemon decided is decided again, plan by plan,
and what the simulator draws for the same orders is what the meters have read.
"""
import json
import os
import sys

from daemon import Box, check, run
from meter import Meter, gogh, locked
from serve import JOBS, TYPES, WORKLOADS, await_ends, factor, speed_of, submit_all, write_table

LOADS = dict(zip(sorted(WORKLOADS), (0.30, 0.42, 0.36, 0.45, 0.25, 0.40, 0.20, 0.38, 0.33)))


class BoxMeter(Meter):
    """Two GPUs of each type, by slot."""

    def __init__(self, box, figures):
        self.box = box
        self.rates = {i: job[4]["rate"] for i, job in enumerate(JOBS) if "rate" in job[4]}
        super().__init__({g: 'gpu="%d"' % g for g in range(6)}, figures, LOADS)

    def type_of(self, gpu):
        return TYPES[gpu // 2]

    def shares(self):
        there = {}
        for slot, job, row in locked(self.box.path("work")):
            if row in WORKLOADS:
                there.setdefault(int(slot), []).append((int(job), row))
        return {gpu: [(row, self.share(gpu, job, row, who)) for job, row in who]
                for gpu, who in there.items()}

    def share(self, gpu, job, row, who):
        share = 1
        for other, beside in who:
            if other != job:
                share *= factor(row, beside)
        if job in self.rates:
            share = min(share, self.rates[job] / speed_of(row, self.type_of(gpu)))
        return share


def write_truth(box, meter, names):
    """The table, as measurements: 'names' has the catalog's name of each of its rows."""
    rows = ["workload,gpu,neighbour,n_gpus,throughput,watts,noise"]
    for gpu in TYPES:
        for one, name in names.items():
            alone = (speed_of(one, gpu), meter.alone_w(gpu, one))
            rows.append('"%s",%s,,1,%.9g,%.9g,0.0001' % (name, gpu, *alone))
            rows.append('"%s",%s,,2,%.9g,,0.0001' % (name, gpu, speed_of(one, gpu, n_gpus=2)))
            for other, beside in names.items():
                rows.append('"%s",%s,"%s",1,%.9g,,0.0001' % (name, gpu, beside,
                                                             speed_of(one, gpu, other)))
    with open(box.path("truth.csv"), "w") as f:
        f.write("\n".join(rows) + "\n")
    gogh("import", "csv", box.path("truth.csv"), "--db", box.path("truth.db"))


def replay(box, *more, status=0):
    said = json.loads(gogh("replay", "--record", box.path("record"), "--json", *more,
                           status=status))
    print("replay %s: %d decisions, %d the same; %.1f and %.1f kJ, %+.2f %%; jobs took %+.1f %%" %
          (" ".join(w for w in more if w.startswith("--")), said["decisions"], said["same"],
           said["energy_cluster_j"] / 1e3, said["energy_sim_j"] / 1e3, 100 * said["difference"],
           100 * said["jct_off"]))
    return said


def check_profiles(box):
    """What the meter saw of jobs alone is in the record."""
    with open(box.path("record")) as f:
        seen = [line for line in map(json.loads, f) if line["what"] == "profile"]
    check(seen and all(0 < p["gpu_activity"] <= 1 for p in seen), "profiles are", seen[:3])


def check_same(box):
    said = replay(box, "--truth", box.path("truth.db"))
    check(said["parts"] == 2, "the daemon was started twice, and recorded", said["parts"], "times")
    check(said["decisions"] >= 20 and said["same"] == said["decisions"], "plans differ:",
          said["differs"])
    check(said["watts_off"] < 1e-9, "plans draw otherwise than then:", said["watts_off"])
    check(abs(said["difference"]) <= 0.05, "joules differ:", json.dumps(said))
    check(said["finished_sim"] == said["finished"] > 0, "jobs do not end:", json.dumps(said))


def check_study(box, n_jobs):
    """The record's jobs, cluster and measurements make a study."""
    study = ("study", "--record", box.path("record"), "--policy", "fifo-fastest,gogh",
             "--seeds", "2", "--out", box.path("study"))
    said = json.loads(gogh(*study, "--json"))
    check(len(said) == 4 and all(r["scenario"] == "site" for r in said), "runs:", said)
    check(all(r["jobs"] == r["finished"] == n_jobs for r in said), "jobs:",
          [(r["jobs"], r["finished"]) for r in said], "want", n_jobs)
    check(all(set(r["gpu_hours"]) == set(TYPES) for r in said), "types:", said[0]["gpu_hours"])
    check("4 found from before" in gogh(*study), "the same record is studied anew")
    os.rename(box.path("record"), box.path("record.away"))
    check("4 of 4 runs" in gogh(*study, "--report"), "a report goes through the record again")
    os.rename(box.path("record.away"), box.path("record"))


def check_whatif(box):
    """The record's jobs, on other GPUs."""
    said = json.loads(gogh("whatif", "--record", box.path("record"), "--remove", "k80:1", "--seeds", "1",
                           "--period", "1d", "--json"))
    check(said["site"]["source"] == "record" and said["site"]["gpus"] == 6 and
          said["site"]["jobs"] == len(JOBS), "the site is", said["site"])
    check(said["before"]["kwh_year"]["mean"] > 0 and said["cannot_run"]["unfinished"] == 0,
          "figures of a record are", json.dumps(said))


def check_otherwise(box):
    """A record that says something else than happened is found out."""
    with open(box.path("record")) as f:
        lines = [json.loads(line) for line in f]
    plan = next(p for p in lines if p["what"] == "plan" and len(p["run"]) > 1 and
                p["run"][0][2:] != p["run"][1][2:])
    plan["run"][0][2:], plan["run"][1][2:] = plan["run"][1][2:], plan["run"][0][2:]
    with open(box.path("record"), "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    said = replay(box, "--truth", box.path("truth.db"), status=1)
    check(said["same"] < said["decisions"] and "GPU" in said["differs"], "no difference found:",
          said["differs"])


def main():
    known = json.loads(gogh("catalog", "gpus", "--json"))
    figures = {t: next((k["idle_w"], k["cap_w"]) for k in known if k["name"].startswith(t))
               for t in TYPES}
    with Box("k80:2 p100:2 v100:2") as box, BoxMeter(box, figures) as meter:
        box.lines = ["warmup_s 1", "power_s 1", "decide_s 0.5", "set report_s 10", "set move_s 0.5",
                     "set restart_s 0.2", "set settle_s 12", "power dcgm=" + meter.url(),
                     "record " + box.path("record")]
        write_table(box)
        box.start()
        ids = submit_all(box)
        box.stop()
        box.start()
        jobs = await_ends(box)
        bad = [j["name"] for j in jobs.values() if j["state"] != "finished"]
        check(not bad, "these did not finish:", bad)
        box.cli("plan")
        box.finish()
        write_truth(box, meter, {row: jobs[i]["workload"] for i, row in ids.items()})
        check_profiles(box)
        check_same(box)
        replay(box, "--tolerance", "1")
        check_study(box, len(jobs))
        check_whatif(box)
        check_otherwise(box)


if __name__ == "__main__":
    sys.exit(run(main))
