"""A goghd of a test's own: started, asked, killed, and cleaned up after.

    with Box("k80:2 v100:2") as box:
        box.start()
        job = box.must("POST", "/v1/jobs", {...})
        box.until("it ends", lambda: box.job(job["id"])["state"] == "finished")

Everything of a box is below one directory that nobody else has, whose name therefore tells its
processes from all others: the daemon and its children have it in their arguments, keepers too, jobs
in their environment. Leaving the box ends what is left of them, and that there was nothing left is
part of every test (Box.finish). Paths of programs come from the environment: GOGHD, GOGH,
GOGH_KEEPER, WORKER.
"""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

FINAL = ("finished", "failed", "cancelled")
PERIOD_S = 0.05  # between two looks at something that is waited for
IS_ALL = bool(os.environ.get("GOGH_TEST_ALL"))  # make test-all: what is long, too
CEILING_S = 300  # of every wait: no verdict is by seconds, and a machine at load 20 keeps this


class Failure(Exception):
    """Something is not as it must be; the text says what."""


def check(is_so, what, *more):
    if not is_so:
        raise Failure(" ".join(str(m) for m in (what,) + more))


def until(what, f):
    """Whatever true value f gives at last."""
    end = time.monotonic() + CEILING_S
    while True:
        found = f()
        if found:
            return found
        check(time.monotonic() < end, "not within %g s: %s" % (CEILING_S, what))
        time.sleep(PERIOD_S)


