#!/usr/bin/env python3
"""A site is commissioned: named, run, interrupted; what was measured counts, and outlives the daemon.

gogh-pair and gogh-burn are tests/helpers/pair.py, which knows at once what real ones would measure.
"""
import contextlib
import http.client
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import urllib.parse

from daemon import Box, ask_by, check, free_port, run, until
from slurm import Slurm, need_slurm

PAIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pair.py")
GPUS = "p100:1 v100:2"


def write(box, name, text):
    with open(box.path(name), "w") as f:
        f.write(text)
    return box.path(name)


def start(box, words, env=None):
    return subprocess.Popen([os.environ["GOGH"]] + [str(w) for w in words], cwd=box.dir, text=True,
                            env={**os.environ, "GOGH_SOCKET": box.socket, "GOGH_PAIR": PAIR,
                                 "GOGH_BURN": PAIR, **(env or {})},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def gogh(box, *words, status=0, env=None):
    """What it prints, and what it says on standard error."""
    process = start(box, words, env)
    out, err = process.communicate(timeout=300)
    check(process.returncode == status, "gogh", words, "ended with", process.returncode, out, err)
    return out, err


def measurements(box):
    return box.get("/v1/measurements?limit=1000")["measurements"]


def log(box, where="commission-results"):
    with open(box.path(where + "/log")) as f:
        return [line.split() for line in f.read().splitlines()]


def test_names(box):
    """Without --run nothing happens, and the same question has the same answer."""
    out, _ = gogh(box, "commission", "--pairs", 4)
    check(out.count("nothing was measured on") + out.count("measured on") >= 4, out)
    check("burn-" in out and "surer" in out, out)
    one = json.loads(gogh(box, "commission", "--pairs", 4, "--json")[0])
    check(len(one["measurements"]) == 4 and len(one["programs"]) == 3, one["measurements"])
    check(one == json.loads(gogh(box, "commission", "--pairs", 4, "--json")[0]), "not the same")
    gains = [m["gain"] for m in one["measurements"]]
    check(all(g > 0 for g in gains), gains)
    check({t["gpu"].split("-")[0] for t in one["targets"]} == {"p100", "v100"}, one["targets"][:3])
    check(not any("burn-" in t["workload"] for t in one["targets"]), "benchmarks are nobody's work")
    check(not box.jobs() and not measurements(box), "something happened")
    check(not box.get("/v1/workloads")["workloads"], "the catalog has learned names")
    check(not os.path.exists(box.path("commission-results")), "there is a directory")


def test_offline(box):
    """The store alone gives the same measurements."""
    here = json.loads(gogh(box, "commission", "--pairs", 3, "--json")[0])
    store = json.loads(gogh(box, "commission", "--pairs", 3, "--json", "--db",
                            box.path("gogh.db"))[0])
    keys = ("gpu", "workload", "beside", "why")
    check([[m[k] for k in keys] for m in here["measurements"]] ==
          [[m[k] for k in keys] for m in store["measurements"]], here["measurements"],
          store["measurements"])
    cluster = write(box, "one.cluster", "node a p100:1\n")
    out, _ = gogh(box, "commission", "--db", box.path("gogh.db"), "--cluster", cluster)
    check("p100" in out and "v100" not in out, out)


def test_run(box):
    out, err = gogh(box, "commission", "--pairs", 4, "--run", "--json", "--minutes", 20)
    told = json.loads(out)
    check(len(told["measurements"]) == 4, told)
    check(all(m["state"] == "taken" for m in told["measurements"]), told["measurements"])
    check("4 of 4: " in err, err)
    jobs = box.jobs()[-4:]
    check(len(jobs) == 4 and all(j["state"] == "finished" for j in jobs), jobs)
    check(all(j["exclusive"] and j["priority"] == -1 for j in jobs), jobs)
    check(all(j["gpu_type"] == m["gpu"] or j["types"] == [m["gpu"]]
              for j, m in zip(jobs, told["measurements"])), jobs)
    for gpu, seconds, reports, *_, wait in log(box):
        check(float(seconds) >= 15 and reports == "False", gpu, seconds, reports)
        check(float(wait) >= max(60, float(seconds)), "gogh-pair waits for", wait)
    check(err.count("has started") == 4, err)
    for m in told["measurements"]:
        check_taken(box, m)
    types = {t["gpu"].split("-")[0]: t for t in told["changes"]["types"]}
    for pick in told["measurements"]:
        t = types[pick["gpu"].split("-")[0]]
        check(t["slowdown_sd"] < t["slowdown_sd_before"] and t["alone_sd"] < t["alone_sd_before"], t)
    largest = told["changes"]["largest"]
    check(1 <= len(largest) <= 6 and {c["beside"] is None for c in largest} == {True, False}, largest)
    # None of it is of the jobs themselves: four cells a pair, or two of a program beside itself.
    cells = {(m["gpu"], m["workload"], m["beside"]) for m in measurements(box)}
    want = set()
    for m in told["measurements"]:
        a, b, gpu = m["workload"], m["beside"], m["gpu"]
        want |= {(gpu, a, None), (gpu, b, None), (gpu, a, b), (gpu, b, a)}
    check(cells == want, cells, want)


def check_taken(box, pick):
    """The speeds that pair.py has told."""
    speed = {"p100": 5.0, "v100": 8.0}[pick["gpu"].split("-")[0]]
    found = {(m["workload"], m["beside"]): m for m in measurements(box)
             if m["gpu"] == pick["gpu"]}
    alone = found[(pick["workload"], None)]
    check(abs(alone["throughput"] - speed) < 1e-6 and abs(alone["watts"] - 100) < 1e-6, alone)
    beside = found[(pick["workload"], pick["beside"])]
    factor = (0.5, 0.4 ** 0.5 * 0.5 ** 0.5)[pick["workload"] == pick["beside"]]
    low, high = sorted((factor, 0.5))
    check(speed * (low - 0.06) < beside["throughput"] < speed * (high + 0.01), pick, beside)
    profile = {w["name"]: w for w in box.get("/v1/workloads")["workloads"]}[pick["workload"]]
    check(profile["gpu_activity"] == 0.8 and profile["solo_watts"] == 100, profile)


def believed(box, cells):
    """Means and standard deviations of (gpu, workload, beside), with all that was measured."""
    targets = [dict(zip(("gpu", "workload", "beside"), cell)) for cell in cells]
    answer = box.must("POST", "/v1/commission", {"programs": [], "pairs": 0, "targets": targets})
    return [(t["mean"], t["sd"]) for t in answer["targets"]]


def estimated(box, cell):
    """The same number of GET /v1/estimates."""
    asked = {k: v for k, v in zip(("gpu", "workload", "beside"), cell) if v}
    one = box.get("/v1/estimates?" + urllib.parse.urlencode(asked))["estimates"][0]
    return one["slowdown" if cell[2] else "speed"]


def test_same_numbers(box):
    """What is told of a cell is what estimates have, also where little is known of it."""
    names = [w["name"] for w in box.get("/v1/workloads")["workloads"]]
    gpus = sorted({m["gpu"] for m in measurements(box)})
    cells = [(g, w, b) for g in gpus for w in names for b in [None] + names]

    def is_same():
        told = believed(box, cells)
        check(max(sd for _, sd in told) > 0.2, "all of it is known", told)
        return all(abs(mean / estimated(box, cell) - 1) < 0.01
                   for cell, (mean, _) in zip(cells, told))
    until("both say the same", is_same)


def test_in_file(box):
    """The table stands before what is told of the jobs, in a file too."""
    own = write(box, "more.programs", "workload=vgg16 batch=8 -- run\nworkload=a3c -- run\n")
    with open(box.path("both"), "w+") as f:
        subprocess.run([os.environ["GOGH"], "commission", "--pairs", "1", "--run",
                        "--programs", own], cwd=box.dir,
                       env=dict(os.environ, GOGH_SOCKET=box.socket, GOGH_PAIR=PAIR, GOGH_BURN=PAIR),
                       stdin=subprocess.DEVNULL, stdout=f, stderr=f, timeout=300, check=True)
        f.seek(0)
        text = f.read()
    at = [text.find(s) for s in ("PROGRAM OF", "has started", "taken", "How sure")]
    check(-1 not in at and at == sorted(at), text)


def test_unknown_type(box):
    """GPUs that nobody described are named as left out."""
    write(box, "odd.csv", "workload,gpu,neighbour,throughput\nresnet50,abacus,,3\nlm,v100,,4\n")
    gogh(box, "import", "csv", box.path("odd.csv"), "--db", box.path("odd.db"))
    own = write(box, "odd.programs", "workload=vgg16 batch=8 -- run\n")
    out, _ = gogh(box, "commission", "--db", box.path("odd.db"), "--programs", own, "--pairs", 2)
    check("Left out" in out and "abacus. Describe" in out, out)


def test_restart(box):
    """What was measured, and what is believed, is the same after a kill."""
    before = measurements(box)
    cells = [(m["gpu"], m["workload"], m["beside"]) for m in before]
    was = believed(box, cells)
    check(any(abs(mean - 5) < 0.2 and sd < 0.05 for mean, sd in was), was)
    box.kill()
    box.start()
    check(before == measurements(box), before)
    for cell, x, y in zip(cells, was, believed(box, cells)):
        check(all(abs(a - b) < 0.01 * a for a, b in zip(x, y)), cell, x, y)


def test_own_programs(box):
    """Programs of the site's own: what they run is what is to be known."""
    own = write(box, "own.programs", "# ours\nworkload=resnet50 batch=64 -- sleep one\n"
                "workload=\"our net\" batch=8 new=yes -- /bin/sh -c \"true --x=1\"   # by hand\n")
    out, _ = gogh(box, "commission", "--programs", own, "--pairs", 3, "--json")
    told = json.loads(out)
    check([p["name"] for p in told["programs"]] ==
          ["ResNet-50 (batch size 64)", "our net (batch size 8)"], told["programs"])
    check(any(t["workload"] == "our net (batch size 8)" for t in told["targets"]), told["targets"])
    out, err = gogh(box, "commission", "--programs", own, "--pairs", 2, "--run", "--dir", "own")
    check("How sure estimates are" in out and "->" in out and "slowdown" in out, out)
    check(any(m["workload"] == "our net (batch size 8)" for m in measurements(box)), err)


def test_misfits(box):
    """What does not fit is told as such; what fails is told with its last words; nobody is misled."""
    own = write(box, "bad.programs", "workload=bert-base batch=8 -- run full\n")
    out, err = gogh(box, "commission", "--programs", own, "--pairs", 1, "--run", "--dir", "full")
    check("taken" in err, out, err)
    check(any(m["workload"].lower().startswith("bert") and m["unfit"] > 0 and m["measured"] == 0
              for m in measurements(box)), measurements(box)[:3])
    own = write(box, "bad.programs", "workload=bert-base batch=4 -- run shaky\n")
    gogh(box, "commission", "--programs", own, "--pairs", 1, "--run", "--dir", "shaky")
    shaky = [m for m in measurements(box) if m["workload"] == "bert-base (batch size 4)"]
    check(len(shaky) == 2 and all(m["sd"] > 0.1 for m in shaky), "sure of what is not", shaky)
    n = box.get("/v1/measurements")["total"]
    for word, says in (("fail", "the program died: no such dataset"),
                       ("blame", "the second program (run) ended with exit status 3: no such "),
                       ("mute", "must be able to write to --dir"),
                       ("lie", "measure it again"), ("lost", "file system that they share")):
        own = write(box, "bad.programs", "workload=vgg16 batch=8 -- run %s\n" % word)
        out, err = gogh(box, "commission", "--programs", own, "--pairs", 1, "--run", "--dir", word,
                        status=1)
        check(says in err and "nothing was measured" in err, word, out, err)
    check(box.get("/v1/measurements")["total"] == n, "something was taken")


def test_interrupted(box):
    """Told to end half-way: what ended counts, nothing is left behind."""
    own = write(box, "slow.programs", "workload=lm batch=20 -- run hang\n")
    for signo in (signal.SIGINT, signal.SIGTERM):
        process = start(box, ["commission", "--programs", own, "--pairs", 2, "--run", "--dir",
                              "slow"])
        until("a job runs", lambda: any(j["state"] == "running" for j in box.jobs()))
        process.send_signal(signo)
        out, err = process.communicate(timeout=300)
        check(process.returncode == 1 and "the rest is cancelled" in err, out, err)
        until("no job is left", lambda: all(j["state"] in ("finished", "failed", "cancelled")
                                            for j in box.jobs()))
        until("no process is left", lambda: not box.processes_called("pair.py"))


def at_terminal(box, answer):
    """What stands on a terminal where that was answered."""
    ours, theirs = pty.openpty()
    own = write(box, "new.programs", "workload=gpt2 batch=4 -- run\nworkload=yolov3 -- run\n")
    process = subprocess.Popen([os.environ["GOGH"], "commission", "--pairs", "1", "--dir", "asked",
                                "--programs", own],
                               cwd=box.dir, env=dict(os.environ, GOGH_SOCKET=box.socket,
                                                     GOGH_PAIR=PAIR, GOGH_BURN=PAIR),
                               stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text, is_asked = "", False
    with contextlib.suppress(OSError):  # its end
        while True:
            more = os.read(ours, 4096).decode()
            if not more:
                break
            text += more
            if "[y/N]" in text and not is_asked:
                is_asked = True
                os.write(ours, answer)
    os.close(ours)
    check(process.wait(300) == 0, text)
    return text


def test_asked(box):
    """At a terminal nothing is run unless somebody says so."""
    n = len(box.jobs())
    check("Run it now, about" in at_terminal(box, b"\n") and len(box.jobs()) == n, "it was run")
    check("1 of 1: " in at_terminal(box, b"y\n") and len(box.jobs()) == n + 1, "it was not run")


def test_replay(box, record):
    """What was recorded decides the same again, with all that was measured."""
    done = subprocess.run([os.environ["GOGH"], "replay", "--record", record, "--json"], text=True,
                          capture_output=True, timeout=300, check=False)
    told = json.loads(done.stdout)
    check(told["decisions"] > 10 and told["same"] == told["decisions"], told)
    check(told["measurements"] > 20 and told["parts"] == 2, told)


def refusals():
    yield "workload=x\n", "bad.programs:1: which command?"
    yield "# a\n\n-- true\n", "bad.programs:3: which workload?"
    yield "workload=x batch=0 -- true\n", "batch=N (a whole number from 1)"
    yield "workload=x speed=3 -- true\n", "bad.programs:1: 'speed=3'"
    yield "train.py -- true\n", "stands before --"
    yield "workload=x -- a --- b\n", "'---' parts programs"
    yield "\n", "no program"
    yield "workload=x -- a\n" * 65, "at most 64 programs"
    yield "workload=resnet51 -- a\n", "bad.programs:1: workload: 'resnet51' is not"
    yield "workload=vgg17 -- a\n", "say so by new=yes in its line"
    yield "workload=resnet50 -- a\n\nworkload=resnet50 -- b\n", "bad.programs:3: 'ResNet-50"


def test_refusals(box):
    for text, says in refusals():
        write(box, "bad.programs", text)
        _, err = gogh(box, "commission", "--programs", "bad.programs", status=1)
        check(says in err, repr(text), "want", says, "got", err)
    _, err = gogh(box, "commission", "--run", "--minutes", 1, status=2)
    check("--minutes" in err and "2" in err, err)
    gogh(box, "commission", "--minutes", 2, "--pairs", 1)
    gogh(box, "commission", "--cluster", "x", status=2)
    gogh(box, "commission", "--db", "x", "--run", status=2)
    _, err = gogh(box, "commission", status=1, env={"GOGH_BURN": box.path("none")})
    check("--programs FILE" in err, err)
    n = len(box.jobs())
    _, err = gogh(box, "commission", "--run", status=1, env={"GOGH_PAIR": box.path("none")})
    check("$GOGH_PAIR" in err and len(box.jobs()) == n, err)
    _, err = gogh(box, "commission", "--run", "--dir", "gogh.conf", status=1)
    check("gogh.conf is no directory" in err and len(box.jobs()) == n, err)
    _, err = gogh(box, "commission", "--run", "--pairs", 1, "--dir", "false", status=1,
                  env={"GOGH_PAIR": shutil.which("false")})
    check("name your own programs with --programs" in err, err)


def test_bad_measurement(box):
    """One that is bad and nothing is taken."""
    n = box.get("/v1/measurements")["total"]
    good = {"workload": "ResNet-50 (batch size 64)", "gpu": "v100", "throughput": 3.0}
    for bad in ({"workload": "unheard-of", "gpu": "v100", "throughput": 1},
                dict(good, gpu="abacus"), dict(good, throughput=-1), dict(good, unfit=True),
                dict(good, noise=11), dict(good, watts="many")):
        answer = box.ask("POST", "/v1/measurements", {"measurements": [good, bad]})
        check(answer.status == 400, bad, answer.text)
    check(box.get("/v1/measurements")["total"] == n, "something was taken")
    cell = [m for m in measurements(box) if m["workload"] == good["workload"] and
            m["beside"] is None and m["gpu"].startswith("v100")]
    check(all(abs(m["throughput"] - 8) < 1e-6 for m in cell), cell)


def test_scopes():
    """Who may only read or submit cannot teach, and hears so before anything is run."""
    port = free_port()
    with Box(GPUS) as box:
        tokens = box.path("tokens")
        for scope in ("read", "submit"):
            made = subprocess.run([os.environ["GOGH"], "token", "new", scope, "--scope", scope,
                                   "--owner", "nobody", "--tokens", tokens], capture_output=True, text=True, check=True)
            write(box, scope, made.stdout.split()[-1])
        box.start(["listen 127.0.0.1:%d" % port, "tokens " + tokens])
        for scope in ("read", "submit"):
            with open(box.path(scope)) as f:
                env = {"GOGH_URL": "http://127.0.0.1:%d" % port, "GOGH_TOKEN": f.read(),
                       "GOGH_SOCKET": ""}
            for words in ((), ("--run",)):
                _, err = gogh(box, "commission", *words, status=1, env=env)
                check("operate" in err, err)
            connection = http.client.HTTPConnection("127.0.0.1", port)
            answer = ask_by(connection, "POST", "/v1/measurements", {"measurements": [
                {"workload": "x", "gpu": "v100", "throughput": 1}]},
                            {"Authorization": "Bearer " + env["GOGH_TOKEN"]})
            check(answer.status == 403, scope, answer.status, answer.text)
        check(not box.jobs() and not measurements(box), "something was run")
        box.finish()


def test_short_time():
    """One round: as many on each type as it has GPUs, a crowded type leaves others alone."""
    with Box(GPUS) as box:
        box.start()
        picks = json.loads(gogh(box, "commission", "--pairs", 10, "--json")[0])["measurements"]
        gpus = [m["gpu"] for m in picks]
        there = {g: 1 if g.startswith("p100") else 2 for g in gpus}
        want = [m for i, m in enumerate(picks) if gpus[:i].count(m["gpu"]) < there[m["gpu"]]]
        check(len(there) == 2 and 3 == len(want) < len(picks), "of no use here", gpus)
        process = start(box, ["commission", "--pairs", 10, "--run", "--minutes", 2, "--json"])
        out, err = process.communicate(timeout=300)
        keys = ("gpu", "workload", "beside")
        told = json.loads(out)["measurements"]
        check([[m[k] for k in keys] for m in told] == [[m[k] for k in keys] for m in want], told,
              want)
        says = "%d of %d are left out: --minutes 2" % (len(picks) - len(want), len(picks))
        check(says in err and "3 of 3: " in err, err)
        box.finish()


def on_slurm():
    """The same by way of a real Slurm cluster, where nobody tells jobs their GPU's type."""
    need_slurm()
    with Slurm("k80:1 v100:2", ["warmup_s 1"]) as box:
        box.start()
        told = json.loads(gogh(box, "commission", "--pairs", 3, "--run", "--json")[0])
        check(len(told["measurements"]) == 3, told)
        check(all(m["state"] == "taken" for m in told["measurements"]), told["measurements"])
        cells = {(m["gpu"], m["workload"], m["beside"]): m["throughput"] for m in measurements(box)}
        for m in told["measurements"]:
            check(abs(cells[(m["gpu"], m["workload"], None)] - 3) < 1e-6, cells)
        check(all(reports == "False" for _, _, reports, *_ in log(box)), log(box))
        box.finish()


def on_box():
    with Box(GPUS) as box:
        record = box.path("record")
        box.lines.append("record " + record)
        box.start()
        for test in (test_names, test_offline, test_refusals, test_run, test_same_numbers,
                     test_restart, test_in_file, test_asked, test_unknown_type,
                     test_own_programs, test_misfits, test_interrupted, test_bad_measurement):
            print(test.__name__, flush=True)
            test(box)
        box.finish()
        test_replay(box, record)
    test_short_time()
    test_scopes()


if __name__ == "__main__":
    sys.exit(run(on_slurm if sys.argv[1:] == ["slurm"] else on_box))
