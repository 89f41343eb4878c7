"""gogh-slurm-driver asked over a socket: on a real cluster (real), and with commands made up (fake).

    with Driver(["--conf", conf]) as d:
        end, lines = d.ask("nodes", ("partition", "gogh"))

Everything is in one directory that is removed at the end. Paths of programs come from the
environment: GOGH_SLURM_DRIVER, SRC.
"""
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

from daemon import CEILING_S, Failure, check, until


def escape(text):
    plain = [c if c >= 0x20 and c not in (0x25, 0x7F) else None for c in text.encode()]
    return b"".join(b"%%%02X" % raw if c is None else bytes([c])
                    for c, raw in zip(plain, text.encode()))


def unescape(value):
    out = bytearray()
    i = 0
    while i < len(value):
        if value[i:i + 1] == b"%":
            out.append(int(value[i + 1:i + 3], 16))
            i += 3
        else:
            out.append(value[i])
            i += 1
    return out.decode(errors="surrogateescape")


class Line(dict):
    """A line of an answer: its verb, and its keys (of several, the last)."""

    def __init__(self, verb, pairs):
        super().__init__(pairs)
        self.verb = verb


class Driver:
    def __init__(self, args):
        self.socket, other = socket.socketpair()
        self.process = subprocess.Popen([os.environ["GOGH_SLURM_DRIVER"]] + args, stdin=other,
                                        stdout=other)
        other.close()
        self.rest = b""
        self.seq = 0
        self.said = []  # lines that answer nothing
        self.lines = {}  # of answers that have not been asked for yet

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.wait(CEILING_S)

    def send(self, verb, *pairs):
        self.seq += 1
        line = b"%d %s" % (self.seq, verb.encode())
        for key, value in pairs:
            line += b"\t" + key.encode() + b"=" + escape(str(value))
        self.socket.sendall(line + b"\n")
        return self.seq

    def next_line(self, what):
        """The next line, which is waited for because of 'what'."""
        self.socket.settimeout(CEILING_S)
        while b"\n" not in self.rest:
            try:
                got = self.socket.recv(1 << 16)
            except socket.timeout:
                raise Failure("not within %g s: %s" % (CEILING_S, what)) from None
            check(got, "the driver has ended with", self.process.poll())
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        head, *pairs = line.split(b"\t")
        seq, verb = head.split(b" ")
        pairs = [p.split(b"=", 1) for p in pairs]
        return int(seq), Line(verb.decode(), [(k.decode(), unescape(v)) for k, v in pairs])

    def answer(self, wanted):
        """How the answer ended, and the lines before that."""
        while True:
            seq, line = self.next_line("request %d is answered" % wanted)
            if seq == 0:
                self.said.append(line)
                continue
            check(seq == wanted, "an answer to request", seq, "and not to", wanted)
            if line.verb in ("done", "failed", "unknown"):
                return line, self.lines.pop(seq, [])
            self.lines.setdefault(seq, []).append(line)

    def ask(self, verb, *pairs):
        return self.answer(self.send(verb, *pairs))

    def must(self, verb, *pairs):
        end, lines = self.ask(verb, *pairs)
        check(end.verb == "done", verb, "was", end.verb, dict(end))
        return lines

    def state(self):
        """What was said of Slurm last."""
        states = [line["slurm"] for line in self.said if line.verb == "state"]
        return states[-1] if states else None

    def hear(self, what, is_so):
        """Lines that are said by themselves, until it is so."""
        while not is_so():
            seq, line = self.next_line(what)
            check(seq == 0, "an answer to nothing")
            self.said.append(line)

    def tell(self, what):
        """The lines 'what' that are said by themselves, at least one."""
        def said():
            return [line for line in self.said if line.verb == what]
        self.hear("'%s' is said" % what, said)
        return said()

    def until_state(self, wanted):
        self.hear("Slurm is " + wanted, lambda: self.state() == wanted)


# --- commands made up -----------------------------------------------------------------------