def check_deaths(deaths):
    """Decisions that were not made. AddressSanitizer's allocator cannot be forked while another thread
    is in it (a reading of power, say): such a child hangs, is given up, and greedy stands in. The
    allocator of the C library can.
    """
    with open(os.environ["GOGHD"], "rb") as f:
        may_die = 1 if b"__asan_init" in f.read() else 0
    check(deaths <= may_die, "decisions were not made, their child died or took too long:", deaths)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("gogh", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        is_endless = "event-stream" in (self.headers.get("Content-Type") or "")
        self.text = "" if is_endless else response.read().decode()
        is_json = "json" in (self.headers.get("Content-Type") or "")
        self.body = json.loads(self.text) if is_json and self.text else None

    def message(self):
        return self.body["error"]["message"] if self.body and "error" in self.body else self.text


def ask_by(connection, method, path, body=None, headers=None):
    headers = dict(headers or {})
    if body is not None:
        body = json.dumps(body)
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body, headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def read_bytes(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


class Box:
    def __init__(self, gpus="k80:2 p100:2 v100:2", lines=()):
        self.dir = tempfile.mkdtemp(prefix="gogh-")
        self.socket = self.path("gogh.sock")
        self.process = None
        self.gpus = gpus
        self.lines = list(lines)
        self.uid = None  # another user to run as
        os.mkdir(self.path("work"))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.show_log()
        self.clean_up()

    def path(self, name):
        return os.path.join(self.dir, name)

    # ---- the daemon ----

    def write_config(self, lines=None):
        own = {line.split()[0] for line in self.lines + list(lines or ())}
        usual = ["store " + self.path("gogh.db"), "run_dir " + self.path("runs"),
                 "socket " + self.socket, "reports " + self.path("reports.sock"),
                 "gpus declared", "power model", "mps no", "learn no", "grace_s 10"]
        usual = [line for line in usual if line.split()[0] not in own]
        name = self.path("gogh.conf")
        with open(name, "w") as f:
            f.write("\n".join(usual + ["node box " + self.gpus] + self.lines + list(lines or ())))
            f.write("\n")
        return name

    def become(self):
        if self.uid is not None:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)

    def spawn(self, lines=None, env=None):
        """Begin a daemon, which need not come up."""
        config = self.write_config(lines)
        with open(self.path("daemon.log"), "ab") as log:
            self.process = subprocess.Popen(
                [os.environ["GOGHD"], "--config", config], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=dict(os.environ, **(env or {})), cwd=self.dir,
                preexec_fn=self.become, start_new_session=True)

    def start(self, lines=None, env=None):
        self.spawn(lines, env)
        until("the daemon is ready", self.is_ready)

    def is_ready(self):
        check(self.process.poll() is None, "the daemon ended with", self.process.returncode)
        answer = self.try_ask("GET", "/readyz")
        return answer is not None and answer.status == 200

    def refused(self, lines=None, env=None):
        """It must not come up; what it says."""
        before = len(read_bytes(self.path("daemon.log")))
        self.spawn(lines, env)
        try:
            status = self.process.wait(CEILING_S)
        except subprocess.TimeoutExpired:
            raise Failure("the daemon was to be refused and runs") from None
        said = read_bytes(self.path("daemon.log"))[before:].decode()
        check(status == 1 and "goghd: " in said, "want a refusal with status 1, not %d:" % status,
              said)
        return said

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(CEILING_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(CEILING_S)
        except subprocess.TimeoutExpired:
            raise Failure("the daemon does not end when told to") from None
        check(status == 0, "told to end, the daemon gave status", status)

    def log(self):
        return read_bytes(self.path("daemon.log")).decode(errors="replace")

    def show_log(self):
        tail = self.log().splitlines()[-60:]
        print("---- the daemon's log, its end ----", *tail, "----", sep="\n", file=sys.stderr)

    # ---- requests ----

    def ask(self, method, path, body=None, headers=None, timeout=CEILING_S):
        return ask_by(UnixConnection(self.socket, timeout), method, path, body, headers)

    def try_ask(self, method, path, body=None, headers=None, timeout=CEILING_S):
        """The same; None where nobody answers, or dies while answering."""
        try:
            return self.ask(method, path, body, headers, timeout)
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def must(self, method, path, body=None, headers=None):
        answer = self.ask(method, path, body, headers)
        check(answer.status < 300, method, path, "gave", answer.status, answer.text[:500])
        return answer.body if answer.body is not None else answer.text

    def get(self, path):
        return self.must("GET", path)

    def job(self, job):
        return self.get("/v1/jobs/%s" % job)

    def jobs(self):
        found, after = [], None
        while True:
            more = "&after=%d" % after if after is not None else ""
            page = self.get("/v1/jobs?limit=500" + more)
            found += page["jobs"]
            after = page["next"]
            if after is None:
                return found

    def until_state(self, job, states):
        states = (states,) if isinstance(states, str) else states
        return until("job %s is %s" % (job, " or ".join(states)),
                     lambda: (lambda j: j if j["state"] in states else None)(self.job(job)))

    def metric(self, name):
        for line in self.get("/metrics").splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        raise Failure("there is no metric " + name)

    def cli(self, *words, status=0):
        """Run `gogh` against this daemon; what it prints."""
        done = subprocess.run([os.environ["GOGH"]] + [str(w) for w in words], cwd=self.dir,
                              env=dict(os.environ, GOGH_SOCKET=self.socket), text=True,
                              capture_output=True, timeout=CEILING_S)
        check(done.returncode == status, "gogh", words, "ended with %d, not %d:" %
              (done.returncode, status), done.stdout[-500:], done.stderr[-500:])
        return done.stdout if status == 0 else done.stderr

    # ---- jobs ----

    def worker(self, row, steps=None, rate=None, seed=1, on_signal="save", **more):
        """The body of a submission that runs the worker by that row of the table."""
        amount = ["steps", str(steps)] if rate is None else ["rate", str(rate)]
        argv = [os.environ["WORKER"], self.path("table"), self.path("work"), row] + amount
        body = {"argv": argv + [str(seed), on_signal], "cwd": self.dir}
        if rate is None:
            body["steps"] = steps
        else:
            body["rate"] = rate
        body.update(more)
        return body

    def submit(self, body, headers=None):
        return self.must("POST", "/v1/jobs", body, headers)

    def work_log(self):
        """What workers wrote: dictionaries, in the order of their lines."""
        names = ("what", "job", "run", "pid", "slots", "time_s", "steps", "how")
        rows = []
        for line in read_bytes(self.path("work/log")).decode().splitlines():
            row = dict(zip(names, line.split(" ")))
            for key, kind in (("job", int), ("run", int), ("pid", int), ("time_s", float),
                              ("steps", float)):
                row[key] = kind(row[key])
            rows.append(row)
        return rows

    # ---- processes ----

    def processes(self):
        """Numbers of all processes of this box, but for this one."""
        mark = os.fsencode(self.dir)
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            where = "/proc/%s/" % name
            is_zombie = b"\nState:\tZ" in read_bytes(where + "status")
            if not is_zombie and (mark in read_bytes(where + "cmdline") or
                                  mark in read_bytes(where + "environ")):
                found.append(int(name))
        return found

    def processes_called(self, word):
        return [p for p in self.processes()
                if word in read_bytes("/proc/%d/cmdline" % p).decode(errors="replace")]

    def finish(self, may_stall=0):
        """Stop; that all went well so far, and nothing is left."""
        stalls = self.metric("gogh_loop_stalls_total")
        deaths = self.metric("gogh_solver_deaths_total")
        self.stop()
        until_gone(self)
        check_deaths(deaths)
        check("Sanitizer" not in self.log() and "runtime error" not in self.log(), "a sanitizer "
              "found something")
        if stalls > may_stall:
            print("note: %d turns of the loop took longer than 0.1 s" % stalls)
            for line in self.log().splitlines():
                if "loop was held" in line:
                    print("    " + line)

    def clean_up(self):
        for _ in range(100):
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if self.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(0.1)
            if not left:
                break
            time.sleep(PERIOD_S)
        shutil.rmtree(self.dir, ignore_errors=True)


def until_gone(box):
    left = []

    def are_gone():
        left[:] = box.processes()
        return not left
    try:
        until("nothing is left", are_gone)
    except Failure as e:
        raise Failure(e, [describe(p) for p in left]) from None


def describe(pid):
    words = read_bytes("/proc/%d/cmdline" % pid).decode(errors="replace").split("\0")
    return "%d (%s)" % (pid, " ".join(words).strip())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def on_signal(signo, frame):
    raise Failure("ended by signal %d (15: it took too long)" % signo)


def run(main):
    """Run a test; its exit status. However it ends, 'with' blocks clean up."""
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    try:
        main()
    except Failure as e:
        print("FAILED:", e, file=sys.stderr)
        return 1
    return 0
