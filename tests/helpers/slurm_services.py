#!/usr/bin/env python3
"""Services under Slurm: replicas are jobs of Slurm's, pinned to the planned GPU, as their owner.

A service of docs/examples/server.py gets ready, at the address of its replica's node, and answers
all of a load. A replica that is killed is replaced, and so is one that somebody cancels by Slurm's
commands; one that cannot live is tried ever later. A daemon that is killed with a replica under way
starts nothing twice, and a Slurm that dies takes nobody's place. What is held or cancelled leaves
nothing in Slurm's queue.
"""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from slurm import CEILING_S, PYTHON, Slurm, check, need_slurm, read_bytes, run, until

HELPERS = os.path.dirname(os.path.abspath(__file__))
LIVE = "pending,configuring,running,completing"

# What a replica does: note that it was started, where and as whom, then serve.
START = 'echo "$GOGH_SERVICE $GOGH_REPLICA $GOGH_PORT $GOGH_GPU_TYPE $SLURM_JOB_ID $SLURMD_NODENAME ' \
        '$GOGH_MAX_BATCH $GOGH_LATENCY_S $(id -un) $$" >>starts; exec "$@"'
FIELDS = ("service", "replica", "port", "type", "slurm_id", "node", "max_batch", "latency_s", "user",
          "pid")
Start = collections.namedtuple("Start", FIELDS)


class Cluster(Slurm):
    def serve(self, name, *words, server=(), user=None):
        """Submit a service of server.py."""
        argv = ["/bin/sh", "-c", START, "sh", PYTHON, "-B", self.path("bin/server.py"), "--drain",
                "0.5s", *server]
        return self.gogh("submit", "--service", "--name", name, "--workload", "resnet50-infer",
                         "--rate", "5", "--p99", "2s", "--max-batch", "16", "--load-time", "5s",
                         "--stdout", self.path("work/%s.out" % name), *words, "--", *argv, user=user)

    def starts(self, name):
        rows = [Start(*line.split(" ")) for line in read_bytes(self.path("work/starts")).decode()
                .splitlines()]
        return [r for r in rows if r.service == name]

    def endpoints_file(self, name):
        return self.path("services/%s.json" % name)

    def endpoints(self, name):
        text = read_bytes(self.endpoints_file(name)).decode()
        return json.loads(text)["endpoints"] if text else []

    def ready(self, name):
        return [e for e in self.endpoints(name) if e["state"] == "ready"]

    def until_ready(self, name, but=()):
        """All endpoints of a service, once one is ready that is none of these replicas."""
        until("%s is ready" % name,
              lambda: [e for e in self.ready(name) if e["replica"] not in but])
        return self.endpoints(name)

    def live(self, name):
        """What Slurm has of a service and its replicas."""
        return [j for j in self.squeue(LIVE) if j["name"].split(".")[0] == name]

    def until_left(self, name):
        until("Slurm has nothing of %s" % name, lambda: not self.live(name))


def answers(endpoint, path="/infer"):
    """The status of one request; 0: nobody answers."""
    url = "http://%s:%d%s" % (endpoint["host"], endpoint["port"], path)
    try:
        with urllib.request.urlopen(url, timeout=CEILING_S) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code
    except OSError:
        return 0


def check_start(s, name, user):
    """One Slurm job, its owner's, on the GPU that GOGH says, which was told what it must know."""
    replica = s.get("/v1/services/" + name)["replicas"][0]
    jobs = s.live(name)
    check([j["name"] for j in jobs] == [replica["name"]], "Slurm has one job of it:", jobs)
    check(jobs[0]["user"] == user and jobs[0]["nodes"] == replica["node"], jobs, replica)
    start = s.starts(name)[-1]
    told = Start(name, str(replica["replica"]), str(replica["port"]), replica["type"], jobs[0]["id"],
                 replica["node"], "16", "2", user, start.pid)
    check(start == told, "the replica was told", start, "and not", told)


def check_load(s, name):
    """Real requests, by the endpoints file; all are answered, and GOGH hears of them."""
    load = [sys.executable, "-B", os.path.join(HELPERS, "load.py"), "--endpoints",
            s.endpoints_file(name), "--schedule", "0:20,5:20", "--latency", "2"]
    done = subprocess.run(load, text=True, capture_output=True, timeout=CEILING_S, check=True)
    told = json.loads(done.stdout)
    check(told["requests"] > 50 and told["ok"] == told["requests"], "a load was not answered:", told)
    until("GOGH has heard of all",
          lambda: s.get("/v1/services/" + name)["requests"] >= told["requests"])


def check_crash(s, name):
    """A replica that dies is replaced; its number and port are not another's."""
    old = s.ready(name)[0]
    os.kill(int(s.starts(name)[-1].pid), signal.SIGKILL)
    new = s.until_ready(name, but=[old["replica"]])
    check(old["port"] not in [e["port"] for e in new] and answers(new[-1]) == 200, old, new)
    lost = s.job("%s.%d" % (name, old["replica"]))
    check(lost["state"] == "failed" and "signal 9" in lost["reason"], lost)


