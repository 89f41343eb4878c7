#!/usr/bin/env python3
"""Servers that report nothing, lie, flood, crash or are late, beside one that is as it should be.

Each is shown as what it is; what liars say is not counted, whoever crashes is started ever later,
whoever is late is provided for with more; and of the honest one every request is counted, as if it
were alone.
"""
import os
import sys

from daemon import Box, check, run, until
from services import Load, SERVER, Service, file_of, ports_of_own, ready

# Datagrams of its own making: n requests were answered, and so many of them late.
SAYS = """
import itertools, os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["GOGH_REPORTS"].removeprefix("unix:"))
head = "gogh1 " + " ".join(os.environ[k] for k in ("GOGH_JOB", "GOGH_RUN", "GOGH_SECRET"))
for n in itertools.count(0, 10):
    s.send(("%%s %%d ready=1 late=%%d" %% (head, n, %s)).encode())
    time.sleep(%g)
"""
FLOODS_MOST = 1_000_000  # it says that many in some seconds
HONEST = Service("honest", "resnet50-infer", 20, 2.0, None, ((0, 10), (5, 30), (10, 10)))

# Who, on how many GPUs at most, by what command, and what is shown of it.
OTHERS = (
    ("silent", 1, ["/bin/sleep", "3600"], "reports nothing"),
    ("liar", 1, [sys.executable, "-c", SAYS % ("2 * n", 1)], "contradicts itself"),
    ("floods", 1, [sys.executable, "-c", SAYS % ("0", 0)], "floods"),
    ("crashes", 1, ["/bin/sh", "-c", "date +%s.%N >>crashes; exit 7"], "replicas fail"),
    ("late", 2, [sys.executable, "-c", SAYS % ("n // 2", 1)], "more than 1 % are late"),
)


def submit(box, name, max_gpus, argv):
    box.cli("submit", "--service", "--name", name, "--workload", HONEST.workload, "--rate",
            HONEST.rate, "--p99", "%gs" % HONEST.p99_s, "--load-time", "1s", "--no-move",
            "--max-gpus", max_gpus, "--", *argv)


def is_shown(box, name, warning):
    """In the list, in its own page and by the API."""
    line = next(r for r in box.cli("services").splitlines() if r.split()[1:2] == [name])
    return warning in line and warning in box.cli("show", name) and \
        warning in box.get("/v1/services/" + name)["warnings"]


def check_liars(box):
    """What they say counts for nothing; of a flood, at most what came before it was one."""
    counted = {s["name"]: s["requests"] for s in box.get("/v1/services")["services"]}
    check(not counted["silent"] and not counted["liar"] and counted["late"] > 0, counted)
    check(counted["floods"] < FLOODS_MOST, "a flood is counted:", counted)
    for metric in ("gogh_reports_false_total", "gogh_reports_floods_total"):
        check(box.metric(metric) > 0, metric, "is 0")


def check_back_off(box):
    """A second, two, four: never sooner, however long it takes."""
    with open(box.path("crashes"), encoding="ascii") as f:
        at_s = [float(line) for line in f]
    for i, (one_s, next_s) in enumerate(zip(at_s, at_s[1:])):
        check(next_s - one_s >= 2 ** i - 0.01, "after failure", i + 1, "the next start came",
              next_s - one_s, "s later")
    now = box.get("/v1/services/crashes")
    check(now["failures"] >= len(at_s) - 1 and now["state"] != "serving", now)


def main():
    with Box("k80:2 p100:2 v100:2", ["decide_s 0.1", ports_of_own()]) as box:
        box.start()
        submit(box, "honest", 1, [sys.executable, "-B", SERVER])
        until("it serves", lambda: os.path.exists(file_of(box, "honest")) and ready(box, "honest"))
        one = Load(box, HONEST, 1)
        for name, max_gpus, argv, _ in OTHERS:
            submit(box, name, max_gpus, argv)
        for name, _, _, warning in OTHERS:
            until("'%s' is shown" % warning, lambda n=name, w=warning: is_shown(box, n, w))
        until("it crashed four times", lambda: box.get("/v1/services/crashes")["failures"] >= 4)
        until("who is late is to hold more", lambda: box.get("/v1/services/late")["demand"] >
              HONEST.rate)
        check_liars(box)
        one.end()
        check(one.rows and all(r.outcome == "ok" for r in one.rows), "requests were lost")
        until("all of the honest one's are counted", lambda: box.get("/v1/services/honest")
              ["requests"] == len(one.rows))
        check(not box.get("/v1/services/honest")["warnings"], box.get("/v1/services/honest"))
        check_back_off(box)
        for name in ["honest"] + [o[0] for o in OTHERS]:
            box.cli("cancel", name)
        until("all have ended", lambda: not os.listdir(box.path("services")))
        box.finish()


if __name__ == "__main__":
    sys.exit(run(main))
