#!/usr/bin/env python3
"""The example server, the example balancer and the load generator, against each other.

Requests are batched, health tells loading and draining from serving, a replica that is told to end
loses nobody's request, and what is refused or breaks is counted as such.
"""
import contextlib
import http.client
import importlib.util
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from unittest import mock

from daemon import CEILING_S, Failure, check, read_bytes, run, until
import load

SRC = os.environ["SRC"]
EXAMPLES = os.path.join(SRC, "docs", "examples")


class Program:
    """A program that says "listening on PORT"; its output is in a file."""

    def __init__(self, place, name, *words, env=None):
        self.log = tempfile.NamedTemporaryFile(dir=place, delete=False).name
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-B", os.path.join(EXAMPLES, name), "--port", "0",
                 *map(str, words)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=dict(os.environ, **(env or {})))
        self.port = until("it listens", self.find_port)

    def find_port(self):
        check(self.process.poll() is None, "it ended:", self.said())
        for line in self.said().splitlines(keepends=True):
            if line.startswith("listening on ") and line.endswith("\n"):
                return int(line.split()[2])
        return None

    def said(self):
        return read_bytes(self.log).decode()

    def ask(self, path, method="GET"):
        """(status, object)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CEILING_S)
        try:
            c.request(method, path)
            answer = c.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            c.close()

    def is_ready(self):
        return self.ask("/healthz")[0] == 200

    def n_served(self):
        return self.ask("/stats")[1]["requests"]

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self):
        """Its status, when it has ended."""
        try:
            return self.process.wait(CEILING_S)
        except subprocess.TimeoutExpired:
            raise Failure("it does not end") from None

    def drained(self):
        """(requests, batches) that it has done when it ended well."""
        check(self.ended() == 0, "told to end, it ended with", self.process.returncode, self.said())
        words = self.said().splitlines()[-1].split()
        check(words[0] == "done:", "its last words are", words)
        return int(words[1]), int(words[4])


class Place:
    """A directory, and programs that end with it."""

    def __init__(self):
        self.programs = []
        self.version = 0

    def __enter__(self):
        self.held = tempfile.TemporaryDirectory(prefix="gogh-")
        self.dir = self.held.name
        return self

    def __exit__(self, *_):
        for p in self.programs:
            with contextlib.suppress(ProcessLookupError):
                p.kill()
            p.wait()
        self.held.cleanup()

    def path(self, name):
        return os.path.join(self.dir, name)

    def server(self, *words, env=None):
        p = Program(self.dir, "server.py", "--drain", "2s", *words, env=env)
        self.programs.append(p.process)
        return p

    def balancer(self):
        p = Program(self.dir, "balance.py", self.path("endpoints"))
        self.programs.append(p.process)
        return p

    def publish(self, weights, name="endpoints"):
        """The file of {port: weight}, replaced at once; 0: it is draining."""
        self.version += 1
        rows = [{"replica": i, "host": "127.0.0.1", "port": port, "weight": weight,
                 "state": "ready" if weight else "draining"}
                for i, (port, weight) in enumerate(weights.items())]
        with open(self.path(name + ".new"), "w", encoding="ascii") as f:
            json.dump({"service": "web", "id": 3, "version": self.version, "endpoints": rows}, f)
        os.rename(self.path(name + ".new"), self.path(name))

    def load(self, schedule, name="endpoints"):
        process = subprocess.Popen(
            [sys.executable, "-B", load.__file__, "--endpoints", self.path(name), "--schedule",
             schedule, "--latency", "0.5", "--timeout", str(CEILING_S), "--csv", self.path("csv"),
             "--summary", self.path("summary")], stdin=subprocess.DEVNULL)
        self.programs.append(process)
        return process

    def summary(self, process, is_told=False):
        """What it found, at its end."""
        if is_told:
            process.terminate()
        try:
            status = process.wait(CEILING_S)
        except subprocess.TimeoutExpired:
            raise Failure("the load does not end") from None
        check(status == 0, "the load ended with", status)
        with open(self.path("summary"), encoding="ascii") as f:
            return json.load(f)


def all_ok(found, what):
    check(found["requests"] > 0 and found["ok"] == found["requests"], what, "lost requests:", found)


def try_schedule():
    s = load.Schedule("0:10,100:10,100:50,200:0")
    for at_s, rate in ((0, 10), (50, 10), (100, 50), (150, 25), (200, 0), (300, 0)):
        check(s.rate(at_s) == rate, "the rate at", at_s, "is", s.rate(at_s))
    times = list(s.arrivals(random.Random(1)))
    check(times == list(s.arrivals(random.Random(1))), "the same seed gave other arrivals")
    check(times != list(s.arrivals(random.Random(2))), "another seed gave the same arrivals")
    for low_s, high_s, mean in ((0, 100, 1000), (100, 200, 2500)):
        n = sum(low_s <= t < high_s for t in times)
        check(abs(n - mean) < 4 * mean ** 0.5, "wanted some", mean, "arrivals, not", n)
    check(load.quantile([3, 1, 2], 0.99) == 3 and load.quantile(range(1, 101), 0.99) == 99 and
          load.quantile([], 0.5) is None, "a quantile is wrong")


def try_judgement():
    """What a summary makes of requests that are known."""
    rows = [load.Row(i, 0.0, 0.1, "ok", 200, 0, 1, 0) for i in range(40)]
    rows[3] = rows[3]._replace(latency_s=0.7)
    rows[5] = rows[5]._replace(outcome="refused", latency_s=0.9)
    rows[35] = rows[35]._replace(outcome="failed", lag_s=0.2)
    whole = load.summary_of(rows, 0.5)
    want = {"requests": 40, "ok": 38, "late": 1, "refused": 1, "failed": 1, "p50_s": 0.1,
            "max_s": 0.7, "lag_max_s": 0.2, "is_lagging": True}
    check(want.items() <= whole.items(), "the summary is", whole)
    first, second = load.windows_of(rows, 0.5, 30.0)
    check((first["requests"], first["late"], first["refused"], first["failed"]) == (30, 1, 1, 0) and
          (second["requests"], second["from_s"], second["failed"]) == (10, 30.0, 1) and
          not first["is_lagging"], "windows are", first, second)


def try_speed():
    """It is slower where --speed says so, as GOGH names the GPU's type."""
    spec = importlib.util.spec_from_file_location("server", os.path.join(EXAMPLES, "server.py"))
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    words = ["--t0", "20ms", "--per-request", "0.002", "--speed", "k80=3,v100=1"]
    for gpu, step_s in (("k80", 0.084), ("v100", 0.028), ("p100", 0.028)):
        with mock.patch.dict(os.environ, {"GOGH_GPU_TYPE": gpu}):
            found_s = server.Server(server.read_options(words)).step_s(4)
        check(abs(found_s - step_s) < 1e-9, "a step on", gpu, "takes", found_s)
    with mock.patch.dict(os.environ, {"GOGH_PORT": "4711"}):
        check(server.read_options([]).port == 4711, "GOGH_PORT is not heard")


