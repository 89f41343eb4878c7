#!/usr/bin/env python3
"""Three services of the example server on a box of six GPUs, under a load that changes.

While requests come, one service is moved to faster GPUs and some of it back, the node is drained
and resumed, a replica is killed, and the daemon is killed twice, once while a replica starts.
Judged is what those who asked saw (load.py): nobody is refused but by the replica that was killed,
until it could be known; promises are kept in every window but that one's. Where the load itself
could not keep pace, the machine was too busy for latencies to mean anything: said, and not judged.
Every server writes down its start, so that nothing that is started twice goes unseen; arrivals are
on disk whatever happened.

A minute of load; in make test-all five.
"""
import collections
import contextlib
import csv
import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from daemon import Box, CEILING_S, Failure, IS_ALL, check, read_bytes, run, until
import load

SERVER = os.path.join(os.environ["SRC"], "docs", "examples", "server.py")
LENGTH_S = 300 if IS_ALL else 50
WINDOW_S = 30.0
ENDLESS_S = 7200  # loads are told to end
LATE_MOST = 0.01

Service = collections.namedtuple("Service", "name workload rate p99_s types schedule")
Start = collections.namedtuple("Start", "service replica job run port pid")

# Rates are what is promised, and with it how many replicas there are; what really comes is less,
# since a test shares its machine. "text" needs both p100, "web" can do with one GPU.
SERVICES = (
    Service("web", "resnet50-infer", 20, 2.0, "k80,v100", ((0, 6), (7, 6), (7, 24), (14, 24))),
    Service("text", "bert-base-infer", 60, 2.0, "p100", ((0, 8), (10, 25), (20, 8))),
    Service("talk", "whisper-small", 10, 2.0, "k80", ((0, 4), (12, 12), (12, 4))),
)
BOTH_V100, ONE_V100, BOTH_K80 = 300, 150, 50  # requests/s that so many hold, and no fewer


def schedule_of(service):
    """Its pattern again and again, as load.py wants it."""
    span_s = service.schedule[-1][0]
    return ",".join("%d:%d" % (from_s + s, rate) for from_s in range(0, ENDLESS_S, span_s)
                    for s, rate in service.schedule)


class Load:
    """Requests for a service, until told to end."""

    def __init__(self, box, service, seed):
        self.service = service
        self.csv, self.summary = box.path(service.name + ".csv"), box.path(service.name + ".sum")
        self.rows, self.began_s, self.ended_s = [], None, None
        self.process = subprocess.Popen(
            [sys.executable, "-B", load.__file__, "--endpoints", file_of(box, service.name),
             "--schedule", schedule_of(service), "--latency", str(service.p99_s), "--seed",
             str(seed), "--timeout", str(CEILING_S), "--csv", self.csv, "--summary", self.summary],
            stdin=subprocess.DEVNULL)

    def end(self):
        """Its rows are there then."""
        self.process.terminate()
        try:
            status = self.process.wait(CEILING_S)
        except subprocess.TimeoutExpired:
            raise Failure("the load does not end") from None
        check(status == 0, "the load ended with", status)
        self.ended_s = time.time()
        with open(self.summary, encoding="ascii") as f:
            self.began_s = json.load(f)["began"]
        kinds = (float, float, float, str, int, int, int, int)
        with open(self.csv, encoding="ascii", newline="") as f:
            self.rows = [load.Row(*(kind(v) for kind, v in zip(kinds, words)))
                         for words in list(csv.reader(f))[1:]]

    def sent_s(self, row):
        return self.began_s + row.at_s + row.lag_s


# ---- what is there ----

def ports_of_own():
    """A hundred that other tests beside this one hardly have."""
    first = 20000 + 100 * (os.getpid() % 100)
    return "service_ports %d-%d" % (first, first + 99)