# What stands in for Slurm's: a file of a name in DIR/do/ says what to do.
FAKE = """#!/usr/bin/env bash
# A stand-in for one of Slurm's commands.
name=${0##*/} dir=${0%%/*}/..
do=$(cat "$dir/do/$name" 2>/dev/null || echo ok)
echo "$name $* uid=$(id -u) $(env | cut -d= -f1 | sort | xargs)" >>"$dir/log"
case $do in
hang) trap '' TERM; sleep 1000 & echo "$$ $!" >>"$dir/pids"; wait; sleep 1000 ;;
wait) until [[ -e $dir/go ]]; do sleep 0.02; done ;;
flood) yes "$(printf 'x%%.0s' {1..1000})" ;;
garbage) head -c 300000 /dev/urandom ;;
die) kill -9 $$ ;;
fail) cat "$dir/do/$name.text" >&2; exit 1 ;;
full) echo "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying" >&2
    echo "$$ $$" >>"$dir/pids"; exec sleep 1000 ;;
ok) [[ -e $dir/do/$name.out ]] && cat "$dir/do/$name.out" ;;
esac
exit 0
"""

# What scontrol says, whatever it is asked.
CONFIG = "SLURM_VERSION = 24.11.5\nClusterName = x\nBOOT_TIME = 5\nJobRequeue = 1\n"
UP = "Slurmctld(primary) at x is UP\nPartitionName=p\n"


class Stage:
    """A directory with the five commands, and what they are to do."""

    def __init__(self):
        self.dir = tempfile.mkdtemp()
        for name in ("bin", "do"):
            os.mkdir(os.path.join(self.dir, name))
        for name in ("sbatch", "squeue", "scontrol", "sinfo", "scancel"):
            path = os.path.join(self.dir, "bin", name)
            with open(path, "w", encoding="ascii") as f:
                f.write(FAKE.replace("%%", "%"))
            os.chmod(path, stat.S_IRWXU | stat.S_IXGRP | stat.S_IRGRP | stat.S_IXOTH | stat.S_IROTH)
        os.chmod(self.dir, 0o755)
        self.let("scontrol", "ok", CONFIG + UP)

    def let(self, name, what, out=None):
        base = os.path.join(self.dir, "do", name)
        for path, text in ((base, what), (base + (".text" if what == "fail" else ".out"), out)):
            if text is not None:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)

    def calls(self, name):
        try:
            with open(os.path.join(self.dir, "log"), encoding="utf-8") as f:
                return [line for line in f if line.startswith(name + " ")]
        except FileNotFoundError:
            return []

    def driver(self, *more):
        return Driver(["--commands", os.path.join(self.dir, "bin"), "--reading", "600",
                       "--changing", "600"] + list(more))

    def pids(self):
        with open(os.path.join(self.dir, "pids"), encoding="ascii") as f:
            return [int(word) for word in f.read().split()]

    def none_left(self):
        return not any(os.path.exists("/proc/%d/stat" % p) and
                       open("/proc/%d/stat" % p).read().rsplit(")", 1)[1].split()[0] != "Z"
                       for p in self.pids())


def timed(f):
    began = time.monotonic()
    result = f()
    return time.monotonic() - began, result


def fake_greeting(s):
    with s.driver() as d:
        end, lines = d.ask("hello", ("protocol", 1))
        check(end.verb == "done" and lines[0]["version"] == "24.11.5", "a version is told")
        check(lines[0]["can_move_typed"] == "yes", "24.11 moves typed jobs")
        check(d.state() == "up", "Slurm is up once it has answered")
        for verb, pairs, says in (
                ("hello", [("protocol", 2)], "protocol=1"),
                ("dance", [], "not a request"),
                ("pin", [("id", "7")], "nodes"),
                ("pin", [("id", "-1"), ("nodes", "a")], "number"),
                ("pin", [("id", "7"), ("nodes", "a b")], "nodes"),
                ("pin", [("id", "7"), ("nodes", "a"), ("gres", "x;y")], "gres"),
                ("cancel", [], "'id'"),
                ("cancel", [("id", "7;reboot")], "number"),
                ("cancel", [("id", "--user=root")], "number"),
                ("signal", [("id", "7"), ("signal", "")], "signal"),
                ("power", [("node", "a"), ("state", "off")], "state"),
                ("nodes", [("partition", "a,b")], "partition"),
                ("submit", [("token", "t")], "'submit' wants")):
            end, _ = d.ask(verb, *pairs)
            check(end.verb == "failed" and end["kind"] == "misuse" and says in end["text"],
                  "told why:", verb, dict(end))
        d.socket.sendall(b"rubbish\n")
        check(d.must("hello", ("protocol", 1)), "it goes on after a line that is no request")


