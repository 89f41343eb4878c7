#!/usr/bin/env python3
"""What a box has of CPUs and memory, and what jobs say that they take of it.

Two jobs take all CPUs. A third waits although a GPU is free, and the explanation names the rule; it
starts when the first one ends. So does one for whose memory the second has to end. One that asks for
more than there is waits, and nothing is ordered for it. Plans are made again from a record of it.
"""
import json
import os
import subprocess
import sys

from daemon import Box, check, run, until

SLEEPER = {"argv": ["/bin/sleep", "300"], "workload": "ResNet-18", "batch": 128, "steps": 1e6}


def submit(box, name, **more):
    return box.submit(dict(SLEEPER, name=name, **more))["id"]


def verdicts(box, job):
    return {c["verdict"] for c in box.get("/v1/jobs/%s/explain" % job)["candidates"]}


def explained(box, job, verdict):
    """A decision has looked at it, and says so."""
    answer = box.ask("GET", "/v1/jobs/%s/explain" % job)
    return answer.status == 200 and verdict in verdicts(box, job)


def replay(box):
    done = subprocess.run([os.environ["GOGH"], "replay", "--record", box.path("record"), "--json"],
                          stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def main():
    n = max(os.cpu_count(), 2)
    mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") >> 20
    with Box("v100:3", ["decide_s 0.1", "policy greedy"]) as box:
        box.start(["record " + box.path("record")])
        first = submit(box, "first", cpus=n - 1, exclusive=True)
        box.until_state(first, "running")
        second = submit(box, "second", cpus=1, mem_mib=mib // 2, exclusive=True)
        box.until_state(second, "running")
        third = submit(box, "third", cpus=n - 1)
        until("CPUs are named", lambda: explained(box, third, "engine: node CPUs"))
        fourth = submit(box, "fourth", mem_mib=mib - mib // 4)
        until("memory is named", lambda: explained(box, fourth, "engine: node memory"))
        never = submit(box, "never", cpus=n + 1)
        until("it waits", lambda: box.job(never).get("reason") == "engine")
        check(box.job(third)["state"] == "waiting" and box.job(third)["reason"] == "capacity",
              "it waits for capacity:", box.job(third))
        box.must("POST", "/v1/jobs/%s/cancel" % first)
        box.until_state(third, "running")
        box.must("POST", "/v1/jobs/%s/cancel" % second)
        box.until_state(fourth, "running")
        check(box.metric("gogh_orders_refused_total") == 0, "nothing is refused")
        for job in (third, fourth, never):
            box.must("POST", "/v1/jobs/%s/cancel" % job)
        box.finish()
        said = replay(box)
        check(said["same"] == said["decisions"] > 5, "plans are made again from a record:", said)


if __name__ == "__main__":
    sys.exit(run(main))