def try_health(place):
    s = place.server("--load-time", "1000000")
    check(s.ask("/healthz")[0] == 503 and s.ask("/infer", "POST")[0] == 503, "it is not loaded yet")
    check(s.ask("/nowhere")[0] == 404, "there is no such path")
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", s.port)) as idle:
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        s.signal(signal.SIGTERM)  # nobody has to hang up for it to leave
        check(s.drained() == (0, 0), "it served while it was loading")


def try_batches(place):
    """More at once than one by one could do: they go together."""
    s = place.server("--burn", "--t0", "0.05", "--per-request", "0.001", "--max-batch", "32")
    until("it is ready", s.is_ready)
    place.publish({s.port: 1.0})
    found = place.summary(place.load("0:50,2:150,3:50"))
    all_ok(found, "a server alone")
    check(s.ask("/infer")[1]["batch"] == 1, "one request alone is a batch of one")
    s.signal(signal.SIGTERM)
    n_requests, n_batches = s.drained()
    check(n_requests == found["requests"] + 1, "it counts", n_requests, "of", found["requests"])
    check(n_batches < n_requests, "nothing was batched:", n_batches, n_requests)
    with open(place.path("csv"), encoding="ascii") as f:
        check(len(f.readlines()) == found["requests"] + 1, "the table has other rows")


def try_drain(place, front=None):
    """A replica leaves while requests come: told to end before anybody else hears of it."""
    old, new = (place.server("--t0", "10ms", "--per-request", "1ms") for _ in range(2))
    until("both are ready", lambda: old.is_ready() and new.is_ready())
    place.publish({old.port: 1.0, new.port: 0})
    if front is not None:
        place.publish({front.port: 1.0}, name="front")
    process = place.load("0:60,100000:60", "front" if front is not None else "endpoints")
    until("the old one serves", lambda: old.n_served() > 30)
    place.publish({old.port: 0.5, new.port: 0.5})
    until("the new one serves, too", lambda: new.n_served() > 10)
    old.signal(signal.SIGTERM)
    until("it says that it leaves", lambda: not old.is_ready())
    place.publish({old.port: 0, new.port: 1.0})
    n_old = old.drained()[0]
    n_then = new.n_served()
    place.publish({new.port: 1.0})
    until("the new one goes on", lambda: new.n_served() > n_then + 20)
    found = place.summary(process, is_told=True)
    all_ok(found, "a replica that leaves")
    check(n_old + new.n_served() == found["requests"], "the servers count", n_old, new.n_served(),
          "requests, the load", found["requests"])
    return new, found


def try_losses(place, alive):
    """What nobody answers is told: a port without a server, no endpoints, a server that dies."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and does not listen
        place.publish({deaf.getsockname()[1]: 1.0})
        found = place.summary(place.load("0:50,1:50"))
        check(0 < found["refused"] == found["requests"], "nobody was refused:", found)
    place.publish({alive.port: 0})
    found = place.summary(place.load("0:50,1:50"))
    check(0 < found["refused"] == found["requests"], "nobody was there:", found)
    other = place.server()
    until("another one is ready", other.is_ready)
    place.publish({alive.port: 0.5, other.port: 0.5})
    process = place.load("0:100,100000:100")
    until("it is served", lambda: other.n_served() > 10)
    alive.signal(signal.SIGKILL)
    alive.ended()
    n_then = other.n_served()
    until("the other one goes on", lambda: other.n_served() > n_then + 30)
    found = place.summary(process, is_told=True)
    check(found["refused"] > 0 and found["ok"] + found["refused"] + found["failed"] ==
          found["requests"], "a server that died refused nobody:", found)


def main():
    try_schedule()
    try_judgement()
    try_speed()
    with Place() as place:
        try_health(place)
        try_batches(place)
        alive, found = try_drain(place)
        check(found["files_read"] >= 4, "the file was not read anew:", found["files_read"])
        try_losses(place, alive)
        try_drain(place, place.balancer())


if __name__ == "__main__":
    sys.exit(run(main))