def write_script(box):
    """Servers that write down their start, and then are the example's."""
    with open(box.path("serve.sh"), "w", encoding="ascii") as f:
        f.write('echo "$GOGH_SERVICE $GOGH_REPLICA $GOGH_JOB $GOGH_RUN $GOGH_PORT $$" >>%s\n'
                'exec %s -B %s --max-batch 16 --speed k80=3,p100=1.5 --load-time 0.5\n' %
                (box.path("starts"), sys.executable, SERVER))


def starts(box):
    rows = [line.split(" ") for line in read_bytes(box.path("starts")).decode().splitlines()]
    return [Start(r[0], *map(int, r[1:])) for r in rows]


def file_of(box, name):
    return box.path("services/%s.json" % name)


def told(box, name):
    """What balancers read, which is whole whenever it is read."""
    with open(file_of(box, name), encoding="ascii") as f:
        return json.load(f)


def ready(box, name):
    """Numbers of its replicas that get requests."""
    return {e["replica"] for e in told(box, name)["endpoints"] if e["weight"] > 0}


def n_served(box):
    """Requests that came to all servers that are published."""
    n = 0
    for service in SERVICES:
        for e in told(box, service.name)["endpoints"]:
            c = http.client.HTTPConnection(e["host"], e["port"], timeout=CEILING_S)
            with contextlib.closing(c), contextlib.suppress(OSError, http.client.HTTPException):
                c.request("GET", "/stats")
                n += json.loads(c.getresponse().read())["requests"]
    return n


def submit(box, service):
    box.cli("submit", "--service", "--name", service.name, "--workload", service.workload, "--rate",
            service.rate, "--p99", "%gs" % service.p99_s, "--types", service.types, "--max-batch",
            16, "--load-time", "2s", "--max-gpus", 3, "--", "/bin/sh", box.path("serve.sh"))


def holds(box, name):
    s = box.get("/v1/services/" + name)
    return s["starting"] == s["draining"] == 0 and s["capacity"] >= s["demand"]


def await_held(box, *names):
    for name in names:
        until(name + " holds its rate", lambda n=name: holds(box, n))


def n_arrived(box):
    """What the store keeps of arrivals: {service: requests} (docs/formats/arrivals.md)."""
    with contextlib.closing(sqlite3.connect(box.path("gogh.db"))) as db:
        rows = db.execute("SELECT service, bytes FROM arrivals WHERE hour_s >= 0").fetchall()
    found = collections.Counter()
    for service, row in rows:
        found[service] += sum_of_bins(iter(row))
    return found


def varint(row):
    value = shift = 0
    for byte in row:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value


def sum_of_bins(row):
    version, _, _, _, has_lengths = next(row), varint(row), varint(row), varint(row), next(row)
    check((version, has_lengths) == (1, 0), "arrivals of another form:", version, has_lengths)
    n = 0
    for byte in row:
        if byte == 128:
            varint(row)
        n += varint(row) if byte == 128 else byte % 8 + 1
    return n


# ---- what happens ----