def fake_clean_environment(s):
    os.environ["SQUEUE_FORMAT"] = "%i"
    os.environ["SECRET_OF_OURS"] = "1"
    with s.driver("--conf", "/x/slurm.conf") as d:
        d.must("jobs", ("partition", "p"))
    line = s.calls("squeue")[-1]
    check("SECRET_OF_OURS" not in line and "SQUEUE_FORMAT " not in line, "nothing is inherited:", line)
    check("SLURM_CONF" in line and "SLURM_TIME_FORMAT" in line, "what is needed is there:", line)


def fake_hang(s):
    s.let("squeue", "hang")
    with s.driver("--reading", "2") as d:
        took, (end, _) = timed(lambda: d.ask("jobs", ("partition", "p")))
        check(end.verb == "failed" and end["kind"] == "down", "a listing that hangs is down:", dict(end))
        check(took >= 2, "it was given its time, not", took)
        until("what hung is gone, with its children", s.none_left)
        d.until_state("down")
        end, _ = d.ask("nodes")
        check(end["kind"] == "down" and not s.calls("sinfo"), "then it answers without a call")
        until("closed, it goes on", lambda: d.ask("hello", ("protocol", 1))[0].verb == "done")
    s.let("squeue", "ok")


def fake_doubt(s):
    s.let("scontrol", "hang")
    with s.driver("--changing", "0.5") as d:
        end, _ = d.ask("requeue", ("id", 7))
        check(end.verb == "unknown", "a change that hangs is in doubt:", dict(end))
    s.let("scontrol", "fail", "Socket timed out on send/recv operation\n")
    with s.driver() as d:
        end, _ = d.ask("pin", ("id", 7), ("nodes", "a"))
        check(end.verb == "unknown", "so is one that timed out in Slurm:", dict(end))
    n = len(s.calls("scontrol release"))
    s.let("scontrol", "fail", "Invalid node name specified for job 7\n")
    with s.driver() as d:
        end, _ = d.ask("pin", ("id", 7), ("nodes", "a"))
        check(end.verb == "failed" and end["kind"] == "refused", "a place that is refused:", dict(end))
        check(len(s.calls("scontrol release")) == n, "is not released")
    s.let("scontrol", "fail", "Invalid job id specified for job 9\nslurm_suspend error: x\n")
    with s.driver() as d:
        end, lines = d.ask("hold", ("id", 8), ("id", 9), ("id", "90"))
        check([(x.verb, x["id"], x["kind"]) for x in lines] == [("trouble", "9", "gone")],
              "the job that is gone is named:", lines)
        check(end["kind"] == "gone", "and the whole has failed:", dict(end))
    s.let("scontrol", "die")
    with s.driver() as d:
        end, _ = d.ask("hold", ("id", 8))
        check(end.verb == "unknown", "a command that dies is in doubt:", dict(end))
    s.let("scontrol", "ok", CONFIG + UP)


def fake_owner(s):
    """A number is touched only while it is the user's; here squeue lists nobody."""
    n = len(s.calls("scontrol update"))
    with s.driver() as d:
        end, _ = d.ask("pin", ("id", 7), ("nodes", "a"), ("uid", 5))
        check(end.verb == "failed" and end["kind"] == "gone", "a job that is not listed:", dict(end))
        check(len(s.calls("scontrol update")) == n, "is not touched")
        n = len(s.calls("squeue"))
        for _ in range(5):
            d.ask("pin", ("id", 7), ("nodes", "a"), ("uid", 5))
        check(len(s.calls("squeue")) == n, "one listing will do for several")


