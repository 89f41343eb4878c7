#!/usr/bin/env python3
"""Load for a service: requests that come whether or not the last one was answered.

    load.py --endpoints FILE --schedule 0:40,60:120,300:40 --latency 0.2 --seed 7 \\
            [--csv FILE] [--summary FILE] [--window 30]

Arrivals are Poisson's, at a rate that runs in straight lines through the points "second:rate" of
the schedule; it ends at the last one. Each request goes to an endpoint by chance, by the weights
that the endpoints file (docs/services.md) has at that moment. Nothing is hidden from whoever judges:

    ok        answered with 200; late, where that took longer than --latency
    refused   nobody listens there, or no endpoint has a weight
    failed    another status, no answer within --timeout, or a connection that broke

One thing is tried again, once, as every client of HTTP does: a request on a connection that was
used before and that the server closed before it said anything.

A latency counts from the moment at which the request was due. Where this program itself came late
to it, the lag says by how much; is_lagging says that it was too busy for its figures to be worth
much (a hundredth of the requests, or more, lagged by more than a tenth of --latency).
"""
import argparse
import asyncio
import bisect
import collections
import contextlib
import csv
import itertools
import json
import math
import os
import random
import signal
import sys
import time

FIELDS = ("at_s", "lag_s", "latency_s", "outcome", "status", "replica", "port", "retried")
Row = collections.namedtuple("Row", FIELDS)  # what became of one request


# ---- when requests come ----

class Schedule:
    """A rate that changes in straight lines: [(second, rate), ...]."""

    def __init__(self, text):
        self.points = [tuple(map(float, word.split(":"))) for word in text.split(",")]
        self.times = [t for t, _ in self.points]
        if self.times != sorted(self.times) or min(r for _, r in self.points) < 0:
            raise ValueError("write SECOND:RATE,... with seconds that do not fall and rates >= 0")
        self.end_s = self.times[-1]

    def rate(self, t):
        i = bisect.bisect_right(self.times, t)
        if i == 0 or i == len(self.points):
            return self.points[max(i - 1, 0)][1]
        (t0, r0), (t1, r1) = self.points[i - 1], self.points[i]
        return r0 + (r1 - r0) * (t - t0) / (t1 - t0)

    def arrivals(self, rng):
        """Seconds of a Poisson process, by thinning one at the highest rate."""
        highest = max(r for _, r in self.points)
        t = 0.0
        while highest > 0:
            t += rng.expovariate(highest)
            if t >= self.end_s:
                return
            if rng.random() * highest < self.rate(t):
                yield t


# ---- where they go ----

class Endpoints:
    """The endpoints file, read anew whenever it was replaced; idle connections to those in it."""

    def __init__(self, path, rng):
        self.path, self.rng = path, rng
        self.seen = None
        self.version = None
        self.n_read = 0
        self.ready, self.sums = [], []
        self.idle = {}  # (host, port): connections

    def look(self):
        try:
            st = os.stat(self.path)
        except FileNotFoundError:
            return
        if (st.st_ino, st.st_mtime_ns, st.st_size) == self.seen:
            return
        self.seen = (st.st_ino, st.st_mtime_ns, st.st_size)
        with open(self.path, encoding="utf-8") as f:
            told = json.load(f)
        self.version = told.get("version")
        self.n_read += 1
        self.ready = [e for e in told["endpoints"] if e["state"] == "ready" and e["weight"] > 0]
        self.sums = list(itertools.accumulate(e["weight"] for e in self.ready))
        wanted = {(e["host"], e["port"]) for e in self.ready}
        for key in [k for k in self.idle if k not in wanted]:
            for _, writer in self.idle.pop(key):
                writer.close()

    def pick(self):
        """An endpoint by chance; None: there is none."""
        self.look()
        if not self.ready:
            return None
        at = bisect.bisect_right(self.sums, self.rng.random() * self.sums[-1])
        return self.ready[min(at, len(self.ready) - 1)]

    def take(self, key):
        """An idle connection that the other side has not closed, as far as we know; None."""
        kept = self.idle.get(key, [])
        while kept:
            reader, writer = kept.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None

    def give_back(self, key, connection):
        if any((e["host"], e["port"]) == key for e in self.ready):
            self.idle.setdefault(key, []).append(connection)
        else:
            connection[1].close()

    def close(self):
        for kept in self.idle.values():
            for _, writer in kept:
                writer.close()


class Unanswered(Exception):
    """A used connection was closed before a byte of the answer came."""


async def exchange(reader, writer, key, path):
    """(status, may the connection be used again) of one request."""
    try:
        writer.write(b"POST %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Length: 2\r\n\r\n{}" %
                     (path.encode(), key[0].encode(), key[1]))
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as e:
        if e.partial:
            raise ConnectionError("closed within the answer") from None
        raise Unanswered from None
    except ConnectionError:
        raise Unanswered from None
    lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in lines[1:])}
    await reader.readexactly(int(headers["content-length"]))
    return int(lines[0].split(" ")[1]), headers.get("connection", "").lower() != "close"


# ---- the load ----