class Day:
    """A box under load, and what was done to it."""

    def __init__(self, box):
        self.box = box
        self.loads = []
        self.killed = {}  # port: (service, when, when those who ask had heard of it)
        self.versions = collections.defaultdict(int)
        self.began = self.started_s = None

    def begin(self):
        write_script(self.box)
        for service in SERVICES:
            submit(self.box, service)
        await_held(self.box, "web", "text", "talk")
        check(len(ready(self.box, "text")) == 2, "wants two replicas:", told(self.box, "text"))
        self.loads = [Load(self.box, s, seed) for seed, s in enumerate(SERVICES, 1)]
        self.began = time.monotonic()

    def start_of(self, name, replica):
        return next(s for s in starts(self.box) if s[:2] == (name, replica))

    def await_part(self, part):
        """Until that part of the time is over."""
        end = self.began + part * LENGTH_S
        until("the time comes", lambda: time.monotonic() >= end)

    def await_requests(self, n):
        before = n_served(self.box)
        until("%d more requests are served" % n, lambda: n_served(self.box) >= before + n)

    def look(self):
        """Versions only grow, weights are shares, a port is one replica's, and the API agrees."""
        ports = []
        for s in SERVICES:
            now = told(self.box, s.name)
            check(now["version"] >= self.versions[s.name], "a version fell:", now)
            self.versions[s.name] = now["version"]
            weights = [e["weight"] for e in now["endpoints"]]
            check(not any(weights) or abs(sum(weights) - 1) < 1e-3, "weights:", now)
            ports += [e["port"] for e in now["endpoints"]]
            until("the API says the same", lambda n=s.name: told(self.box, n) ==
                  self.box.get("/v1/services/%s/endpoints" % n))
        check(len(ports) == len(set(ports)), "a port is given twice:", ports)

    def move(self):
        """To where more is held, and some of it back: made before it breaks."""
        before = ready(self.box, "web")
        self.box.cli("scale", "web", "--rate", BOTH_V100)
        until("another one serves", lambda: ready(self.box, "web") - before)
        self.look()
        await_held(self.box, "web")
        self.box.cli("scale", "web", "--rate", ONE_V100)
        until("one is enough", lambda: len(ready(self.box, "web")) == 1)
        self.look()

    def kill_daemon(self):
        """Nobody who asks needs it."""
        self.box.kill()
        self.await_requests(30)
        self.box.start()
        self.started_s = time.time()
        self.await_requests(10)
        self.look()

    def kill_daemon_at_start(self):
        """While a replica is on its way, which is not started again."""
        n = len(starts(self.box))
        self.box.cli("scale", "talk", "--rate", BOTH_K80)
        until("another one is started", lambda: len(starts(self.box)) > n)
        self.kill_daemon()
        await_held(self.box, "talk")

    def drain_node(self):
        """There is no other: replicas stay, and serve."""
        await_held(self.box, "web", "text", "talk")
        before = {s.name: ready(self.box, s.name) for s in SERVICES}
        self.box.cli("nodes", "drain", "box")
        self.await_requests(60)
        for s in SERVICES:
            check(ready(self.box, s.name) == before[s.name], "drained, with no other node:",
                  told(self.box, s.name), before[s.name])
        self.box.cli("nodes", "resume", "box")
        self.await_requests(10)
        self.look()

    def kill_replica(self):
        """Others have its requests until it is replaced."""
        before = ready(self.box, "text")
        victim = self.start_of("text", max(before))
        since_s = time.time()
        os.kill(victim.pid, signal.SIGKILL)
        until("the file is without it", lambda: victim.replica not in ready(self.box, "text"))
        self.killed[victim.port] = "text", since_s, time.time()
        check(ready(self.box, "text"), "the other one serves on:", told(self.box, "text"))
        until("another one serves", lambda: ready(self.box, "text") - before)
        await_held(self.box, "text")
        self.look()

    def kill_both(self):
        """A replica that dies while nobody looks, on a node that is drained: known at the restart,
        and replaced when the node is back.
        """
        before = ready(self.box, "text")
        self.box.cli("nodes", "drain", "box")
        self.box.kill()
        os.kill(self.start_of("text", max(before)).pid, signal.SIGKILL)
        self.box.start()
        until("it is known", lambda: ready(self.box, "text") == {min(before)})
        self.box.cli("nodes", "resume", "box")
        until("another one serves", lambda: ready(self.box, "text") - before)
        await_held(self.box, "text")
        self.look()

    def end_loads(self):
        self.await_part(1)
        for one in self.loads:
            one.end()

    def end(self):
        for service in SERVICES:
            self.box.cli("cancel", service.name)
        until("no replica is left", lambda: not self.box.processes_called(SERVER))
        until("no file is left", lambda: not os.listdir(self.box.path("services")))
        self.box.finish()


# ---- what is judged ----

