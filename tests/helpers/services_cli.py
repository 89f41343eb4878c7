#!/usr/bin/env python3
"""Services as people see them: submitted, refused, listed, shown, explained, scaled, ended.

What the commands print of a service is what the API says; a submission that makes no sense is refused
with the cure, in the words of the command line; replicas are shown by their service and changed by
nobody; a service that was scaled is so after a restart, and nothing of it is started twice.
"""
import csv
import io
import json
import sys

from daemon import Box, check, run, until

SERVER = ["--", "/bin/sleep", "300"]
WEB = ["--workload", "resnet50-infer", "--rate", "5", "--p99", "2s"]


# What is given beside --service, and what the refusal says.
REFUSED = (
    (["--rate", "5"], "--p99: within how many seconds"),
    (["--p99", "200ms"], "rate: how many requests/s"),
    (["--rate", "5", "--p99", "200ms", "--ttft", "1s"], "--p99: a service promises this, or --ttft"),
    (["--rate", "5", "--ttft", "1s"], "--tpot: and how long"),
    (["--rate", "5", "--p99", "1s", "--steps", "9"], "steps: a service goes on until"),
    (["--rate", "5", "--p99", "1s", "--deadline", "+2h"], "deadline: a service promises"),
    (["--rate", "5", "--p99", "1s", "--min-throughput", "2"], "--min-throughput: a service promises"),
    (["--rate", "5", "--p99", "1s", "--gpus", "2"], "say --max-gpus"),
    (["--rate", "5", "--p99", "soon"], "'soon' is no duration"),
    (["--rate", "5", "--p99", "1s", "--workload", "resnet50"], "is known as training"),
    (["--rate", "5", "--p99", "1s", "--name", "a/b"], "name: a service's is a file's"),
    (["--rate", "5", "--p99", "1s", "--probe", "healthz"], "want a path"),
)


def check_refusals(box):
    for words, says in REFUSED:
        told = box.cli("submit", "--service", *words, *SERVER, status=1)
        check(says in told, words, "is refused with:", told)
    told = box.cli("submit", "--p99", "200ms", *SERVER, status=1)
    check("--p99: only a service has one; say --service, too" in told, told)
    check(box.get("/v1/services")["total"] == 0, "what is refused is not there")


def check_texts(box):
    """The pages say what the API says."""
    web = box.get("/v1/services/web")
    show, why = box.cli("show", "web"), box.cli("explain", "web")
    check("99 % within 2 s" in show and "service %d (web)" % web["id"] in show, show)
    check(web["why"].split(";")[0].split(" requests")[0] in why, why, web["why"])
    for replica in web["replicas"]:
        check("Replica %d is on %s" % (replica["replica"], replica["gpu"]) in why, why)
        check(replica["name"] in show, show)
        check("%d of service %d" % (replica["replica"], web["id"]) in
              box.cli("show", replica["name"]), "a replica says whose it is")
    for place in web["places"]:
        check(place["type"] in why and place["verdict"] in why, place, why)
    line = next(r for r in box.cli("services").splitlines() if " web " in r)
    check(web["owner"] in line and "2 s" in line, line)
    check(json.loads(box.cli("services", "--json"))["services"][0]["name"] == "web", "as JSON")


def check_jobs(box):
    names = {j["name"] for j in json.loads(box.cli("jobs", "--json"))["jobs"]}
    check(names == {"web"}, "replicas are hidden:", names)
    told = box.cli("jobs", "--replicas")
    check("web.0" in told and "service: " in told, told)
    check("web.0" in box.cli("nodes") and "web.0" in box.cli("top", "--once"), "and named on GPUs")


def check_endpoints(box):
    told = box.get("/v1/services/web/endpoints")
    check(told["service"] == "web" and told["endpoints"], told)
    weights = sum(e["weight"] for e in told["endpoints"])
    ready = [e for e in told["endpoints"] if e["state"] == "ready"]
    check(abs(weights - (1 if ready else 0)) < 1e-6, "weights:", told)


def check_changes(box):
    replica = box.get("/v1/services/web")["replicas"][0]["job"]
    for order in ("cancel", "hold"):
        told = box.cli(order, replica, status=1)
        check("is a replica: it comes and goes with service" in told, told)
    check("to what?" in box.cli("scale", "web", status=2), "a scale says to what")
    told = box.cli("scale", "web", "--rate", "7.5", "--max-gpus", "3")
    check("7.50 requests/s, on 3 GPUs" in told, told)


def check_report(box):
    rows = list(csv.DictReader(io.StringIO(box.cli("report", "--by", "service", "--csv"))))
    check([r["name"] for r in rows] == ["web"] and float(rows[0]["joules"]) > 0, rows)
    check("web" in box.cli("report", "--by", "service"), "as a table")
    check("J PER 1000" in box.cli("report"), "beside the rows of owners")


def main():
    with Box("k80:2 v100:2", ["decide_s 0.1"]) as box:
        box.start()
        check(box.cli("services") == "no services\n", "there are none")
        check_refusals(box)
        check(box.cli("submit", "--service", "--name", "web", "--max-batch", "16", "--load-time",
                      "300s", *WEB, *SERVER) == "service 0 (web) submitted\n", "it is told")
        until("a replica runs", lambda: [r for r in box.get("/v1/services/web")["replicas"]
                                         if r["state"] != "waiting"])
        check_texts(box)
        check_jobs(box)
        check_endpoints(box)
        check_changes(box)
        check_report(box)
        box.kill()
        box.start()
        web = box.get("/v1/services/web")
        check(web["promised_rate"] == 7.5 and web["max_gpus"] == 3, "a restart keeps it:", web)
        gpus = [r["gpu"] for r in web["replicas"]]
        check(len(gpus) == len(set(gpus)), "one replica a GPU:", web["replicas"])
        box.cli("cancel", "web")
        check("ended" in box.cli("services", "--all"), "it has ended")
        check(box.cli("services") == "no services\n", "and is gone")


if __name__ == "__main__":
    sys.exit(run(main))
