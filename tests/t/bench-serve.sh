#!/usr/bin/env bash
# `gogh bench serve` at a small part of its size: every figure is there, a Slurm that answers is
# asked and gets back what it was given, and nothing is left behind.
. "$SRC/tests/helpers/script.sh"
command -v python3 >/dev/null || { echo "no python3: skipped"; exit 77; }
mkdir "$dir/tmp" "$dir/bin"

cat >"$dir/bin/squeue" <<END
#!/bin/sh
echo "JOBID NAME"
END
cat >"$dir/bin/sbatch" <<END
#!/bin/sh
echo "\$*" >>"$dir/given"
echo "77;here"
END
cat >"$dir/bin/scancel" <<END
#!/bin/sh
echo "\$*" >>"$dir/back"
END
chmod +x "$dir"/bin/*

export TMPDIR=$dir/tmp
PATH=$dir/bin:$PATH "$GOGH" bench serve --scale 500 --runs 2 --json >"$dir/all.json"

sanitizers=$(ldd "$GOGHD" | grep -c 'lib[at]san' || true)
python3 - "$dir" "$sanitizers" <<'END'
import json, sys
dir, is_sanitized = sys.argv[1], sys.argv[2] != "0"
got = json.load(open(dir + "/all.json"))
figures = {f["name"]: f for f in got["figures"]}
wanted = ("sync submit submit-p50 submit-p99 submit-worst submit-group list reports reports-decide "
          "restart restart-adopt memory memory-peak arrivals arrivals-p99 arrivals-failed arrivals-bare "
          "arrivals-gap arrivals-place arrivals-memory slurm-sbatch slurm-submit slurm-squeue "
          "slurm-jobs stalls longest-turn").split()
assert sorted(figures) == sorted(wanted), sorted(figures)
limits = {"submit": 1000, "submit-p99": 20, "list": 50, "reports": 15, "restart": 2,
          "memory": 300, "arrivals-failed": 0, "arrivals-bare": 0, "arrivals-memory": 300,
          "stalls": 0, "longest-turn": 100}
for name, f in figures.items():
    assert f["limit"] == limits.get(name), f
    assert (f["within"] is None) == (name not in limits), f
    assert f["min"] <= f["median"] <= f["max"], f
for name in "sync submit submit-p50 list restart restart-adopt memory slurm-submit".split():
    assert figures[name]["min"] > 0, figures[name]
assert figures["submit"]["runs"] == 2 and figures["slurm-jobs"]["runs"] == 2
assert got["scale"] == 500 and got["reports"]["taken"] == got["reports"]["sent"] > 0, got
assert got["reports"]["refused"] == 0, got
a = got["arrivals"]
assert a["gpus"] == 20 and a["jobs"] == 28 == a["running"] + a["waiting"], a
assert a["starts"] >= a["running"] > 0 and a["fallbacks"] == 0 and a["peak_bytes"] > 0, a
# A sanitizer's allocator may hang in a child forked beside a busy worker, and the child is ended.
# Such a decision has no gap; the figures must say the same.
assert 0 < a["certified"] <= a["decisions"] and a["deaths"] == figures["arrivals-failed"]["max"], a
assert a["decisions"] - a["certified"] == figures["arrivals-bare"]["max"] <= a["deaths"], a
assert is_sanitized or a["deaths"] == 0, a
assert a["must_met"] == (a["stalls"] == a["deaths"] == 0), a
given, back = open(dir + "/given").read(), open(dir + "/back").read()
assert given == "--parsable --hold --wrap true\n" * 2, given
assert back == "77\n" * 2, back
END

[ -z "$(ls "$dir/tmp")" ] || { echo "left behind: $(ls "$dir/tmp")"; exit 1; }

# Without Slurm it says so.
out=$("$GOGH" bench serve --scale 500 --runs 1 --rows slurm)
grep -q "slurm: left out" <<<"$out"

# A daemon that does not start is an error with its own words.
if GOGHD=/bin/false "$GOGH" bench serve --scale 500 --rows list 2>"$dir/err"; then
    echo "it went well without a daemon"
    exit 1
fi
grep -q "list: /bin/false is not ready" "$dir/err"
[ -z "$(ls "$dir/tmp")" ] || { echo "left behind: $(ls "$dir/tmp")"; exit 1; }