def fake_batch(s):
    """Requests that wait behind each other are carried out together, each with its answer."""
    with s.driver() as d:
        d.must("hello", ("protocol", 1))
        n = len(s.calls("scontrol"))
        s.let("scontrol", "wait")
        first = d.send("hold", ("id", 1))
        pins = [d.send("pin", ("id", k), ("nodes", "a")) for k in range(1, 51)]
        until("the first is under way", lambda: len(s.calls("scontrol")) == n + 1)
        open(os.path.join(s.dir, "go"), "w").close()
        d.answer(first)
        ends = [d.answer(q)[0].verb for q in pins]
        check(ends == ["done"] * 50, "each is answered:", ends)
        check(len(s.calls("scontrol")) == n + 5, "50 pins take four calls, not",
              len(s.calls("scontrol")) - n - 1)
    s.let("scontrol", "ok", CONFIG + UP)


def fake_partition(s):
    with s.driver() as d:
        d.must("jobs", ("partition", "p"))
        d.must("nodes", ("partition", "p"))
        for verb in ("jobs", "nodes"):
            end, _ = d.ask(verb, ("partition", "nosuch"))
            check(end.verb == "failed" and end["kind"] == "refused" and "nosuch" in end["text"],
                  "a partition that is not there has no empty listing:", dict(end))


def fake_user(s):
    """What goes wrong for one user goes wrong for him alone."""
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    request = [("token", "ab-1"), ("uid", uid), ("gid", uid if os.geteuid() == 0 else os.getegid()),
               ("name", "x"), ("partition", "p"), ("script", "#!/bin/sh\n")]
    for name in ("log", "pids"):
        open(os.path.join(s.dir, name), "a").close()
        os.chmod(os.path.join(s.dir, name), 0o666)
    with s.driver() as d:
        d.must("nodes", ("partition", "p"))
        s.let("sbatch", "full")
        end, _ = d.ask("submit", *request)
        check(end.verb == "failed" and end["kind"] == "refused" and "unable" in end["text"],
              "there is no room in Slurm, and sbatch does not wait for it:", dict(end))
        until("it is gone", s.none_left)
        d.must("nodes", ("partition", "p"))
        s.let("sbatch", "fail", "sbatch: error: Invalid authentication credential\n")
        end, _ = d.ask("submit", *request)
        check(end.verb == "failed", "his credentials are bad:", dict(end))
        d.must("nodes", ("partition", "p"))
    with s.driver("--changing", "0.5") as d:
        s.let("sbatch", "hang")
        end, _ = d.ask("submit", *request)
        check(end.verb == "unknown", "a submission that hangs is in doubt:", dict(end))
        d.must("nodes", ("partition", "p"))
        check(d.state() == "up", "and Slurm is not down for others")
        s.let("scontrol", "ok", "no controller\n")
        d.ask("submit", *request)
        end, _ = d.ask("nodes", ("partition", "p"))
        check(end["kind"] == "down" and d.state() == "down", "it is where a probe says so", dict(end))
    s.let("scontrol", "ok", CONFIG + UP)
    s.let("sbatch", "ok", "17\n")


def fake_floods(s):
    with s.driver() as d:
        s.let("sinfo", "flood")
        end, lines = d.ask("nodes")
        check(end.verb == "failed" and not lines, "a flood is refused:", dict(end))
    with s.driver() as d:
        s.let("sinfo", "garbage")
        lines = d.must("nodes")
        check(not lines, "garbage has no nodes")
        troubles = [x for x in d.said if x.verb == "trouble"]
        check(troubles and troubles[0]["of"] == "nodes", "and is told of:", troubles)
        s.let("sinfo", "ok", "")
        check(d.must("nodes") == [], "nothing is nothing")


def fake_submit(s):
    s.let("sbatch", "ok", "17;cluster\n")
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    request = [("token", "ab-1"), ("uid", uid), ("gid", uid if os.geteuid() == 0 else os.getegid()),
               ("name", "a\nb"), ("partition", "p"), ("script", "#!/bin/sh\n"), ("cwd", "/"),
               ("env", "LD_PRELOAD=/x"), ("env", "SLURM_CONF=/x")]
    open(os.path.join(s.dir, "log"), "a").close()
    os.chmod(os.path.join(s.dir, "log"), 0o666)
    with s.driver() as d:
        lines = d.must("submit", *request)
        check(lines[0].verb == "submitted" and lines[0]["id"] == "17", "a number comes back")
        line = s.calls("sbatch")[-1]
        check("LD_PRELOAD" not in line, "sbatch itself does not get the job's environment")
        if os.geteuid() == 0:
            check("uid=65534" in "".join(open(os.path.join(s.dir, "log")).readlines()), "as its owner")
        s.let("sbatch", "ok", "no number\n")
        end, _ = d.ask("submit", *request)
        check(end.verb == "unknown", "one without a number is in doubt")


