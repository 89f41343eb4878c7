#!/usr/bin/env python3
"""kill -9 of the daemon at random moments, under load.

    serve_kill.py KILLS [SEED]

Clients submit small real jobs, cancel some, hold many and release some of these, each request again
until it is answered, submissions with a key; meanwhile the daemon is killed and started on the same
store, again and again. At the end every job that was acknowledged is there, once, and as it was
left; none ran twice at a time or got lost; nobody is left.
"""
import os
import random
import sys
import threading
import time

from daemon import Box, CEILING_S, check, run, until

CLIENTS = 4
WORKLOADS = {"a": {"workload": "LM", "batch": 20}, "b": {"workload": "ResNet-18", "batch": 128}}


class Client(threading.Thread):
    """Submits one job after the other until told to stop; knows what was acknowledged."""

    def __init__(self, box, number, seed, stop):
        super().__init__(daemon=True)
        self.box, self.number, self.stop = box, number, stop
        self.chance = random.Random("%s %d" % (seed, number))
        self.jobs = {}  # name: id, as acknowledged
        self.held = set()  # ids of those that must not run
        self.cancelled = set()  # ids whose cancel was acknowledged
        self.n_again = 0  # answers to a request whose first answer got lost
        self.failure = None

    def insist(self, path, body, key):
        """Ask until there is an answer that is one."""
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            answer = self.box.try_ask("POST", path, body, headers)
            if answer is not None and answer.status not in (429, 503):
                return answer
            time.sleep(0.02)

    def submit(self, i):
        name = "c%d-%d" % (self.number, i)
        is_held = self.chance.random() < 0.85
        workload = self.chance.choice(sorted(WORKLOADS))
        body = self.box.worker(workload, steps=self.chance.randint(2, 30), seed=i, name=name,
                               hold=is_held, **WORKLOADS[workload])
        answer = self.insist("/v1/jobs", body, "key-" + name)
        check(answer.status in (200, 201), name, "gave", answer.status, answer.text[:300])
        check(answer.body["name"] == name, "asked for", name, "and got", answer.body["name"])
        self.n_again += answer.status == 200
        self.jobs[name] = answer.body["id"]
        if is_held:
            check(answer.body["state"] == "held", name, "was to be held and is", answer.body)
            self.held.add(answer.body["id"])

    def change(self, what, job):
        """One that is in that state already, or has ended, is a conflict; and so is the second of
        two requests, the first of which was carried out without an answer.
        """
        answer = self.insist("/v1/jobs/%d/%s" % (job, what), None, None)
        check(answer.status in (200, 409), what, "gave", answer.status, answer.text[:300])
        return answer.status == 200

    def run(self):
        try:
            i = 0
            while not self.stop.is_set():
                self.submit(i)
                i += 1
                job = self.chance.choice(sorted(self.jobs.values()))
                dice = self.chance.random()
                if dice < 0.05:
                    self.cancelled.add(job)  # or it has ended before
                    self.change("cancel", job)
                    self.held.discard(job)
                elif dice < 0.08 and job in self.held:
                    self.held.discard(job)
                    self.change("release", job)
                self.stop.wait(self.chance.uniform(0.005, 0.06))
        except Exception as e:  # shown by the main thread
            self.failure = e


def write_table(box):
    with open(box.path("table"), "w") as f:
        for gpu, speed in (("k80", 20), ("p100", 30), ("v100", 40)):
            f.write("%s a %d\n%s b %d\n" % (gpu, speed, gpu, speed))


def kill_again_and_again(box, kills, chance, clients):
    for i in range(kills):
        box.spawn()
        time.sleep(chance.uniform(0.01, 0.3) if chance.random() < 0.25 else
                   chance.uniform(0.3, 1.5))  # the moment is chance itself, nothing is waited for
        check(box.process.poll() is None, "the daemon ended by itself with", box.process.returncode)
        box.kill()
        for c in clients:
            check(c.failure is None, "a client:", c.failure)
    box.start()


def has_ended(box):
    states = box.get("/v1/status")["jobs"]
    return states["waiting"] + states["running"] == 0


def check_jobs(box, clients):
    jobs = box.jobs()
    by_name = {}
    for j in jobs:
        check(j["name"] not in by_name, j["name"], "is there twice")
        by_name[j["name"]] = j
    for c in clients:
        for name, job in c.jobs.items():
            check(name in by_name, name, "was acknowledged and is lost")
            check(by_name[name]["id"] == job, name, "was", job, "and is", by_name[name]["id"])
    asked = sum(len(c.jobs) for c in clients)
    check(len(jobs) == asked, len(jobs), "jobs are there and", asked, "were asked for")
    return jobs


def check_runs(box, jobs, held, cancelled):
    rows = box.work_log()
    check(not [r for r in rows if r["what"] == "twice"], "ran twice at a time:",
          [r for r in rows if r["what"] == "twice"])
    mine = {j["id"]: [] for j in jobs}
    for r in rows:
        mine[r["job"]].append(r)
    for j in jobs:
        done = [r for r in mine[j["id"]] if r["how"] == "done"]
        what = (j["name"], j["state"], j["reason"], mine[j["id"]])
        if j["id"] in held:
            check(j["state"] == "held" and not mine[j["id"]], "was held:", *what)
            continue
        check(j["state"] in ("finished", "cancelled"), "has not ended well:", *what)
        check(len(done) <= 1, "was done twice:", *what)
        check(j["state"] != "finished" or len(done) == 1, "is said to have finished:", *what)
        check(j["state"] != "cancelled" or j["id"] in cancelled, "was cancelled by nobody:", *what)
        check(j["state"] == "cancelled" or j["id"] not in cancelled or done, "was cancelled:",
              *what)
        runs = [r["run"] for r in mine[j["id"]] if r["what"] == "start"]
        check(len(set(runs)) == len(runs), "a run was started twice:", *what)


def main():
    kills = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    chance = random.Random(seed)
    lines = ["decide_s 0.1", "warmup_s 1", "set move_s 1", "log warn"]
    with Box("k80:2 p100:2 v100:2", lines) as box:
        write_table(box)
        stop = threading.Event()
        clients = [Client(box, i, seed, stop) for i in range(CLIENTS)]
        for c in clients:
            c.start()
        kill_again_and_again(box, kills, chance, clients)
        stop.set()
        for c in clients:
            c.join(CEILING_S)
            check(c.failure is None and not c.is_alive(), "a client:", c.failure)
        until("all jobs have ended", lambda: has_ended(box))
        jobs = check_jobs(box, clients)
        check_runs(box, jobs, set().union(*(c.held for c in clients)),
                   set().union(*(c.cancelled for c in clients)))
        states = box.get("/v1/status")["jobs"]
        print("%d kills: %d jobs (%s), %d answers lost and asked for again" %
              (kills, len(jobs), ", ".join("%d %s" % (n, s) for s, n in states.items() if n),
               sum(c.n_again for c in clients)))
        box.finish()


if __name__ == "__main__":
    sys.exit(run(main))
