#!/usr/bin/env python3
"""What may go wrong with a Slurm cluster that GOGH steers: nothing is lost, nothing runs twice.

    slurm_faults.py [NAME...]       these; else a few, longer ones with GOGH_TEST_ALL=1

  name              what is done                              what else must be true
  controller        slurmctld kill -9, started 8 s later      jobs submitted meanwhile run later
  forgotten         slurmctld kill -9 right after submits,    jobs that Slurm has lost come back
                    and with a state from before them
  controller_hung   slurmctld halted for 20 s
  munge             munged kill -9, started 15 s later
  munge_hung        munged halted for 15 s
  node              a node is lost for good, then it is back  its jobs go elsewhere; used again
  daemon            goghd kill -9 at random moments, again    each acknowledged job is there once
                    and again, among submits and moves
  driver            gogh-slurm-driver kill -9, likewise
  submit_late       sbatch does its work and then hangs       one job of Slurm's each
  submit_never      sbatch hangs and does nothing             likewise
  submit_too_late   sbatch does its work after it was given   the second is cancelled, never run
                    up, and another one has, too

Each has a cluster of its own, on which jobs of both ways of submission run, wait and end. After
every one of them:
  - all jobs that were accepted finish, and none was in two places at a time: the workers' own
    locks tell. There is one exception, which is made impossible here: a machine that slurmctld has
    given up, while the job on it runs on; our lost node loses its processes, too;
  - none is done again that was done, but for those whose end Slurm itself did not hear of, or that
    ended in the moment in which they were to move;
  - each is one job of Slurm's, but for those that Slurm forgot, and no node is drained;
  - some time after the cure everybody is, by squeue, where GOGH says;
  - no turn of the loop took 100 ms, less what it had to wait for a CPU (slurm.py, Stalls).
"""
import os
import random
import signal
import sys
import threading
import time

from slurm import CEILING_S, Failure, IS_ALL, Slurm, check, need_slurm, read_bytes, run, until

SPEEDS = {"k80": 20, "v100": 40}
LM = {"workload": "LM", "batch": 20}
PROMISE = "workload=LM batch=20"
LINES = ["warmup_s 1", "slurm_patience_s 30"]
COMMANDS = ("sbatch", "squeue", "scontrol", "sinfo", "scancel")


