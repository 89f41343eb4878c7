#!/usr/bin/env python3
"""What may go wrong with a machine: refused clearly, survived, and over when it is over.

    serve_faults.py [NAME...]       all of them, or these

Each fault has a box of its own. What needs root, or a file system of its own, is skipped where it
cannot be had, and says so.
"""
import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

from daemon import Box, check, read_bytes, run, until

LINES = ["decide_s 0.2", "warmup_s 1", "timeout_s 5"]
SPEEDS = (("k80", 50), ("v100", 100))
LM = {"workload": "LM", "batch": 20}


@contextlib.contextmanager
def small_box(lines=(), start=True):
    with Box("k80:1 v100:1", LINES + list(lines)) as box:
        with open(box.path("table"), "w") as f:
            f.writelines("%s w %d\n" % pair for pair in SPEEDS)
        if start:
            box.start()
        yield box


def job_ends(box, state="finished", **more):
    """A small job, from submission to its end."""
    job = box.submit(box.worker("w", steps=10, **LM, **more))["id"]
    return box.until_state(job, state)


def submit_says(box):
    answer = box.ask("POST", "/v1/jobs", box.worker("w", steps=10, **LM))
    return answer if answer.status != 201 else None


def lives(box):
    """It answers, and jobs can be read."""
    check(box.ask("GET", "/healthz").status == 200, "/healthz does not answer")
    check(box.ask("GET", "/v1/jobs").status == 200, "/v1/jobs does not answer")


def refuses_writes(box):
    """Submits are refused with 503 and a sentence, come when it is over, and reading goes on."""
    answer = until("a submit is refused", lambda: submit_says(box))
    check(answer.status == 503 and "Retry-After" in answer.headers, "gave", answer.status,
          answer.text)
    check(len(answer.message()) > 20, "says only", answer.text)
    print("    %s" % answer.message())
    lives(box)
    check(box.ask("GET", "/readyz").status == 503, "/readyz says that all is well")


def recovers(box):
    until("a submit is taken", lambda: submit_says(box) is None)
    until("it is ready again", lambda: box.ask("GET", "/readyz").status == 200)
    job_ends(box)


def is_same_after_restart(box):
    before = {j["id"]: j["name"] for j in box.jobs()}
    box.kill()
    box.start()
    check({j["id"]: j["name"] for j in box.jobs()} == before, "a restart has other jobs:", before)


# ---- the faults ----

def file_limit():
    """No file may grow: what a full disk does, for those who are not root."""
    with small_box() as box:
        job_ends(box)
        limit = resource.prlimit(box.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(box.process.pid, resource.RLIMIT_FSIZE, (4096, limit[1]))
        refuses_writes(box)
        resource.prlimit(box.process.pid, resource.RLIMIT_FSIZE, limit)
        recovers(box)
        is_same_after_restart(box)
        box.finish()


def disk_full():
    with small_box(start=False) as box:
        disk = box.path("disk")
        os.mkdir(disk)
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "gogh",
                                                disk], stderr=subprocess.DEVNULL).returncode:
            print("    skipped: a file system of its own takes root")
            return
        try:
            box.start(["store %s/gogh.db" % disk])
            job_ends(box)
            with open(disk + "/filler", "wb", buffering=0) as f:
                with contextlib.suppress(OSError):
                    while True:
                        f.write(bytes(4096))
            refuses_writes(box)
            os.unlink(disk + "/filler")
            recovers(box)
            box.finish()
        finally:
            for pid in box.processes():
                os.kill(pid, signal.SIGKILL)
            until("it is unmounted", lambda: subprocess.run(
                ["umount", disk], stderr=subprocess.DEVNULL).returncode == 0)


def as_somebody(box):
    """root may write everywhere: then the daemon is nobody's."""
    if os.geteuid() != 0:
        return
    box.uid = 65534
    for name in [box.dir, box.path("work")]:
        os.chown(name, box.uid, box.uid)


def read_only_store():
    with small_box(start=False) as box:
        as_somebody(box)
        if subprocess.run([os.environ["GOGHD"], "--version"], preexec_fn=box.become,
                          stdout=subprocess.DEVNULL).returncode:
            print("    skipped: nobody may not run", os.environ["GOGHD"])
            return
        os.mkdir(box.path("store"))
        if box.uid:
            os.chown(box.path("store"), box.uid, box.uid)
        store = ["store " + box.path("store/gogh.db")]
        box.start(store)
        box.stop()
        os.chmod(box.path("store/gogh.db"), 0o444)
        os.chmod(box.path("store"), 0o555)
        said = box.refused(store)
        check("store/gogh.db" in said, "does not name the store:", said)
        print("    " + said.strip().splitlines()[-1])
        os.chmod(box.path("store"), 0o755)
        os.chmod(box.path("store/gogh.db"), 0o644)
        box.start(store)
        box.finish()