class Load:
    def __init__(self, options):
        self.options = options
        self.schedule = options.schedule
        self.endpoints = Endpoints(options.endpoints, random.Random("%d where" % options.seed))
        self.rows = []
        self.began_s = self.epoch_s = None
        self.is_ended = asyncio.Event()

    async def try_once(self, endpoint):
        """The status; raises Unanswered where a used connection was closed."""
        key = endpoint["host"], endpoint["port"]
        connection = self.endpoints.take(key)
        is_used = connection is not None
        if not is_used:
            connection = await asyncio.open_connection(*key)
        try:
            status, may_stay = await exchange(*connection, key, self.options.path)
        except BaseException as e:
            connection[1].close()
            if isinstance(e, Unanswered) and not is_used:
                raise ConnectionError("closed without an answer") from None
            raise
        if may_stay:
            self.endpoints.give_back(key, connection)
        else:
            connection[1].close()
        return status

    async def outcome(self):
        """(outcome, status, endpoint, retried) of one request."""
        endpoint, retried = None, 0
        try:
            async with asyncio.timeout(self.options.timeout):
                while True:
                    endpoint = self.endpoints.pick()
                    if endpoint is None:
                        return "refused", 0, endpoint, retried
                    try:
                        status = await self.try_once(endpoint)
                        return ("ok" if status == 200 else "failed"), status, endpoint, retried
                    except Unanswered:
                        if retried:
                            return "failed", 0, endpoint, retried
                        retried = 1
        except ConnectionRefusedError:
            return "refused", 0, endpoint, retried
        except (OSError, ValueError, KeyError, asyncio.IncompleteReadError):  # TimeoutError, too
            return "failed", 0, endpoint, retried

    async def request(self, at_s, lag_s):
        what, status, endpoint, retried = await self.outcome()
        took_s = time.monotonic() - self.began_s - at_s
        endpoint = endpoint or {}
        self.rows.append(Row(at_s, lag_s, took_s, what, status, endpoint.get("replica", -1),
                             endpoint.get("port", 0), retried))

    async def run(self):
        loop = asyncio.get_running_loop()
        for s in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(s, self.is_ended.set)
        self.began_s, self.epoch_s = time.monotonic(), time.time()
        under_way = set()
        for at_s in self.schedule.arrivals(random.Random("%d when" % self.options.seed)):
            wait_s = self.began_s + at_s - time.monotonic()
            if wait_s > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self.is_ended.wait()
            else:
                await asyncio.sleep(0)  # others have to run although we are late
            if self.is_ended.is_set():
                break
            lag_s = max(time.monotonic() - self.began_s - at_s, 0.0)
            task = asyncio.create_task(self.request(at_s, lag_s))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way)
        self.endpoints.close()
        self.rows.sort()


# ---- what came of it ----

def quantile(values, q):
    """The smallest value that a share q of them does not exceed; None of none."""
    values = sorted(values)
    return values[max(math.ceil(q * len(values)), 1) - 1] if values else None


def summary_of(rows, latency_s):
    """Counts and figures of some requests."""
    ok = [r.latency_s for r in rows if r.outcome == "ok"]
    lags = [r.lag_s for r in rows]
    lag_p99_s = quantile(lags, 0.99)
    return {
        "requests": len(rows), "ok": len(ok), "late": sum(t > latency_s for t in ok),
        "refused": sum(r.outcome == "refused" for r in rows),
        "failed": sum(r.outcome == "failed" for r in rows),
        "retried": sum(r.retried for r in rows),
        "p50_s": quantile(ok, 0.5), "p99_s": quantile(ok, 0.99), "max_s": max(ok, default=None),
        "lag_p99_s": lag_p99_s, "lag_max_s": max(lags, default=None),
        "is_lagging": bool(rows) and lag_p99_s > latency_s / 10,
    }


def windows_of(rows, latency_s, window_s):
    found = {}
    for r in rows:
        found.setdefault(int(r.at_s // window_s), []).append(r)
    return [{"from_s": i * window_s, "to_s": (i + 1) * window_s, **summary_of(found[i], latency_s)}
            for i in sorted(found)]


def summarise(load):
    o = load.options
    by_replica = collections.Counter(str(r.replica) for r in load.rows)
    return {
        "seed": o.seed, "latency_s": o.latency, "began": load.epoch_s,
        "files_read": load.endpoints.n_read, "last_version": load.endpoints.version,
        **summary_of(load.rows, o.latency), "by_replica": dict(sorted(by_replica.items())),
        "windows": windows_of(load.rows, o.latency, o.window),
    }


def write_csv(path, rows):
    with open(path, "w", encoding="ascii", newline="") as f:
        to = csv.writer(f, lineterminator="\n")
        to.writerow(FIELDS)
        for r in rows:
            to.writerow(["%.6f" % v if isinstance(v, float) else v for v in r])


def read_options():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--endpoints", required=True, metavar="FILE")
    p.add_argument("--schedule", required=True, type=Schedule, metavar="SECOND:RATE,...")
    p.add_argument("--latency", type=float, required=True, help="seconds; beyond it is late")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--path", default="/infer")
    p.add_argument("--timeout", type=float, default=30.0)
    p.add_argument("--window", type=float, default=30.0)
    p.add_argument("--csv", metavar="FILE")
    p.add_argument("--summary", metavar="FILE", help="standard output unless told")
    return p.parse_args()


def main():
    load = Load(read_options())
    asyncio.run(load.run())
    if load.options.csv:
        write_csv(load.options.csv, load.rows)
    text = json.dumps(summarise(load), indent=1) + "\n"
    if load.options.summary:
        with open(load.options.summary, "w", encoding="ascii") as f:
            f.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
