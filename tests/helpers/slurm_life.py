#!/usr/bin/env python3
"""The life of jobs on a real Slurm cluster: all kinds of them, and what users and sites may do.

    slurm_life.py [NAME...]       these; else a few, or a whole life with GOGH_TEST_ALL=1

  life     one GPU a node, the gate in force: an array, a server, a gang on two nodes; cancelled,
           held and released by either side; wrong promises; drained nodes; other partitions
  device   several GPUs a node, a gres type for each: a gang on one node, two jobs on one device
  whole    several GPUs of one type a node: said, and nobody shares
  shadow   a partition that Slurm places itself: watched, and no changing call is made
  power    empty nodes are sent to sleep, and woken for a job
"""
import contextlib
import os
import subprocess
import sys
import time

from slurm import CEILING_S, IS_ALL, Slurm, as_user, check, need_slurm, run, until

SPEEDS = {"k80": 20, "v100": 40}
LM = {"workload": "LM", "batch": 20}
PROMISE = "workload=LM batch=20"
LINES = ["warmup_s 1"]
READS = ("scontrol --all show ", "scontrol show", "scontrol -d", "scontrol ping", "squeue", "sinfo")


@contextlib.contextmanager
def cluster(gpus="k80:2 v100:2", lines=(), start=True, **more):
    with Slurm(gpus, LINES + list(lines), **more) as s:
        table = {(t, "w"): speed for t, speed in SPEEDS.items()}
        table.update({(t, "w", "w"): 0.8 for t in SPEEDS})
        s.write_table(table)
        if start:
            s.start()
        yield s
        log = s.work_log()
        check(not [r for r in log if r["what"] == "twice"], "two at a time:", log)
        s.finish()


def step(text):
    print("    " + text, flush=True)


def until_is(s, name, state):
    """The job, once it is; one that came by sbatch is not known at first."""
    return until("%s is %s" % (name, state), lambda: next(
        (j for j in s.jobs() if (j["name"], j["state"]) == (name, state)), None))


def state_of(s, name):
    return s.named(name)["state"]


def slurm_id(s, name):
    return next(j["id"] for j in s.squeue() if j["name"] == name)


def runs_of(s, name):
    return [r for r in s.work_log() if r["name"] == name and r["what"] == "start"]


def show(s, number):
    """What Slurm says of one job: {"JobState": ...}"""
    words = s.slurm("scontrol", "-o", "show", "job", number).split()
    return dict(w.split("=", 1) for w in words if "=" in w)


def end(s, *names):
    for name in names:
        s.must("POST", "/v1/jobs/%s/cancel" % s.named(name)["id"])
        until_is(s, name, "cancelled")
    until("Slurm has ended them", lambda: not set(names) & set(s.placed()))


# ---- one GPU a node ----

def array(s):
    """Each task is a job of its own, with the promises of all."""
    argv = s.worker_argv("task-$SLURM_ARRAY_TASK_ID", "w", steps=60)
    script = "#!/bin/sh\nexec " + " ".join('"%s"' % a for a in argv) + "\n"
    user = s.users[0]
    number = s.slurm("sbatch", "--parsable", "-p", "gogh", "-J", "many", "--array=1-5",
                     "-o", s.path("work/many-%a.out"), "--comment=gogh: " + PROMISE + " steps=60",
                     user=user, text=script).strip()
    names = ["many-%s_%d" % (number, i) for i in range(1, 6)]

    def found():
        return {j["name"]: j for j in s.jobs() if j["name"].startswith("many")}
    until("each task is a job", lambda: len(found()) == 5)
    check(sorted(found()) == names, "they are called", sorted(found()))
    until("all have finished", lambda: all(j["state"] == "finished" for j in found().values()))
    for i in range(1, 6):
        check(len(runs_of(s, "task-%d" % i)) >= 1, "task", i, "did not run")
    check(all(j["owner"] == user and j["steps_done"] == 60 for j in found().values()), found())
    step("five tasks of an array were five jobs")