def no_run_directory():
    with small_box() as box:
        job_ends(box)
        os.rename(box.path("runs"), box.path("away"))
        with open(box.path("runs"), "w"):
            pass
        job = box.submit(box.worker("w", steps=10, **LM))["id"]
        until("it is said", lambda: box.path("runs") in box.log())
        lives(box)
        state = box.job(job)
        check(state["state"] == "waiting", "without a directory to run in it is", state)
        os.unlink(box.path("runs"))
        os.rename(box.path("away"), box.path("runs"))
        box.until_state(job, "finished")
        box.finish()
    with small_box(start=False) as box:
        with open(box.path("file"), "w"):
            pass
        said = box.refused(["run_dir " + box.path("file/runs")])
        check("file/runs" in said, "does not name it:", said)
        print("    " + said.strip().splitlines()[-1])


def no_program():
    with small_box() as box:
        body = dict(box.worker("w", steps=10, **LM), argv=["/no/such/program"])
        job = box.submit(body)["id"]
        found = box.until_state(job, "failed")
        check("/no/such/program" in (found["reason"] or ""), "says only", found["reason"])
        print("    " + found["reason"])
        job = box.submit(dict(body, argv=[os.environ["WORKER"]], retries=2))["id"]
        found = box.until_state(job, "failed")
        check(found["failures"] == 3 and "exit 2" in found["reason"], "tried again?", found)
        job_ends(box)
        box.finish()


def keeper_killed():
    with small_box() as box:
        job = box.submit(box.worker("w", steps=100000, **LM))["id"]
        box.until_state(job, "running")
        until("it works", lambda: [r for r in box.work_log() if r["what"] == "start"])
        keeper, = box.processes_called("keeper")
        os.kill(keeper, signal.SIGKILL)
        until("its end is noticed", lambda: box.job(job)["state"] != "running" or
              len([r for r in box.work_log() if r["what"] == "start"]) > 1)
        found = box.job(job)
        print("    %s: %s" % (found["state"], found["reason"]))
        check(not [r for r in box.work_log() if r["what"] == "twice"], "it ran twice at a time")
        if found["state"] not in ("failed", "cancelled"):
            box.must("POST", "/v1/jobs/%d/cancel" % job)
        until("nothing of it is left", lambda: not box.processes_called("worker"))
        job_ends(box)
        box.finish()


def stopped_job():
    """One that was halted hears that it is to end; one that does not listen is killed."""
    with small_box() as box:
        job = box.submit(box.worker("w", steps=100000, grace_s=20, **LM))["id"]
        box.until_state(job, "running")
        until("it works", lambda: box.processes_called("worker"))
        row = until("it says so", box.work_log)[0]
        os.kill(row["pid"], signal.SIGSTOP)
        box.must("POST", "/v1/jobs/%d/cancel" % job)
        until("it is gone", lambda: not box.processes_called("worker"))
        check(box.work_log()[-1]["how"] == "saved", "it could not save:", box.work_log())

        job = box.submit(box.worker("w", steps=100000, grace_s=1, on_signal="ignore", **LM))["id"]
        box.until_state(job, "running")
        until("it works", lambda: box.work_log()[-1]["what"] == "start")
        began = time.monotonic()
        box.must("POST", "/v1/jobs/%d/cancel" % job)
        until("it is gone", lambda: not box.processes_called("worker"))
        check(time.monotonic() - began > 0.9, "it was killed before its time")
        check(box.job(job)["state"] == "cancelled", "it is", box.job(job))
        job_ends(box)
        box.finish()


def lure(box, job, workload):
    """Tell that the other type is far better for it, and wait until it is there."""
    here = box.job(job)["gpu_type"]
    other = "v100" if here == "k80" else "k80"
    for gpu, speed in ((here, 1), (other, 5000)):
        box.must("POST", "/v1/measurements", {"measurements": [
            {"workload": workload, "gpu": gpu, "throughput": speed, "noise": 0.01}] * 3})
    until("it is moved", lambda: (box.job(job)["moves"], box.job(job)["gpu_type"]) == (1, other))


def starts(box, job):
    return [r for r in box.work_log() if r["job"] == job and r["what"] == "start"]


def moved_job():
    """Halted, it is woken to save, and goes on elsewhere; deaf, it is killed after its grace."""
    with small_box(["set settle_s 0", "set move_s 1"]) as box:
        job = box.submit(box.worker("w", steps=100000, grace_s=20, **LM))["id"]
        until("it works", lambda: box.job(job)["speed"])
        os.kill(starts(box, job)[0]["pid"], signal.SIGSTOP)
        lure(box, job, "LM (batch size 20)")
        saved = [r for r in box.work_log() if r["how"] == "saved"]
        until("it works there", lambda: len(starts(box, job)) == 2)
        check(saved and starts(box, job)[1]["steps"] >= saved[0]["steps"] > 0, "it did not go on:",
              box.work_log())
        box.must("POST", "/v1/jobs/%d/cancel" % job)

        deaf = box.submit(box.worker("w", steps=100000, grace_s=1, on_signal="ignore",
                                     workload="ResNet-18", batch=128))["id"]
        until("it works", lambda: box.job(deaf)["speed"])
        lure(box, deaf, "ResNet-18 (batch size 128)")
        until("it works there", lambda: len(starts(box, deaf)) == 2)
        check(not [r for r in box.work_log() if r["what"] == "twice"], "it ran twice at a time")
        box.must("POST", "/v1/jobs/%d/cancel" % deaf)
        until("nothing is left", lambda: not box.processes_called("worker"))
        box.finish()


