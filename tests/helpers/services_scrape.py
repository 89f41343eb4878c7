#!/usr/bin/env python3
"""Servers that do not report are asked for their Prometheus page.

A service whose page is like vLLM's gets ready by it, and `gogh services` has its rate and its late
requests, after a restart too. A page that contradicts itself, is gone, too large, or hangs is shown as such,
and nobody else goes without. A table of metrics that is of no use is refused.
"""
import os
import struct
import sys
import urllib.request

from daemon import Box, check, run, until

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_server.py")
GOOD = ("web", "falls", "huge", "gone")  # until their page is spoilt
SLOT_S = 300  # REQ/S is of the last five minutes by the clock


class Pages(Box):
    ahead_s = 0

    def set_clock(self, ahead_s):
        """In place: the daemon has the file mapped."""
        self.ahead_s = ahead_s
        fd = os.open(self.path("ahead"), os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("d", ahead_s), 0)
        os.close(fd)

    def begin(self):
        self.start(env={"LD_PRELOAD": os.environ["CLOCK_JUMP_LIB"], "CLOCK_JUMP": self.path("ahead"),
                        "ASAN_OPTIONS": "verify_asan_link_order=0:" +
                                        os.environ.get("ASAN_OPTIONS", "")})

    def serve(self, name, *words, page="good"):
        """That it loads for an hour is said so that nothing but what is asked makes it ready."""
        self.cli("submit", "--service", "--name", name, "--workload", "resnet50-infer", "--rate", "5",
                 "--p99", "2s", "--max-gpus", "1", "--load-time", "3600s", "--metrics", "/metrics",
                 *words, "--", sys.executable, "-B", SERVER, page)

    def service(self, name):
        return self.get("/v1/services/" + name)

    def warnings(self, name):
        return self.service(name)["warnings"]

    def until_serving(self, name):
        until(name + " serves", lambda: self.service(name)["state"] == "serving")

    def ask_server(self, name, path):
        port = self.get("/v1/services/%s/endpoints" % name)["endpoints"][0]["port"]
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=60) as answer:
            return answer.read().decode()

    def until_counted(self, name, n):
        until("%d requests of %s are counted" % (n, name),
              lambda: self.service(name)["requests"] >= n)
        check(self.service(name)["requests"] == n, "each request once:", self.service(name))


def column(box, name, title):
    """What `gogh services` has there; titles and cells are as long as each other, and right-aligned."""
    head, *lines = box.cli("services").splitlines()
    line = next(text for text in lines if " %s " % name in text)
    return line[:head.index(title) + len(title)].split()[-1]


def check_counts(box):
    box.ask_server("web", "/answer?took=0.3&n=90")
    box.ask_server("web", "/answer?took=3&n=10")
    box.ask_server("falls", "/answer?took=0.1&n=20")
    box.until_counted("web", 100)
    web = box.service("web")
    check(abs(web["late_share"] - 0.1) < 1e-9, "a tenth is late:", web)
    check("more than 1 % are late" in web["warnings"], web)
    check("reports nothing" not in web["warnings"], "it has a page:", web)
    check(float(column(box, "web", "LATE %")) == 10, box.cli("services"))
    box.until_counted("falls", 20)


def check_rate(box):
    """Requests in every slot, which end by the hand of the test."""
    n = int(box.service("web")["requests"])
    while not box.service("web")["rate"]:
        n += 30
        box.ask_server("web", "/answer?took=0.3&n=30")
        box.until_counted("web", n)
        box.set_clock(box.ahead_s + SLOT_S)
    check(float(column(box, "web", "REQ/S")) > 0, box.cli("services"))


def check_faults(box):
    """Pages that were spoilt when all were ready; minutes went by since."""
    until("a page that falls is shown", lambda: "contradicts itself" in box.warnings("falls"))
    check("contradicts itself" in box.cli("services"), box.cli("services"))
    for name, says in (("huge", "more than 16 MiB"), ("gone", "response code")):
        until(name + " is shown", lambda name=name: "reports nothing" in box.warnings(name))
        until("the log says why", lambda says=says: says in box.log())
    check("reports nothing" in box.warnings("hangs"), box.service("hangs"))
    until("web has another page", lambda: "reports nothing" not in box.warnings("web"))


def check_mended(box):
    """Those that are sound again are counted from there."""
    n = {name: int(box.service(name)["requests"]) for name in ("falls", "huge")}
    box.ask_server("huge", "/answer?took=0.1&n=3")
    for name in n:
        box.ask_server(name, "/page?is=good")
    until("it is sound", lambda: "contradicts itself" not in box.warnings("falls"))
    box.ask_server("falls", "/answer?took=0.1&n=5")
    box.until_counted("huge", n["huge"] + 3)
    box.until_counted("falls", n["falls"] + 5)


def check_restart(box):
    n = int(box.ask_server("web", "/page")) + 1    # and one that may be under way
    box.kill()
    box.begin()
    box.until_serving("web")
    until("the new daemon has a page", lambda: int(box.ask_server("web", "/page")) > n)
    box.ask_server("web", "/answer?took=0.3&n=7")
    box.until_counted("web", 7)


def main():
    with Pages("v100:6", ["decide_s 0.1"]) as box:
        with open(box.path("table"), "w") as f:
            f.write("vllm 1+ speed x\n")
        told = box.refused(["scrape_table " + box.path("table")])
        check("'speed' is not known" in told, told)
        box.set_clock(0)
        box.begin()
        for name in GOOD:
            box.serve(name)
        box.serve("hangs", "--probe", "/healthz", page="hangs")
        for name in GOOD + ("hangs",):
            box.until_serving(name)
        for name in ("huge", "gone"):
            box.ask_server(name, "/page?is=" + name)
        check_counts(box)
        box.ask_server("falls", "/page?is=falls")
        check_rate(box)
        check_faults(box)
        check_mended(box)
        check_restart(box)
        for name in GOOD + ("hangs",):
            box.cli("cancel", name)
        until("all are gone", lambda: not box.processes_called("page_server"))
        box.finish()


if __name__ == "__main__":
    sys.exit(run(main))