def server(s):
    """A rate for some time; what came of it."""
    s.submit_worker("server", "w", rate=10, duration="8s", user=s.users[0], **LM)
    until_is(s, "server", "running")
    until("it serves as promised", lambda: abs((s.named("server")["speed"] or 0) - 10) < 2)
    job = until_is(s, "server", "finished")
    took_s = job["ended_s"] - job["started_s"]
    check(took_s > 7, "it served for", took_s, "s")
    check(show(s, slurm_id(s, "server"))["JobState"] in ("CANCELLED", "COMPLETED"), "in Slurm")
    step("a server was ended after %.1f s of 8" % took_s)


def gang_of_nodes(s):
    s.submit_worker("gang", "w", steps=300, gpus=2, nodes=2, user=s.users[0], **LM)
    job = until_is(s, "gang", "running")
    row = until("it works", lambda: runs_of(s, "gang"))[-1]
    check(len(row["places"]) == 2 and sorted(row["places"]) == sorted(job["gpus"]),
          "it is on", row["places"], "and should be on", job["gpus"])
    check(len({p.split("-")[0] for p in row["places"]}) == 1, "of two types:", row["places"])
    until_is(s, "gang", "finished")
    s.sbatch_worker("gang-b", "w", steps=100, promise=PROMISE, user=s.users[-1],
                    options=["--nodes=2", "--gres=gpu:1"])
    until_is(s, "gang-b", "finished")
    check(len(runs_of(s, "gang-b")[-1]["places"]) == 2, "by sbatch:", runs_of(s, "gang-b"))
    step("gangs on two nodes, by gogh submit and by sbatch")


def cancelled(s):
    user = s.users[0]
    for name, by in (("c-gogh", "gogh"), ("c-scancel", "scancel")):
        for way in ("run", "wait"):
            one = "%s-%s" % (name, way)
            hold = {"hold": True} if way == "wait" else {}
            s.submit_worker(one, "w", steps=100000, user=user, **LM, **hold)
            until_is(s, one, "running" if way == "run" else "held")
            until("Slurm has it", lambda one=one: [j for j in s.squeue() if j["name"] == one])
            if by == "gogh":
                s.gogh("cancel", one, user=user)
            else:
                s.slurm("scancel", slurm_id(s, one), user=user)
            until_is(s, one, "cancelled")
            until("it is in Slurm, too", lambda one=one: show(s, slurm_id(s, one))["JobState"] ==
                  "CANCELLED")
    check("c-gogh-wait" not in {r["name"] for r in s.work_log()}, "a held one ran")
    step("cancelled by either side, waiting and running")


def held_by_gogh(s):
    user = s.users[0]
    s.submit_worker("h", "w", steps=100000, user=user, hold=True, **LM)
    number = until("Slurm has it", lambda: [j["id"] for j in s.squeue() if j["name"] == "h"])[0]
    until("it is held in Slurm", lambda: show(s, number)["Priority"] == "0")
    s.gogh("release", "h", user=user)
    until_is(s, "h", "running")
    s.gogh("hold", "h", user=user, status=1)  # only those that wait
    end(s, "h")
    for i in range(4):  # all GPUs are taken
        s.submit_worker("full-%d" % i, "w", steps=100000, user=user, exclusive=True, **LM)
    until("they run", lambda: len(s.placed()) == 4)
    s.submit_worker("h2", "w", steps=100, user=user, exclusive=True, **LM)
    s.gogh("hold", "h2", user=user)
    end(s, "full-0", "full-1")
    until("GOGH has planned anew", lambda: s.status()["under_way"] == 0)
    check(state_of(s, "h2") == "held" and not runs_of(s, "h2"), "it runs")
    s.gogh("release", "h2", user=user)
    until_is(s, "h2", "finished")
    end(s, "full-2", "full-3")
    step("held and released by gogh")


def scontrol_as(s, user, *words):
    done = subprocess.run(["scontrol"] + [str(w) for w in words], env=s.environment(user),
                          text=True, capture_output=True, timeout=CEILING_S, **as_user(user))
    return done.returncode, done.stdout + done.stderr