def descriptors():
    """All descriptors but a few are taken, and then come back."""
    with small_box(["connections_max 400"]) as box:
        job_ends(box)
        pid = box.process.pid
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        most = max(int(n) for n in os.listdir("/proc/%d/fd" % pid)) + 8
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, limit[1]))
        crowd = []
        for _ in range(100):
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            with contextlib.suppress(OSError):
                s.connect(box.socket)
            crowd.append(s)
        until("all are taken", lambda: len(os.listdir("/proc/%d/fd" % pid)) >= most)
        check(box.process.poll() is None, "the daemon ended")
        cpu = cpu_s(pid)
        time.sleep(1)  # a measurement, no waiting: does it turn in circles?
        check(cpu_s(pid) - cpu < 0.6, "it burns", cpu_s(pid) - cpu, "s of CPU in a second")
        for s in crowd:
            s.close()
        until("it answers again", lambda: box.try_ask("GET", "/healthz", timeout=2))
        recovers(box)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
        box.finish()


def cpu_s(pid):
    words = read_bytes("/proc/%d/stat" % pid).rsplit(b")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def set_clock(box, ahead_s):
    """In place: the daemon has the file mapped, and one of no length would be its end."""
    fd = os.open(box.path("ahead"), os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(fd, struct.pack("d", ahead_s), 0)
    os.close(fd)


def joules(box):
    return sum(g["joules"] for g in box.get("/v1/gpus")["gpus"])


def clock_jumps():
    """An hour forward, two back: nobody notices but the log."""
    with small_box(["power_s 0.5"], start=False) as box:
        set_clock(box, 0)
        first = time.monotonic()
        box.start(env={"LD_PRELOAD": os.environ["CLOCK_JUMP_LIB"], "CLOCK_JUMP": box.path("ahead"),
                       "ASAN_OPTIONS": "verify_asan_link_order=0:" +
                                       os.environ.get("ASAN_OPTIONS", "")})
        long = box.submit(box.worker("w", steps=600, **LM))["id"]
        box.until_state(long, "running")
        until("it is heard of", lambda: box.job(long)["speed"])
        for ahead_s, word in ((3600, "forward"), (-3600, "back")):
            before_j, began = joules(box), time.monotonic()
            set_clock(box, ahead_s)
            until("it is said", lambda word=word: "clock was set " + word in box.log())
            job_ends(box)
            passed_s = time.monotonic() - began
            check(joules(box) - before_j < 600 * passed_s + 100, "an hour's energy in", passed_s,
                  "s:", joules(box) - before_j)
        box.until_state(long, "finished")
        for j in box.jobs():
            check(j["waited_s"] >= 0 and j["moves"] == 0, "waited", j)
        is_same_after_restart(box)
        box.stop()
        box.start()
        report = box.get("/v1/report")["total"]
        passed_s = time.monotonic() - first
        check(report["joules"] < 600 * passed_s + 100, "an hour's energy in", passed_s,
              "s of the report:", report)
        box.finish()


def spoil(path, offset, count):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(b"\xa5" * count)


def corrupted_store():
    for what, offset in (("its head", 0), ("its middle", None)):
        with small_box() as box:
            for _ in range(3):
                job_ends(box)
            box.stop()
            path = box.path("gogh.db")
            size = os.path.getsize(path)
            spoil(path, 4096 if offset is None else offset, size - 4096 if offset is None else 100)
            said = box.refused()
            check("gogh.db" in said, "does not name the store:", said)
            print("    %s: %s" % (what, said.strip().splitlines()[-1]))
            check(not box.processes(), "processes are left")


def two_daemons():
    with small_box() as box:
        with Box("k80:1 v100:1", LINES) as other:
            same = ["run_dir " + box.path("runs")]
            said = other.refused(same + ["store " + box.path("gogh.db")])
            print("    " + said.strip().splitlines()[-1])
            said = other.refused(["store " + box.path("gogh.db")])
            check("gogh.db" in said, "does not name the store:", said)
            print("    " + said.strip().splitlines()[-1])
            said = other.refused(["socket " + box.socket])
            check("gogh.sock" in said, "does not name the socket:", said)
        job_ends(box)
        box.finish()


FAULTS = (file_limit, disk_full, read_only_store, no_run_directory, no_program, keeper_killed,
          stopped_job, moved_job, descriptors, clock_jumps, corrupted_store, two_daemons)


def main():
    for fault in FAULTS:
        if len(sys.argv) == 1 or fault.__name__ in sys.argv[1:]:
            print(fault.__name__, flush=True)
            fault()


if __name__ == "__main__":
    sys.exit(run(main))