class Faulty(Slurm):
    """A small cluster, and the jobs it was given."""

    def __init__(self, gpus="k80:2 v100:2", lines=(), **more):
        super().__init__(gpus, LINES + list(lines), **more)
        self.names, self.lost, self.n_jobs = [], set(), 0
        self.away_s = [0, 0]  # from when to when Slurm is not to be had

    def __enter__(self):
        super().__enter__()
        table = {(t, "w"): speed for t, speed in SPEEDS.items()}
        table.update({(t, "w", "w"): 0.8 for t in SPEEDS})
        self.write_table(table)
        return self

    # ---- jobs ----

    def give(self, n, work_s=12, by=("gogh", "sbatch"), **more):
        """Submit so many, in turn by these ways; their names."""
        names = []
        for _ in range(n):
            name = "j%d" % self.n_jobs
            user = self.users[self.n_jobs % len(self.users)]
            steps = round(work_s * 30 * (0.7 + 0.1 * (self.n_jobs % 7)))
            if by[self.n_jobs % len(by)] == "gogh":
                self.submit_worker(name, "w", steps=steps, user=user, **LM, **more)
            else:
                words = " ".join("%s=%s" % pair for pair in more.items())
                self.sbatch_worker(name, "w", steps=steps, user=user,
                                   promise=(PROMISE + " " + words).strip())
            self.n_jobs += 1
            names.append(name)
        self.names += names
        return names

    def await_runs(self, n=1):
        until("%d jobs run" % n, lambda: len(self.placed()) >= n)

    # ---- what must be true ----

    def difference(self):
        """Of what GOGH says and what Slurm does; empty: none."""
        ours = {j["name"]: sorted({g.rsplit("/", 1)[0] for g in j["gpus"]})
                for j in self.jobs() if j["state"] == "running"}
        theirs = {name: [node] for name, node in self.placed().items()}
        status = self.status()
        if not status["up"] or status["under_way"]:
            return "Slurm is %s, %d orders are under way" % ("up" if status["up"] else "down",
                                                              status["under_way"])
        return "" if ours == theirs else "GOGH has %s and Slurm %s" % (ours, theirs)

    def converge(self, what):
        began, last = time.monotonic(), [""]

        def agrees():
            last[0] = self.difference()
            return not last[0]
        try:
            until("GOGH and Slurm agree", agrees)
        except Failure as e:
            raise Failure("%s; %s" % (e, last[0])) from None
        print("    %s: they agree after %.1f s" % (what, time.monotonic() - began), flush=True)

    def end_well(self):
        """All end, as they should; then the daemon and the cluster do."""
        until_ended(self)
        check(not self.placed(), "Slurm still runs", self.placed())
        self.check_jobs()
        self.check_runs()
        self.check_nodes()
        self.finish()

    def check_jobs(self):
        by_name = {}
        for j in self.jobs():
            check(j["name"] not in by_name, j["name"], "is there twice")
            by_name[j["name"]] = j
        for name in self.names:
            check(name in by_name, name, "was accepted and is lost")
            j = by_name[name]
            check(j["state"] == "finished", name, "is", j["state"], "because", j["reason"])
        check(set(by_name) == set(self.names), "nobody has submitted",
              set(by_name) - set(self.names))

    def check_runs(self):
        log = self.work_log()
        check(not [r for r in log if r["what"] == "twice"], "two at a time:",
              [r for r in log if r["what"] == "twice"])
        for name in self.names:
            mine = [r for r in log if r["name"] == name]
            done = [r for r in mine if r["how"] == "done"]
            check(done and mine[-1] is done[-1], name, "was not done:", mine)
            excused = [r for r in done[:-1] if self.is_unheard(r) or is_overtaken(r, mine)]
            check(len(done) == 1 + len(excused), name, "was done again:", mine)
            ids = {r["slurm_id"] for r in mine}
            check(len(ids) == 1 or name in self.lost or self.is_forgotten(name, mine), name,
                  "was several jobs of Slurm's:", mine)
        numbers = {}
        for j in self.squeue():
            numbers.setdefault(j["name"], set()).add(j["state"])
        live = {n for n, states in numbers.items() if states & {"PENDING", "RUNNING", "COMPLETING"}}
        check(not live, "is left in Slurm:", live)

    def is_unheard(self, row):
        """Slurm was away when it ended."""
        return self.away_s[0] - 1 < row["time_s"] < self.away_s[1] + 5

    def is_forgotten(self, name, runs):
        """One that is killed leaves nothing of what it did in its last seconds: GOGH says so."""
        return ("job %s: Slurm has forgotten" % name in self.log() and
                self.away_s[0] - 10 < runs[0]["time_s"] < self.away_s[0] + 1)

    def check_nodes(self):
        """What was refused as a second copy of something drains a node."""
        bad = [x for x in self.slurm("sinfo", "-hN", "-p", "gogh", "-o", "%N %T %E").splitlines()
               if x.split()[1] not in ("idle", "mixed", "allocated")]
        check(not bad, "nodes are not well:", bad)

    def show_log(self):
        super().show_log()
        lines = read_bytes(os.path.join(self.cluster, "log/slurmctld.log")).decode().splitlines()
        print("---- slurmctld's log, its end ----", *lines[-40:], "----", sep="\n", file=sys.stderr)

    # ---- faults ----

    def processes_on(self, node):
        """Of jobs on that node: what ends with a machine."""
        mark = b"\0SLURMD_NODENAME=%s\0" % node.encode()
        found = []
        for pid in self.processes():
            if mark in b"\0" + read_bytes("/proc/%d/environ" % pid):
                found.append(pid)
        return found

    def fail(self, who, how="KILL"):
        self.tool("kill", who, how)
        self.away_s[0] = time.time()

    def cure(self, who, how=None):
        if how:
            self.tool("kill", who, how)
        else:
            self.tool("start", who)
        self.away_s[1] = time.time()

    def lose_node(self, node):
        """The machine is gone: slurmd, what keeps its steps, and these."""
        self.tool("kill", node)
        mine = self.processes_on(node)
        keepers = {parent_of(p) for p in mine} - set(mine)
        for pid in [p for p in keepers if b"slurmstepd" in read_bytes("/proc/%d/comm" % p)] + mine:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def wrap(self, name, text):
        """A directory of Slurm's commands, one of which is a script: 'real' is the true one, 'd' a
        directory that everybody may write to. 'slurm_commands', for the configuration.
        """
        folder, room = self.path("commands"), self.path("room")
        os.mkdir(folder, 0o755)
        os.mkdir(room)
        os.chmod(room, 0o777)
        for command in COMMANDS:
            real = self.slurm("sh", "-c", "command -v " + command).strip()
            path = os.path.join(folder, command)
            if command != name:
                os.symlink(real, path)
                continue
            with open(path, "w") as f:
                f.write("#!/bin/sh\nreal=%s d=%s\n%s\n" % (real, room, text))
            os.chmod(path, 0o755)
        return "slurm_commands " + folder