def check_scancel(s, name):
    old = s.ready(name)[0]["replica"]
    s.slurm("scancel", s.starts(name)[-1].slurm_id)
    s.until_ready(name, but=[old])
    check(s.job("%s.%d" % (name, old))["state"] == "failed", "a replica that was cancelled failed")


def check_kill(s, name):
    """The daemon dies while all is quiet: what serves goes on, and nobody hears of another host."""
    before, starts = s.endpoints(name), s.starts(name)
    s.kill()
    check(answers(before[0]) == 200, "without a daemon it serves on")
    s.start()
    until("GOGH has it back", lambda: s.get("/v1/services/" + name)["state"] == "serving")
    for _ in range(3):
        s.get("/v1/services/%s/endpoints" % name)
        check(s.endpoints(name) == before, "endpoints:", before, s.endpoints(name))
        n = s.status()["calls"]
        until("another look at Slurm", lambda n=n: s.status()["calls"] > n)
    check(s.starts(name) == starts, "nothing was started:", s.starts(name))


def check_kill_under_way(s, name):
    """It dies when Slurm has a replica that no daemon has seen running."""
    s.serve(name, user=s.users[0])
    until("Slurm has a replica", lambda: s.live(name))
    s.kill()
    s.start()
    s.until_ready(name)
    first = [r for r in s.starts(name) if r.replica == "0"]
    check(len(first) == 1 and len(s.live(name)) == 1, "one replica, started once:", first,
          s.live(name))


def check_probe(s, name):
    """A server that says nothing is asked, at its node's address."""
    s.serve(name, "--probe", "/healthz", server=["--load-time", "2s"], user=s.users[0])
    at = s.until_ready(name)[0]
    check(answers(at, "/healthz") == 200, at)


def submit_broken(s, name):
    s.gogh("submit", "--service", "--name", name, "--workload", "resnet50-infer", "--rate", "5",
           "--p99", "2s", "--", "/bin/false", user=s.users[0])


def check_back_off(s, name):
    """One that cannot live is tried again, ever later, and says so."""
    until("it failed three times", lambda: s.get("/v1/services/" + name)["failures"] >= 3)
    shown = s.get("/v1/services/" + name)
    check("replicas fail" in shown["warnings"] and len(s.live(name)) <= 1, shown, s.live(name))


def check_away(s, name):
    """Slurm dies and comes back: what serves goes on, and no other takes its place."""
    before, starts, since_s = s.endpoints(name), s.starts(name), time.time()
    saved = os.path.join(s.cluster, "run/state/job_state")
    until("Slurm has saved its jobs", lambda: os.stat(saved).st_mtime > since_s)
    s.tool("kill", "slurmctld")
    until("GOGH sees that", lambda: not s.status()["up"])
    check(answers(before[0]) == 200 and s.endpoints(name) == before, "without Slurm it serves on")
    s.tool("start", "slurmctld")
    until("GOGH sees that", lambda: s.status()["up"])
    check(s.endpoints(name) == before and s.starts(name) == starts, before, s.endpoints(name))


def check_hold(s, name):
    user = s.users[0]
    s.gogh("hold", name, user=user)
    s.until_left(name)
    check(s.endpoints(name) == [], "nobody is sent to it:", s.endpoints(name))
    check(b"done: " in read_bytes(s.path("work/%s.out" % name)), "it was told to end, and did")
    s.gogh("release", name, user=user)
    s.until_ready(name)


def check_once(s):
    """Nobody was started twice."""
    rows = [tuple(line.split(" ")[:2]) for line in read_bytes(s.path("work/starts")).decode()
            .splitlines()]
    check(len(rows) == len(set(rows)), "a replica was started twice:", rows)


def main():
    need_slurm()
    port = random.randrange(20000, 29000)  # not those of another test
    with Cluster("k80:1 v100:2", ["service_ports %d-%d" % (port, port + 999)]) as s:
        s.start()
        user = s.users[0]
        s.serve("web", user=user)
        at = s.until_ready("web")
        check(len(at) == 1 and at[0]["host"] == "127.0.0.1" and answers(at[0]) == 200,
              "it serves at its node's address, which is not its name:", at)
        check_start(s, "web", user)
        check_load(s, "web")
        check_crash(s, "web")
        check_scancel(s, "web")
        check_kill(s, "web")
        check_kill_under_way(s, "two")
        submit_broken(s, "broken")
        check_probe(s, "probed")
        check_hold(s, "probed")
        check_back_off(s, "broken")
        check_away(s, "web")
        names = ("web", "two", "probed", "broken")
        for name in names:
            s.gogh("cancel", name, user=user)
        for name in names:
            s.until_left(name)
            until("its file is gone", lambda n=name: not os.path.exists(s.endpoints_file(n)))
        check_once(s)
        until("nobody is left", lambda: not s.processes_called("server.py"))
        s.finish()


if __name__ == "__main__":
    sys.exit(run(main))