def fake_gentle(s):
    with s.driver("--rate", "10", "--burst", "5") as d:
        took, _ = timed(lambda: [d.answer(q) for q in [d.send("nodes") for _ in range(15)]])
        check(took > 0.9, "15 calls at 10 a second with 5 in hand take a second, not", took)
        check(int(d.tell("calls")[-1]["n"]) >= 1, "it tells its calls")


def fake_ends(s):
    s.let("squeue", "hang")
    d = s.driver()
    d.send("jobs", ("partition", "p"))
    until("it runs", lambda: len(s.pids()) >= 2 and not s.none_left())
    d.socket.close()
    check(d.process.wait(CEILING_S) == 0, "the end of the socket ends it")
    until("and what it ran", s.none_left)
    d = s.driver()
    d.send("jobs", ("partition", "p"))
    until("it runs", lambda: not s.none_left())
    d.process.terminate()
    check(d.process.wait(CEILING_S) == 0, "SIGTERM ends it")
    until("and what it ran", s.none_left)
    d.socket.close()
    d = s.driver()
    d.send("jobs", ("partition", "p"))
    until("it runs", lambda: not s.none_left())
    d.process.kill()
    d.process.wait(CEILING_S)
    d.socket.close()
    until("not even a kill leaves the command running", lambda: s_leader_gone(s))
    for pid in s.pids():    # the child of a child has no such bond; end it here
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    s.let("squeue", "ok")


def s_leader_gone(s):
    """The commands themselves; pids come in pairs, the second being a child of the first."""
    return not any(os.path.exists("/proc/%d" % p) for p in s.pids()[::2])


def fake():
    s = Stage()
    try:
        for f in (fake_greeting, fake_clean_environment, fake_hang, fake_doubt, fake_owner, fake_batch,
                  fake_partition, fake_user, fake_floods, fake_submit, fake_gentle, fake_ends):
            f(s)
            print("ok", f.__name__)
    finally:
        shutil.rmtree(s.dir)


# --- the real thing -------------------------------------------------------------------------