def until_ended(s):
    def left():
        return [j for j in s.jobs() if j["state"] in ("waiting", "running")]
    until("all jobs have ended", lambda: not left())


def is_overtaken(row, rows):
    """It ended in the moment in which it was to move, and Slurm requeues those that have ended, too:
    it is started once more, and finds that nothing is left to do.
    """
    after = rows[rows.index(row) + 1]
    return (after["run"] == row["run"] + 1 and after["steps"] == row["steps"] and
            after["slurm_id"] == row["slurm_id"] and after["time_s"] - row["time_s"] < CEILING_S)


def parent_of(pid):
    words = read_bytes("/proc/%d/stat" % pid).rsplit(b")", 1)[-1].split()
    return int(words[1]) if len(words) > 1 else 0


def wait_s(seconds):
    """How long a fault lasts: nothing is waited for."""
    time.sleep(seconds)


# ---- the controller ----

def controller():
    with Faulty() as s:
        s.start()
        s.give(6)
        s.await_runs(3)
        s.fail("slurmctld")
        s.give(3, by=("gogh",))
        until("it is noticed", lambda: not s.status()["up"])
        check(s.ask("GET", "/v1/jobs").status == 200, "it does not answer")
        wait_s(8)
        s.cure("slurmctld")
        s.converge("slurmctld is back")
        s.end_well()


def forgotten():
    """Slurm saves its state some seconds after a change: what is younger is gone with it."""
    with Faulty() as s:
        s.start()
        s.give(2, work_s=30)
        s.await_runs(2)
        until("Slurm has saved that", lambda: saved_s(s) > 0)
        s.give(1, work_s=1)  # a change, so that the next state comes some seconds from now
        at = saved_s(s)
        until("Slurm saves", lambda: saved_s(s) > at)
        names = s.give(3, by=("gogh",))
        until("Slurm has them", lambda: set(names) <= {j["name"] for j in s.squeue()})
        s.fail("slurmctld")
        s.cure("slurmctld")
        there = {j["name"] for j in s.squeue()}
        s.lost = set(names) - there
        print("    Slurm has forgotten %d of %d" % (len(s.lost), len(names)))
        until("they are there again", lambda: set(names) <= {j["name"] for j in s.squeue()})
        s.converge("Slurm has them again")
        check(s.status()["resubmits"] >= len(s.lost), "Slurm:", s.status())
        s.end_well()


def saved_s(s):
    try:
        return os.stat(os.path.join(s.cluster, "run/state/job_state")).st_mtime_ns
    except OSError:
        return 0


def halt(who, seconds):
    with Faulty() as s:
        s.start()
        s.give(6)
        s.await_runs(3)
        s.fail(who, "STOP")
        s.give(2, by=("gogh",))
        wait_s(seconds)
        check(s.ask("GET", "/v1/jobs").status == 200, "it does not answer")
        until("it is noticed", lambda: not s.status()["up"])
        s.cure(who, "CONT")
        s.converge(who + " goes on")
        s.end_well()


def controller_hung():
    halt("slurmctld", 20)


def munge_hung():
    halt("munged", 15)


def munge():
    with Faulty() as s:
        s.start()
        s.give(6)
        s.await_runs(3)
        s.fail("munged")
        s.give(2, by=("gogh",))
        until("it is noticed", lambda: not s.status()["up"])
        wait_s(8)
        s.cure("munged")
        s.converge("munged is back")
        s.end_well()


# ---- nodes ----

def node():
    with Faulty(options=["--conf", "SlurmdTimeout=15"]) as s:
        s.start()
        s.give(4, work_s=40)
        s.await_runs(4)
        lost = s.placed()[s.names[0]]
        theirs = [name for name, where in s.placed().items() if where == lost]
        began = time.monotonic()
        s.lose_node(lost)
        until("its jobs run elsewhere", lambda: all(
            s.placed().get(name, lost) != lost or s.named(name)["state"] == "finished"
            for name in theirs))
        print("    %s of the lost %s run elsewhere after %.1f s" %
              (", ".join(theirs), lost, time.monotonic() - began))
        s.converge("the node is given up")
        s.tool("start", lost)
        s.converge("the node is back")
        s.give(4, work_s=5, by=("gogh",), types=lost.split("-")[0], exclusive=True)
        until("GOGH uses it again", lambda: lost in s.placed().values())
        s.end_well()


# ---- our own processes ----