def held_by_slurm(s):
    user = s.users[0]
    s.sbatch_worker("u", "w", steps=100000, promise=PROMISE, user=user, options=["--hold"])
    until_is(s, "u", "held")
    s.gogh("release", "u", user=user)
    until_is(s, "u", "running")
    until("it works", lambda: runs_of(s, "u"))
    number = slurm_id(s, "u")
    rc, said = scontrol_as(s, user, "hold", number)  # of one that runs: it goes on
    check(rc == 0, "a user's hold:", said)
    check("u" in s.placed(), "it has gone")
    rc, said = scontrol_as(s, user, "requeue", number)
    check(rc == 0, "a user's requeue:", said)
    until_is(s, "u", "held")
    check("u" not in s.placed() and len(runs_of(s, "u")) == 1, "it runs:", s.placed())
    if user != "root" and os.geteuid() == 0:
        rc, said = scontrol_as(s, user, "release", number)
        check(rc != 0, "a user may release it past GOGH:", said)
    s.gogh("release", "u", user=user)
    until("it works again", lambda: len(runs_of(s, "u")) == 2)
    end(s, "u")
    step("sbatch --hold, scontrol hold and requeue were respected")


def wrong_promises(s):
    user = s.users[0]
    said = s.sbatch("bad", ["/bin/true"], user=user, comment="gogh: min-throughput=fast", status=1)
    check("min-throughput" in said, "says only", said)
    step("told: " + next(line for line in said.splitlines() if "min-throughput" in line))
    said = s.sbatch("bad", ["/bin/true"], user=user, lines=["#GOGH worklaod=resnet50"], status=1)
    check("worklaod" in said, "says only", said)
    step("told: " + next(line for line in said.splitlines() if "worklaod" in line))
    number = s.sbatch("far", ["/bin/true"], user=user, comment="gogh: types=h100")
    until("its comment says why", lambda: "gogh1 refused:" in
          s.slurm("scontrol", "show", "job", number))
    text = s.slurm("scontrol", "show", "job", number)
    step("told: " + next(x for x in text.splitlines() if "refused" in x).strip())
    check("h100" in text, "says only", text)
    check(show(s, number)["JobState"] == "PENDING", "it runs")
    s.slurm("scancel", number, user=user)
    said = s.gogh("submit", "--workload", "LM", "--batch", "20", "--steps", "10", "--types", "h100",
                  "--", "/bin/true", user=user, status=1)
    check("h100" in said, "says only", said)


def drained(s):
    """A node that an operator takes away gets nothing, whatever it costs; later it does again."""
    s.slurm("scontrol", "update", "nodename=v100-0", "state=drain", "reason=fan")
    until("GOGH knows", lambda: {n["name"]: n["state"] for n in
                                 s.get("/v1/nodes")["nodes"]}["v100-0"] == "drained")
    for i in range(3):
        s.submit_worker("d%d" % i, "w", steps=100000, types="v100", user=s.users[0], **LM)
    until("two run", lambda: len(s.placed()) == 2)
    check(set(s.placed().values()) == {"v100-1"}, "they are on", s.placed())
    s.slurm("scontrol", "update", "nodename=v100-0", "state=resume")
    until("the third has come", lambda: len(s.placed()) == 3)
    check("v100-0" in s.placed().values(), "they are on", s.placed())
    end(s, "d0", "d1", "d2")
    step("a drained node was avoided, and used when it was back")


def other_partition(s):
    number = s.slurm("sbatch", "--parsable", "-p", "debug", "-w", "v100-0", "--gres=gpu:1", "-J",
                     "theirs", "-o", "/dev/null", user=s.users[-1],
                     text="#!/bin/sh\nsleep 600\n").strip()
    until("it runs", lambda: s.placed().get("theirs") == "v100-0")
    for i in range(3):
        s.submit_worker("o%d" % i, "w", steps=100000, types="v100", user=s.users[0], **LM)
    until("two run", lambda: len(s.placed()) == 3)
    ours = {name: node for name, node in s.placed().items() if name != "theirs"}
    check(set(ours.values()) == {"v100-1"}, "ours are on", ours)
    check("theirs" not in {j["name"] for j in s.jobs()}, "GOGH took it in")
    check("AdminComment" not in show(s, number), "GOGH has left a note:", show(s, number))
    s.slurm("scancel", number)
    until("the third has come", lambda: len(s.placed()) == 3 and "theirs" not in s.placed())
    end(s, "o0", "o1", "o2")
    step("a job of another partition was left alone, and its GPU to it")


