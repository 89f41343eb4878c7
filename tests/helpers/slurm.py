"""A private, real Slurm cluster and a goghd that steers it, for tests.

    with Slurm("k80:2 v100:2") as s:            # the cluster is up, the daemon is not yet
        s.write_table({("k80", "w"): 20, ("v100", "w"): 40, ("k80", "w", "w"): 0.7})
        s.start()                               # goghd; waits until it has seen all nodes
        s.submit_worker("a", "w", steps=100, workload="LM", batch=20)            # gogh submit
        s.sbatch_worker("b", "w", steps=100, promise="workload=LM batch=20")     # sbatch, the gate
        s.until_named("a", "finished")
        s.finish()                              # all is ended, and nothing is left

What Box (daemon.py) has, this has too: ask, get, must, jobs, job, metric, cli, kill, stop. More:

    tool(*words)            tools/slurm-cluster on this cluster: tool("kill", "slurmctld", "STOP")
    slurm(*argv, user=)     a command of Slurm's, as a user; what it prints
    squeue(), placed()      Slurm's view: [{"id", "name", "state", ...}]; {name: nodes} of what runs
    have_ended(n)           all of n jobs, by both: who is being moved runs nowhere and has not
    status()                the "slurm" object of /v1/status
    named(name)             the job of that name, as GET /v1/jobs/{id} has it
    work_log(), seen()      what the workers wrote: who began and ended; who was where beside whom
    users                   names of accounts to submit as; one's own where the test is not root

Everything is below one directory, that users may enter. Paths of programs come from the
environment: GOGHD, GOGH, GOGH_SLURM_DRIVER, SRC.
"""
import collections
import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import threading
import time

from daemon import Box, CEILING_S, Failure, IS_ALL, check, read_bytes, run, until  # noqa: F401
from daemon import FINAL, check_deaths, until_gone

SRC = os.environ.get("SRC") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
CLUSTER = os.path.join(SRC, "tools/slurm-cluster")
GATE = os.path.join(SRC, "packaging/slurm/job_submit.lua")
PROGRAMS = ("tests/helpers/slurm_worker.py", "python/gogh.py", "docs/examples/server.py")  # of jobs
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable  # every user's
ACCOUNTS = ("nobody", "games", "mail", "news")  # every Debian has them

LINES = ["executor slurm", "slurm_partition gogh", "slurm_poll_s 1", "power model", "learn no",
         "warmup_s 2", "power_s 1", "decide_s 1", "grace_s 10", "set theta 2", "set settle_s 5",
         "set report_s 15", "set move_s 3"]


