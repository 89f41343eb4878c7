#!/usr/bin/env python3
"""Stands in for gogh-pair (docs/formats/pair.md) and, with --list, for gogh-burn.

Speeds are not measured: they follow from the GPU type and the commands' words, so that a test knows
what must arrive. A command of "hang" waits for its end, "fail" fails, "full" does not fit, "shaky"
is not steady, "lie" leaves a file that says nothing, "lost" none at all, "blame" fails as gogh-pair
does for its second program, "mute" fails and leaves no file of errors. Each run leaves a line in
the file "log" beside its result.
"""
import json
import os
import sys
import time

ALONE = {"k80": 2.0, "p100": 5.0, "v100": 8.0}


def split(words):
    if "---" in words:
        at = words.index("---")
        return [words[:at], words[at + 1:]]
    return [words]


def main():
    if sys.argv[1:] == ["--list", "--json"]:
        names = ("burn-small", "burn-large", "burn-host")
        print(json.dumps([{"name": n, "batch": 16} for n in names]))
        return 0
    at = sys.argv.index("--")
    options = dict(zip(sys.argv[1:at:2], sys.argv[2:at:2]))
    commands = split(sys.argv[at + 1:])
    words = [c[-1] for c in commands]
    with open(os.path.join(os.path.dirname(options["--out"]), "log"), "a") as log:
        log.write("%s %s %s %s %s\n" % (os.environ.get("GOGH_GPU_TYPE"), options["--seconds"],
                                        "GOGH_REPORTS" in os.environ, " ".join(words),
                                        options["--wait"]))
    if "hang" in words:
        time.sleep(3600)
    if "fail" in words:
        print("first line\nthe program died: no such dataset", file=sys.stderr)
        return 1
    if "blame" in words:
        print("gogh-pair: the second program (run) ended with exit status 3; its last words:\n"
              "a line\nno such dataset", file=sys.stderr)
        return 1
    if "mute" in words:
        os.unlink(options["--out"].replace(".json", ".err"))
        return 1
    gpu = os.environ.get("GOGH_GPU_TYPE")  # under Slurm nobody says
    speed = ALONE[gpu.split("-")[0]] if gpu else 3.0
    alone = [{"steps_s": None if w == "full" else speed, "noise": 0.01, "watts": 100.0,
              "gpu_activity": 0.8, "mem_activity": 0.3, "mem_used_bytes": 1e9,
              "fits": w != "full", "steady": w != "shaky"} for w in words]
    together = None
    if len(words) == 2:
        fits = "full" not in words
        together = {"steps_s": [speed * 0.5, speed * 0.4] if fits else [None, None],
                    "noise": [None, 0.02], "watts": 130.0, "fits": fits,
                    "steady": [w != "shaky" for w in words]}
    result = {"gpu_type": gpu, "host": "here", "seconds": 20, "alone": alone, "together": together}
    if "lie" in words:
        result = {"gpu_type": gpu}
    if "lost" not in words:
        with open(options["--out"] + ".part", "w") as f:
            json.dump(result, f)
        os.rename(options["--out"] + ".part", options["--out"])
    return 0


sys.exit(main())