def node_cpus(s):
    """Nodes have four CPUs: who needs more than is left of them is not placed there, and told so."""
    s.submit_worker("c0", "w", steps=100000, types="v100", cpus=3, user=s.users[0], **LM)
    s.sbatch_worker("c1", "w", steps=100000, promise=PROMISE + " types=v100", user=s.users[-1],
                    options=["--cpus-per-task=3"])
    until("two run", lambda: len(s.placed()) == 2)
    check(set(s.placed().values()) == {"v100-0", "v100-1"}, "they are on", s.placed())
    s.submit_worker("c2", "w", steps=100000, types="v100", cpus=2, user=s.users[0], **LM)

    def verdicts():
        job = next((j for j in s.jobs() if j["name"] == "c2"), None)
        answer = job and s.ask("GET", "/v1/jobs/%s/explain" % job["id"])
        return {c["verdict"] for c in answer.body["candidates"]} if answer and answer.status == 200 \
            else ()
    until("the rule is named", lambda: "engine: node CPUs" in verdicts())
    check(len(s.placed()) == 2, "it was placed:", s.placed())
    end(s, "c0")
    until("it has come", lambda: "c2" in s.placed())
    check(s.metric("gogh_orders_refused_total") == 0, "an order was refused")
    end(s, "c1", "c2")
    step("CPUs of nodes are not given twice")


STEPS = (array, server, gang_of_nodes, cancelled, held_by_gogh, held_by_slurm, wrong_promises,
         drained, other_partition, node_cpus)


def life(names=()):
    with cluster() as s:
        for f in STEPS:
            if not names or f.__name__ in names:
                f(s)


# ---- other layouts ----

def device():
    with cluster("v100:4", layout="device", options=["--per-node", "4"]) as s:
        s.submit_worker("gang", "w", steps=400, gpus=2, one_node=True, user=s.users[0], **LM)
        s.sbatch_worker("gang-b", "w", steps=400, promise=PROMISE, user=s.users[-1],
                        options=["--gres=gpu:2"])
        for name in ("gang", "gang-b"):
            job = until_is(s, name, "running")
            row = until("it works", lambda name=name: runs_of(s, name))[-1]
            check(sorted(row["places"]) == sorted(job["gpus"]) and len(row["places"]) == 2, name,
                  "is on", row["places"], "and should be on", job["gpus"])
        for name in ("gang", "gang-b"):
            until_is(s, name, "finished")
        names = ["dev%d" % i for i in range(6)]
        for name in names:
            s.submit_worker(name, "w", steps=200, user=s.users[0], **LM)
        until("all six run on four GPUs", lambda: len(s.placed()) == 6)
        for name in names:
            row = until("it works", lambda name=name: runs_of(s, name))[-1]
            job = s.named(name)
            check(job["state"] != "running" or row["places"] == job["gpus"], name, "is on",
                  row["places"], "and should be on", job["gpus"])
        for name in names:
            until_is(s, name, "finished")
        check(any(r["beside"] for r in s.seen()), "nobody shared a GPU")
        step("gangs on one node, and neighbours on one device")


def whole():
    with cluster("v100:4", layout="whole", options=["--per-node", "4"]) as s:
        check("nobody shares there" in s.log(), "it is not said")
        names = ["w%d" % i for i in range(6)]
        for name in names:
            s.submit_worker(name, "w", steps=200, user=s.users[0], **LM)
        most = [0]

        def all_ended():
            most[0] = max(most[0], len(s.placed()))
            return all(state_of(s, n) == "finished" for n in names)
        until("all have finished", all_ended)
        check(1 < most[0] <= 4, most[0], "at a time on four GPUs")
        check(not [r for r in s.seen() if r["beside"]], "somebody shared a GPU")
        types = {g["type"] for g in s.get("/v1/gpus")["gpus"]}
        check(types == {"v100-16-whole"}, "their type is", types)
        step("%d at a time on four GPUs that cannot be told apart, nobody shared" % most[0])


# ---- shadow ----