class Client(threading.Thread):
    """Submits one small job after the other, each until it is acknowledged; some must have a GPU
    for themselves, and go first: others have to move.
    """

    def __init__(self, s, seed, stop):
        super().__init__(daemon=True)
        self.s, self.stop, self.chance = s, stop, random.Random("client %s" % seed)
        self.failure = None

    def body(self, name):
        steps = self.chance.randint(30, 250)
        body = {"name": name, "argv": self.s.worker_argv(name, "w", steps=steps), "steps": steps,
                "cwd": self.s.path("work"), "stdout": self.s.path("work/%s.out" % name), **LM}
        if self.chance.random() < 0.4:
            body.update(exclusive=True, priority=5, types=["v100"])
        return body

    def submit(self, name):
        body = self.body(name)
        while True:
            answer = self.s.try_ask("POST", "/v1/jobs", body, {"Idempotency-Key": "key-" + name})
            if answer is not None and answer.status not in (429, 503):
                check(answer.status in (200, 201), name, "gave", answer.status, answer.text[:300])
                return
            time.sleep(0.05)

    def run(self):
        try:
            while not self.stop.is_set():
                name = "c%d" % self.s.n_jobs
                self.s.n_jobs += 1
                self.submit(name)
                self.s.names.append(name)
                self.stop.wait(self.chance.uniform(0.3, 1.5))
        except Exception as e:  # shown by the main thread
            self.failure = e


def seed_of_today():
    seed = int(os.environ.get("GOGH_SEED") or int.from_bytes(os.urandom(4), "little"))
    print("    seed", seed, flush=True)
    return seed


def strike(what, n, strikes):
    """So many strikes at random moments, while jobs come, move and end."""
    seed = seed_of_today()
    chance = random.Random(seed)
    with Faulty() as s:
        s.start()
        s.give(4, work_s=50 if IS_ALL else 8)
        s.await_runs(2)
        stop = threading.Event()
        client = Client(s, seed, stop)
        client.start()
        for _ in range(n):
            time.sleep(chance.uniform(0.05, 4))  # the moment is chance itself
            strikes(s)
            check(client.failure is None, "the client:", client.failure)
        stop.set()
        client.join(CEILING_S)
        check(client.failure is None and not client.is_alive(), "the client:", client.failure)
        s.converge(what)
        until_ended(s)
        moves = sum(j["moves"] for j in s.jobs())
        print("    %d times: %d jobs, %d moves" % (n, len(s.names), moves))
        check(moves > 0 or not IS_ALL, "nobody was moved")
        s.end_well()


def kill_daemon(s):
    s.kill()
    s.start()


def daemon():
    strike("goghd is back", 10 if IS_ALL else 3, kill_daemon)


def kill_driver(s):
    drivers = until("there is a driver", lambda: s.processes_called("gogh-slurm-driver"))
    before = s.status()["drivers"]
    for pid in drivers:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    until("there is another one", lambda: s.status()["drivers"] > before)


def driver():
    strike("the driver is back", 8 if IS_ALL else 3, kill_driver)


# ---- submits ----

def submit_with(text, after=None):
    with Faulty() as s:
        s.start([s.wrap("sbatch", text)])
        names = s.give(2, work_s=4, by=("gogh",))
        s.give(2, work_s=4, by=("sbatch",))
        until("each of them runs or has run", lambda: all(
            s.named(n)["state"] in ("running", "finished") for n in names))
        s.converge("sbatch is well again")
        if after:
            after(s)
        s.end_well()


ONCE = "mkdir \"$d/once\" 2>/dev/null || exec \"$real\" \"$@\"\n"


def submit_late():
    submit_with(ONCE + "\"$real\" \"$@\"\nsleep 60")


def submit_never():
    submit_with(ONCE + "sleep 60")


def until_cancelled(s):
    """The one that came too late is there, beside one of the same name, and goes again."""
    def states():
        by_name = {}
        for j in s.squeue():
            by_name.setdefault(j["name"], []).append(j["state"])
        return [found for found in by_name.values() if len(found) > 1]
    found = until("there are two", states)
    print("    two of Slurm's for one: " + ", ".join(found[0]))
    until("one of them is cancelled", lambda: "CANCELLED" in states()[0])


def submit_too_late():
    """Beyond the reach of the driver's kill: in another session, that has read the script."""
    submit_with(ONCE + """cat >"$d/script"
export d
setsid sh -c 'sleep 25; exec "$0" "$@" <"$d/script"' "$real" "$@" >/dev/null 2>&1 &
sleep 60""", until_cancelled)


CASES = {f.__name__: f for f in (controller, forgotten, controller_hung, munge, munge_hung, node,
                                 daemon, driver, submit_late, submit_never, submit_too_late)}
FEW = ("daemon", "submit_late")


def main():
    names = sys.argv[1:] or FEW
    for name in names:
        began = time.monotonic()
        print(name, flush=True)
        CASES[name]()
        print("    %.0f s" % (time.monotonic() - began), flush=True)


if __name__ == "__main__":
    need_slurm()
    sys.exit(run(main))