class Cluster:
    def __init__(self):
        self.dir = tempfile.mkdtemp()
        self.tool = os.path.join(os.environ["SRC"], "tools", "slurm-cluster")
        self.conf = os.path.join(self.dir, "slurm.conf")
        self.run("up", "--gpus", "v100:2 k80:1", "--power-save", "--min-job-age", "30")

    def run(self, verb, *more):
        subprocess.run([self.tool, verb, self.dir] + list(more), check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def slurm(self, *argv):
        return subprocess.run(argv, check=True, capture_output=True, text=True,
                              env=dict(os.environ, SLURM_CONF=self.conf)).stdout.strip()

    def down(self):
        self.run("down", "--purge")
        shutil.rmtree(self.dir, ignore_errors=True)


def jobs(d):
    return {line["id"]: line for line in d.must("jobs", ("partition", "gogh"))
            if line.verb == "job"}


def submit(d, token, script, **more):
    uid, gid = (65534, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    pairs = {"token": token, "uid": uid, "gid": gid, "name": "job", "partition": "gogh",
             "script": script, "cwd": "/", "out": "/dev/null"}
    pairs.update(more)
    return d.must("submit", *pairs.items())[0]["id"]


def until_job(d, what, job, is_so):
    return until(what, lambda: [j for j in [jobs(d).get(job)] if j and is_so(j)])[0]


def real_reading(c, d):
    config = d.must("hello", ("protocol", 1))[0]
    check(config["min_job_age_s"] == "30" and config["kill_wait_s"] == "3", "config", config)
    check(int(config["boot_s"]) > 1e9 and config["requeue"] == "yes", "config", config)
    nodes = {n["name"]: n for n in d.must("nodes", ("partition", "gogh"))}
    check(set(nodes) == {"v100-0", "v100-1", "k80-0"}, "nodes", nodes)
    check(nodes["k80-0"]["state"] == "idle" and "gpu:k80:1" in nodes["k80-0"]["gres"], "a node")
    check(jobs(d) == {}, "no jobs yet")
    for verb in ("nodes", "jobs"):
        end, _ = d.ask(verb, ("partition", "nosuch"))
        check(end.verb == "failed" and end["kind"] == "refused" and "nosuch" in end["text"],
              "no such partition:", dict(end))


# What a job of this name looks like if it were believed: a line of job 1's, another's.
FORGED = "x\x1f{;}\n1\x1f0123456789abcdef{1\x1f;}\n1 done\n%09"


def real_life(c, d):
    out = os.path.join(c.dir, "out")
    os.mkdir(out)
    os.chmod(out, 0o777)
    script = "#!/bin/sh\ntrap 'echo saved' USR1\nid -u\necho \"$A\"\nwhile :; do sleep 0.1; done\n"
    job = submit(d, "0123456789abcdef-1", script, out=out + "/1", name=FORGED, env="A=b,c d")
    other = submit(d, "0123456789abcdef-2", "#!/bin/sh\nexit 3\n")
    seen = jobs(d)
    check(set(seen) == {job, other}, "the jobs that are there, and no others:", list(seen))
    check(seen[job]["name"] == FORGED, "a name may hold anything:", repr(seen[job]["name"]))
    check(seen[job]["held"] == "user" and seen[job]["state"] == "PENDING", "held", seen[job])
    check(seen[job]["comment"] == "gogh: token=0123456789abcdef-1", "with its token")

    # A number counts together with its user.
    uid = seen[job]["uid"]
    for verb, more in (("pin", ("nodes", "v100-1")), ("note", ("admin", "not for him"))):
        end, _ = d.ask(verb, ("id", job), more, ("uid", int(uid) + 1))
        check(end.verb == "failed" and end["kind"] == "gone", "another user's:", dict(end))
    check("pin" not in jobs(d)[job] and "admin" not in jobs(d)[job], "it was left alone")

    # Placed and released; where it was told, as whom it was told.
    d.must("hold", ("id", job), ("id", other))
    check(jobs(d)[job]["held"] == "admin", "held by an operator")
    d.must("pin", ("id", job), ("nodes", "v100-1"), ("n_nodes", 1), ("gres", "shard:1"),
           ("admin", "gogh1 token=0123456789abcdef-1 at=v100-1/0"), ("uid", uid))
    seen = until_job(d, "it runs", job, lambda j: j["state"] == "RUNNING")
    check(seen["nodes"] == "v100-1" and seen["pin"] == "v100-1" and seen["gres"] == "shard:1",
          "where it was told:", seen)
    check(seen["admin"].endswith("at=v100-1/0") and seen["held"] == "no", "with a note", seen)
    check("start_s" in seen and "end_s" not in seen, "it has begun, and not ended", seen)
    device = d.must("devices", ("id", job), ("id", other))
    check([(x["node"], x["gres"], x["index"]) for x in device] == [("v100-1", "shard:1", "0")],
          "devices", device)
    until("it writes", lambda: os.path.exists(out + "/1") and
          open(out + "/1").read() == "%s\nb,c d\n" % seen["uid"])

    # Its user may hold it: it goes on.
    c.slurm("scontrol", "uhold", job)
    seen = jobs(d)[job]
    check(seen["held"] == "user" and seen["state"] == "RUNNING", "held while it runs", seen)

    # Asked to save, then moved. Slurm wants 1.2 s between PENDING and the next start.
    d.must("signal", ("id", job), ("signal", "USR1"))
    until("it saves", lambda: "saved" in open(out + "/1").read())
    d.must("requeue", ("id", job))
    seen = until_job(d, "it waits again", job, lambda j: j["state"] == "PENDING")
    check(seen["held"] == "admin" and "start_s" not in seen, "requeued, held", seen)
    time.sleep(1.5)
    d.must("pin", ("id", job), ("nodes", "v100-0"), ("n_nodes", 1), ("gres", "shard:2"),
           ("admin", "x" * 4000))
    seen = until_job(d, "it runs elsewhere", job, lambda j: j["state"] == "RUNNING")
    check(seen["nodes"] == "v100-0" and seen["gres"] == "shard:2" and seen["run"] == "1",
          "moved:", seen)
    check(seen["admin"] == "x" * 4000, "a long note is whole")

    # The other one ends by itself, and is seen to have.
    d.must("pin", ("id", other), ("nodes", "k80-0"), ("gres", "shard:1"))
    seen = until_job(d, "it ends", other, lambda j: j["state"] == "FAILED")
    check(seen["exit"] == "3" and seen["signal"] == "0" and "end_s" in seen, "its end", seen)
    d.must("cancel", ("id", job))
    until_job(d, "it is cancelled", job, lambda j: j["state"] == "CANCELLED")


def real_arrays(c, d):
    array = c.slurm("sbatch", "--parsable", "--hold", "--partition=gogh", "--array=1-3",
                    "--output=/dev/null", "--wrap=sleep 100")
    ids = [array + "_%d" % k for k in (1, 2, 3)]
    check(set(ids) <= set(jobs(d)), "tasks that have no number of their own yet:", list(jobs(d)))
    d.must("note", ("id", ids[1]), ("admin", "second"))
    second = [j for j in jobs(d).values() if j.get("array") == array and j["task"] == "2"][0]
    check(second["id"] not in ids and second["admin"] == "second", "it has one now:", second)
    d.must("pin", ("id", ids[0]), ("nodes", "v100-1"), ("gres", "shard:1"), ("uid", os.geteuid()))
    until("a task runs", lambda: [j for j in jobs(d).values() if j["state"] == "RUNNING" and
                                  (j.get("array"), j.get("task")) == (array, "1")])
    check(sum(j["state"] == "RUNNING" for j in jobs(d).values()) == 1, "and it alone")
    d.must("cancel", *[("id", i) for i in ids])
    until("they are gone", lambda: all(j["state"] == "CANCELLED" for j in jobs(d).values()
                                       if j.get("array") == array))
    end, lines = d.ask("requeue", ("id", 99999), ("id", 99998))
    check([x["kind"] for x in lines] == ["gone", "gone"] and end["kind"] == "gone",
          "no such jobs", lines)
    end, _ = d.ask("pin", ("id", 99999), ("nodes", "v100-0"))
    check(end.verb == "failed" and end["kind"] == "gone", "no such job", dict(end))
    held = submit(d, "0123456789abcdef-3", "#!/bin/sh\n")
    end, _ = d.ask("pin", ("id", held), ("nodes", "nosuchnode"), ("gres", "shard:1"))
    check(end.verb == "failed" and end["kind"] == "refused", "no such node", dict(end))
    check(jobs(d)[held]["state"] == "PENDING", "and it was not released")
    d.must("cancel", ("id", held))


def real_batch(c, d):
    """Several at once: each has its own answer, and its note as it was given."""
    ids = [submit(d, "0123456789abcdef-%d" % k, "#!/bin/sh\nsleep 100\n") for k in range(20, 24)]
    uid = jobs(d)[ids[0]]["uid"]
    note = "gogh1 token=0123456789abcdef-20 at=v100-0/0 limit=0"
    order = [(ids[0], "v100-0", uid), (ids[1], "nosuch", uid), (ids[2], "v100-1", uid),
             ("99999", "v100-1", uid), (ids[3], "v100-1", int(uid) + 1)]
    sent = [d.send("pin", ("id", i), ("nodes", n), ("n_nodes", 1), ("gres", "shard:1"),
                   ("admin", note), ("uid", u)) for i, n, u in order]
    ends = [d.answer(q)[0] for q in sent]
    check([e.get("kind", e.verb) for e in ends] == ["done", "refused", "done", "gone", "gone"],
          "an answer each:", ends)
    for i, node in ((ids[0], "v100-0"), (ids[2], "v100-1")):
        seen = until_job(d, "it runs", i, lambda j: j["state"] == "RUNNING")
        check(seen["nodes"] == node and seen["admin"] == note, "where it was told:", seen)
    for i in (ids[1], ids[3]):
        check(jobs(d)[i]["state"] == "PENDING" and "admin" not in jobs(d)[i], "left alone:",
              jobs(d)[i])
    d.must("cancel", *[("id", i) for i in ids])


def real_others(c, d):
    c.slurm("sbatch", "--parsable", "--partition=debug", "--gres=gpu:1", "--nodelist=k80-0",
            "--output=/dev/null", "--wrap=sleep 100")
    lines = until("a job of another partition holds a GPU",
                  lambda: [x for x in d.must("jobs", ("partition", "gogh")) if x.verb == "other"])
    check(lines[0]["nodes"] == "k80-0" and lines[0]["gres"] == "gpu:1", "other", lines)
    d.must("cancel", ("id", lines[0]["id"]))

    # One of ours that somebody takes to another partition is followed.
    job = submit(d, "0123456789abcdef-4", "#!/bin/sh\nsleep 100\n")
    c.slurm("scontrol", "update", "JobId=" + job, "Partition=debug")
    check(jobs(d)[job]["partition"] == "debug", "it is still told of:", jobs(d).get(job))
    d.must("cancel", ("id", job))


def real_power(c, d):
    d.must("power", ("node", "v100-1"), ("state", "down"))
    until("a node sleeps", lambda: [n for n in d.must("nodes", ("partition", "gogh"))
                                    if n["name"] == "v100-1" and "power" in n["state"]])
    end, _ = d.ask("power", ("node", "nosuch"), ("state", "down"))
    check(end.verb == "failed" and end["kind"] == "refused", "no such node", dict(end))


def real_fault(c, d, who, is_dead):
    """A daemon dies or hangs; every request is answered; it is cured, and all is well."""
    c.run("kill", who, "KILL" if is_dead else "STOP")
    end, _ = d.ask("jobs", ("partition", "gogh"))
    check(end.verb == "failed" and end["kind"] == "down", who, "gone:", dict(end))
    end, _ = d.ask("cancel", ("id", 1))
    check(end["kind"] == "down", "nor is anything changed:", dict(end))
    d.until_state("down")
    if is_dead:
        c.run("start", who)
    else:
        c.run("kill", who, "CONT")
    d.until_state("up")
    until("Slurm is steered again", lambda: d.ask("nodes", ("partition", "gogh"))[0].verb == "done")


def real_doubt(c, d):
    """A submit that timed out is carried out later: found by its token."""
    c.run("kill", "slurmctld", "STOP")
    end, _ = d.ask("submit", ("token", "0123456789abcdef-9"), ("uid", os.geteuid()),
                   ("gid", os.getegid()), ("name", "late"), ("partition", "gogh"),
                   ("script", "#!/bin/sh\n"), ("cwd", "/"), ("out", "/dev/null"))
    check(end.verb == "unknown", "in doubt:", dict(end))
    end, _ = d.ask("nodes", ("partition", "gogh"))
    check(end.get("kind") == "down" and d.state() == "down", "a probe told:", dict(end))
    c.run("kill", "slurmctld", "CONT")
    d.until_state("up")
    until("it is there", lambda: [j for j in jobs(d).values()
                                  if "0123456789abcdef-9" in j.get("comment", "")])


def real():
    c = Cluster()
    try:
        with Driver(["--conf", c.conf]) as d:
            for f in (real_reading, real_life, real_arrays, real_batch, real_others, real_power):
                took, _ = timed(lambda g=f: g(c, d))
                print("ok %s %.1f s" % (f.__name__, took))
        with Driver(["--conf", c.conf, "--reading", "5", "--changing", "5"]) as d:
            d.must("hello", ("protocol", 1))
            for who, is_dead in (("slurmctld", True), ("slurmctld", False), ("munged", True),
                                 ("munged", False)):
                took, _ = timed(lambda w=who, k=is_dead: real_fault(c, d, w, k))
                print("ok %s %s %.1f s" % (who, "dead" if is_dead else "hung", took))
            real_doubt(c, d)
            print("ok real_doubt")
    finally:
        c.down()


if __name__ == "__main__":
    try:
        {"real": real, "fake": fake}[sys.argv[1]]()
    except Failure as failure:
        print("not so:", failure)
        sys.exit(1)