def log_calls(s):
    """Slurm's commands, each of which writes its words down first."""
    folder = s.path("commands")
    os.mkdir(folder, 0o755)
    open(s.path("calls"), "w").close()
    for command in ("sbatch", "squeue", "scontrol", "sinfo", "scancel"):
        real = s.slurm("sh", "-c", "command -v " + command).strip()
        path = os.path.join(folder, command)
        with open(path, "w") as f:
            f.write('#!/bin/sh\necho "%s $*" >>%s\nexec %s "$@"\n' %
                    (command, s.path("calls"), real))
        os.chmod(path, 0o755)
    return "slurm_commands " + folder


def shadow():
    with cluster(lines=["mode shadow"], gate=False, start=False) as s:
        s.start([log_calls(s)])
        user = s.users[0]
        for i in range(3):
            s.sbatch("t%d" % i, s.worker_argv("t%d" % i, "w", steps=300), user=user,
                     comment="gogh: " + PROMISE + " steps=300", options=["--gres=shard:1"])
        until("Slurm runs them", lambda: len(s.placed()) == 3)
        until("GOGH sees where they run", lambda: {j["name"]: j["gpus"] for j in s.jobs()
                                                   if j["state"] == "running"} ==
              {name: [node + "/0"] for name, node in s.placed().items()} != {})
        s.sbatch("gone", s.worker_argv("gone", "w", steps=100000), user=user,
                 comment="gogh: " + PROMISE, options=["--gres=shard:1"])
        until_is(s, "gone", "running")
        s.slurm("scancel", slurm_id(s, "gone"), user=user)
        until_is(s, "gone", "cancelled")
        for i in range(3):
            until_is(s, "t%d" % i, "finished")
        until("it has planned beside", lambda: s.gogh("shadow"))
        with open(s.path("calls")) as f:
            calls = f.read().splitlines()
        bad = [c for c in calls if not c.startswith(READS)]
        check(len(calls) > 5 and not bad, "changing calls:", bad[:5], "of", len(calls))
        check("gogh" not in "".join(line for line in s.slurm("scontrol", "show", "job").splitlines()
                                    if "AdminComment" in line), "it left a note")
        for r in s.work_log():
            check(r["run"] == 0, "it was requeued:", r)
        step("%d calls, all of them to read; jobs were watched from start to end" % len(calls))


# ---- power ----

def node_states(s):
    lines = s.slurm("sinfo", "-hN", "-p", "gogh", "-o", "%N %T").splitlines()
    return dict(line.split() for line in lines)


def asleep(s):
    return sorted(n for n, state in node_states(s).items() if state.endswith("~"))


def power():
    lines = ["slurm_sleep yes", "set sleep_after_s 3", "set wake_s 5"]
    with cluster("v100:3", lines=lines, options=["--power-save"]) as s:
        s.submit_worker("a", "w", steps=100000, user=s.users[0], **LM)
        here = until("one runs", lambda: s.placed().get("a"))
        until("the others sleep", lambda: asleep(s) == sorted(set(node_states(s)) - {here}))
        check(s.placed() == {"a": here}, "the one that ran does not:", s.placed())
        began = time.monotonic()
        s.submit_worker("b", "w", steps=100000, exclusive=True, user=s.users[0], **LM)
        there = until("a node is woken for another", lambda: s.placed().get("b"))
        took_s = time.monotonic() - began
        check(there != here or s.placed().get("a") != here, "it is not alone:", s.placed())
        step("the empty nodes slept; one was woken for a job, which ran after %.1f s" % took_s)
        end(s, "a", "b")


CASES = {f.__name__: f for f in (life, device, whole, shadow, power)}
FEW = () if IS_ALL else ("array", "server", "held_by_slurm", "wrong_promises", "node_cpus")


def main():
    asked = [(name, ()) if name in CASES else ("life", (name,)) for name in sys.argv[1:]]
    for name, parts in asked or [("life", FEW)]:
        began = time.monotonic()
        print(name, flush=True)
        CASES[name](*([parts] if parts else []))
        print("    %.0f s" % (time.monotonic() - began), flush=True)


if __name__ == "__main__":
    need_slurm()
    sys.exit(run(main))