def need_slurm():
    """Exit with 77, saying so, where there is no Slurm to test with."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    for name in ("slurmctld", "slurmd", "munged", "sbatch"):
        if shutil.which(name, path=path) is None:
            print("skipped: %s is not installed" % name)
            sys.exit(77)


class Stalls(threading.Thread):
    """Turns of the daemon's loop that took longer than 100 ms, as its log has them. A turn for which
    the kernel let it wait for a CPU is not its fault: that time is taken off, as /proc tells it.
    A verdict by seconds: for make test-all alone.
    """

    def __init__(self, box):
        super().__init__(daemon=True)
        self.box, self.is_over, self.at = box, False, 0
        self.waits = collections.deque(maxlen=1000)  # (time, pid, s waited so far): some 20 s
        self.found = []  # (line, s taken, s waited)

    def sample(self):
        process = self.box.process
        words = read_bytes("/proc/%d/schedstat" % process.pid).split() if process else []
        if len(words) == 3:
            self.waits.append((time.monotonic(), process.pid, int(words[1]) / 1e9))

    def waited_s(self, since_s):
        if not self.waits:
            return 0
        _, pid, now = self.waits[-1]
        before = [w for at, p, w in self.waits if p == pid and at >= since_s]
        return now - before[0] if before else 0

    def read(self):
        text = read_bytes(self.box.path("daemon.log"))[self.at:]
        text = text[:text.rfind(b"\n") + 1]
        self.at += len(text)
        for line in text.decode(errors="replace").splitlines():
            if "loop was held for" in line:
                took_s = float(line.split("loop was held for ")[1].split()[0]) / 1e3
                since_s = time.monotonic() - took_s - 0.3
                self.found.append((line, took_s, self.waited_s(since_s)))

    def run(self):
        while not self.is_over:
            self.sample()
            self.read()
            time.sleep(0.02)

    def check(self):
        self.read()
        for line, _, waited_s in self.found:
            print("note: %s; %.0f ms of waiting for a CPU" % (line, 1e3 * waited_s))
        bad = [line for line, took_s, waited_s in self.found if took_s - waited_s > 0.1]
        check(not IS_ALL or not bad, len(bad), "turns of the loop took longer than 100 ms:", bad[:3])


class Slurm(Box):
    def __init__(self, gpus="k80:2 p100:2 v100:2 a100:2", lines=(), layout="node", gate=True,
                 options=()):
        super().__init__(gpus, lines)
        self.layout, self.has_gate, self.options = layout, gate, list(options)
        self.cluster = self.path("c")
        self.stalls = Stalls(self)
        self.conf = os.path.join(self.cluster, "slurm.conf")
        self.n_gpus = sum(int(item.rsplit(":", 1)[1]) for item in gpus.split())
        self.users = [u for u in ACCOUNTS if is_open(self.dir) and is_account(u)]
        self.users = self.users or [pwd.getpwuid(os.geteuid()).pw_name]
        os.chmod(self.dir, 0o755)
        os.chmod(self.path("work"), 0o777)  # of all users; sticky would keep them from its files
        for name in ("log", "seen"):
            with open(self.path("work/" + name), "w"):
                pass
            os.chmod(self.path("work/" + name), 0o666)

    def copy_programs(self):
        """To where every user can reach them."""
        os.mkdir(self.path("bin"), 0o755)
        for path in [os.path.join(SRC, p) for p in PROGRAMS] + [os.environ["GOGH"]]:
            shutil.copy(path, self.path("bin"))
        self.program = self.path("bin/" + os.path.basename(os.environ["GOGH"]))

    def __enter__(self):
        try:
            self.copy_programs()
            self.up()
            self.stalls.start()
        except BaseException:
            self.clean_up()
            raise
        return self

    # ---- the cluster ----

    def up(self):
        words = ["--gpus", self.gpus, "--layout", self.layout] + self.options
        if self.has_gate:
            words += ["--lua", self.write_gate()]
        self.tool("up", *words)

    def write_gate(self):
        """The gate as it is shipped, told where jobs report."""
        with open(GATE) as f:
            text = f.read()
        check('reports = "",' in text, "the gate has no line 'reports = \"\",' to fill in")
        name = self.path("gate.lua")
        with open(name, "w") as f:
            f.write(text.replace('reports = "",', 'reports = "unix:%s",' %
                                 self.path("reports.sock")))
        return name

    def tool(self, verb, *words):
        done = call([CLUSTER, verb, self.cluster] + list(words), stdin=subprocess.DEVNULL)
        check(done.returncode == 0, "slurm-cluster", verb, *words, done.stdout, done.stderr)
        return done.stdout

    def slurm(self, *argv, user=None, status=0, cwd=None, text=None):
        """Run a command of Slurm's; what it prints, or with another status what it complains."""
        done = call([str(a) for a in argv], env=self.environment(user), input=text or "",
                    cwd=cwd or self.path("work"), **as_user(user))
        check(done.returncode == status, *argv, "ended with %d, not %d:" %
              (done.returncode, status), done.stdout[-500:], done.stderr[-500:])
        return done.stdout if status == 0 else done.stderr

    def environment(self, user=None):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("GOGH_", "SLURM_", "SBATCH_", "SQUEUE_"))}
        env.update(SLURM_CONF=self.conf, GOGH_SOCKET=self.socket)
        if user is not None:
            env.update(USER=user, LOGNAME=user, HOME=self.path("work"))
        return env

    def squeue(self, states="all"):
        """What Slurm has, of all partitions, also of jobs that ended not long ago."""
        keys = ("id", "array_id", "name", "state", "nodes", "user", "partition", "reason")
        text = self.slurm("squeue", "--noheader", "--array", "--all", "-t", states,
                          "-o", "%A|%i|%j|%T|%N|%u|%P|%r")
        return [dict(zip(keys, line.split("|", 7))) for line in text.splitlines()]

    def placed(self):
        return {j["name"]: j["nodes"] for j in self.squeue("running")}

    def have_ended(self, n):
        jobs = self.jobs()
        return len(jobs) == n and all(j["state"] in FINAL for j in jobs) and not self.placed()

    # ---- the daemon ----

    def write_config(self, lines=None):
        """The last word on a subject counts; 'set' lines by their key."""
        usual = ["store " + self.path("gogh.db"), "run_dir " + self.path("runs"),
                 "socket " + self.socket + " mode=0666", "reports " + self.path("reports.sock"),
                 "slurm_conf " + self.conf]
        kept = {}
        for line in usual + LINES + self.lines + list(lines or ()):
            words = line.split()
            kept[tuple(words[:2]) if words[0] in ("set", "allow", "gputype", "workload") else
                 words[0]] = line
        name = self.path("gogh.conf")
        with open(name, "w") as f:
            f.write("\n".join(kept.values()) + "\n")
        return name

    def start(self, lines=None, env=None):
        super().start(lines, env)
        until("the daemon has seen all GPUs", lambda: self.get("/v1/status")["gpus"] == self.n_gpus)

    def reload(self, lines):
        """Other lines of the configuration, by SIGHUP."""
        self.write_config(lines)
        self.process.send_signal(1)

    def status(self):
        return self.get("/v1/status")["slurm"]

    def named(self, name):
        return self.job(name)

    def until_named(self, name, states):
        return self.until_state(name, states)

    # ---- jobs ----

    def write_table(self, speeds):
        """{(type, row): steps/s, (type, row, neighbour's row): factor}"""
        with open(self.path("table"), "w") as f:
            for key, value in speeds.items():
                f.write(" ".join(key) + " %g\n" % value)

    def worker_argv(self, name, row, steps=None, rate=None, until_file=None, on_signal="save"):
        amount = (["steps", str(steps)] if steps is not None else
                  ["rate", str(rate)] if rate is not None else ["until", until_file])
        return [PYTHON, "-I", "-S", "-B", self.path("bin/slurm_worker.py"), self.path("table"),
                self.path("work"), name, row] + amount + [on_signal]

    def gogh(self, *words, user=None, status=0):
        """`gogh` as a user; what it prints."""
        return self.slurm(self.program, *words, user=user, status=status)

    def submit_worker(self, name, row, steps=None, rate=None, until_file=None, on_signal="save",
                      user=None, **more):
        """By `gogh submit`; more: options by name, without their dashes. The job's id."""
        words = ["submit", "--name", name, "--stdout", self.path("work/%s.out" % name)]
        if steps is not None:
            words += ["--steps", steps]
        if rate is not None:
            words += ["--rate", rate]
        for key, value in more.items():
            words += ["--" + key.replace("_", "-")] + ([] if value is True else [value])
        words += ["--"] + self.worker_argv(name, row, steps, rate, until_file, on_signal)
        return int(self.gogh(*words, user=user).split()[1])

    def script(self, argv, lines=()):
        """A batch script: the lines after '#!', then the command."""
        quoted = " ".join("'%s'" % a.replace("'", "'\\''") for a in argv)
        return "\n".join(["#!/bin/sh"] + list(lines) + ["exec " + quoted, ""])

    def sbatch(self, name, argv, user=None, comment=None, lines=(), options=(), partition="gogh",
               status=0):
        """An unchanged script by sbatch; Slurm's number of the job."""
        words = ["sbatch", "--parsable", "-p", partition, "-J", name, "--open-mode=append",
                 "-o", self.path("work/%s.out" % name)]
        if comment is not None:
            words.append("--comment=" + comment)
        said = self.slurm(*words, *options, user=user, status=status, text=self.script(argv, lines))
        return int(said) if status == 0 else said

    def sbatch_worker(self, name, row, steps=None, rate=None, until_file=None, promise="",
                      by="comment", on_signal="save", **more):
        """The promise goes into the comment, or by="script" into #GOGH lines."""
        said = promise + (" steps=%s" % steps if steps is not None else "")
        if rate is not None:
            said += " rate=%s" % rate
        argv = self.worker_argv(name, row, steps, rate, until_file, on_signal)
        if by == "comment":
            return self.sbatch(name, argv, comment="gogh: " + said.strip(), **more)
        return self.sbatch(name, argv, lines=["#GOGH " + w for w in said.split()], **more)

    def work_log(self):
        names = ("what", "name", "run", "slurm_id", "places", "time_s", "steps", "how")
        kinds = (str, str, int, int, lambda t: t.split(","), float, float, str)
        return self.rows("work/log", names, kinds)

    def seen(self):
        names = ("time_s", "name", "run", "places", "beside")
        kinds = (float, str, int, lambda t: t.split(","),
                 lambda t: [] if t == "-" else t.split(","))
        return self.rows("work/seen", names, kinds)

    def rows(self, name, names, kinds):
        lines = read_bytes(self.path(name)).decode().splitlines()
        return [{n: kind(word) for n, kind, word in zip(names, kinds, line.split(" "))}
                for line in lines]

    # ---- the end ----

    def stop_well(self):
        """Stop the daemon; that all went well with it so far."""
        deaths = self.metric("gogh_solver_deaths_total")
        self.stop()
        check_deaths(deaths)
        check("Sanitizer" not in self.log() and "runtime error" not in self.log(), "a sanitizer "
              "found something")
        self.stalls.check()

    def end(self):
        """End the cluster; that nothing is left."""
        self.tool("down")
        until_gone(self)

    def finish(self):
        self.stop_well()
        self.end()

    def clean_up(self):
        self.stalls.is_over = True
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(CEILING_S)
        with contextlib.suppress(Failure):
            self.tool("down", "--purge")
        super().clean_up()


def call(argv, **more):
    try:
        return subprocess.run(argv, text=True, capture_output=True, timeout=CEILING_S, **more)
    except subprocess.TimeoutExpired:
        raise Failure("not within %g s: %s" % (CEILING_S, " ".join(argv))) from None


def is_open(path):
    """May this test become others, and may these enter the directory that it is in?"""
    while os.geteuid() == 0 and path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 0o001:
            return False
    return os.geteuid() == 0


def is_account(name):
    try:
        return pwd.getpwnam(name).pw_uid != 0
    except KeyError:
        return False


def as_user(user):
    """What subprocess needs to become that user; nothing for oneself."""
    if user is None or pwd.getpwnam(user).pw_uid == os.geteuid():
        return {}
    account = pwd.getpwnam(user)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