def judge_arrivals(day):
    """They are on disk when the daemon has ended, and still there after the next one has."""
    box, ids = day.box, {}
    for one in day.loads:
        name = one.service.name
        until(name + " has told all", lambda o=one: box.get("/v1/services/" + o.service.name)
              ["heard_s"] > o.ended_s + 1)
        ids[name] = box.get("/v1/services/" + name)["id"]
    box.stop()
    kept = n_arrived(box)
    for one in day.loads:
        n = kept[ids[one.service.name]]
        n_since = sum(one.sent_s(r) > day.started_s for r in one.rows)
        check(n_since <= n <= len(one.rows), one.service.name, "has", n, "arrivals on disk of",
              len(one.rows), "and since the last start", n_since)
    box.start()
    began_s = time.time()
    for one in day.loads:
        until("it is heard again", lambda o=one: (box.get("/v1/services/" + o.service.name)
              ["heard_s"] or 0) > began_s)
    box.stop()
    check(n_arrived(box) == kept, "arrivals were", kept, "and after a restart", n_arrived(box))
    box.start()


def is_lost_by_kill(day, one, row):
    """Whoever asked the one that was killed, before it could be known."""
    name, _, heard_s = day.killed.get(row.port, (None, 0, 0))
    return name == one.service.name and one.sent_s(row) <= heard_s


def is_of_kill(day, one, window):
    from_s, to_s = one.began_s + window["from_s"], one.began_s + window["to_s"]
    return any(name == one.service.name and from_s <= heard_s and since_s <= to_s
               for name, since_s, heard_s in day.killed.values())


def judge_load(day, one):
    for w in load.windows_of(one.rows, one.service.p99_s, WINDOW_S):
        word = "the kill's" if is_of_kill(day, one, w) else \
            "not judged: the load lags" if w["is_lagging"] else ""
        print("%-4s %3.0f-%3.0f s: %4d requests, p99 %.3f s, %.2f %% late, %d refused, %d failed"
              " %s" % (one.service.name, w["from_s"], w["to_s"], w["requests"], w["p99_s"] or 0,
                       100 * w["late"] / w["requests"], w["refused"], w["failed"], word))
        check(word or w["late"] <= LATE_MOST * w["requests"], "a promise was not kept:", w)
    lost = [r for r in one.rows if r.outcome != "ok" and not is_lost_by_kill(day, one, r)]
    check(one.rows and not lost, one.service.name, "lost", len(lost), "requests:", lost[:5])


def judge_starts(box):
    """Each replica was started once, by the word of the servers and of the journal."""
    rows = starts(box)
    replicas = [(s.service, s.replica) for s in rows]
    check(len(set(replicas)) == len(rows) and not any(s.run for s in rows), "started twice:", rows)
    check(len({s.port for s in rows}) == len(rows), "a port was given again:", rows)
    with contextlib.closing(sqlite3.connect(box.path("gogh.db"))) as db:
        found = db.execute("SELECT json_extract(body, '$.job') FROM events"
                           " WHERE kind = 'job_started'").fetchall()
    check(sorted(job for job, in found) == sorted(s.job for s in rows), "the journal has started",
          found, "and the servers say", rows)


def main():
    with Box("k80:2 p100:2 v100:2", ["decide_s 0.1", ports_of_own()]) as box:
        box.start()
        day = Day(box)
        day.begin()
        day.await_part(0.1)
        day.move()
        day.await_part(0.3)
        day.kill_daemon()
        day.await_part(0.45)
        day.drain_node()
        day.await_part(0.6)
        day.kill_replica()
        day.await_part(0.8)
        day.kill_daemon_at_start()
        day.end_loads()
        for one in day.loads:
            judge_load(day, one)
        judge_arrivals(day)
        day.kill_both()
        day.end()
        judge_starts(box)


if __name__ == "__main__":
    sys.exit(run(main))
