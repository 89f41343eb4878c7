#!/usr/bin/env python3
"""Jobs of other users: a daemon that is not root, with four capabilities, and one with none.

Needs root, to become the users of three accounts that every Debian has. A job is its owner's in all
that it is and may do; it has no capability, and cannot touch the daemon, its store or its folder.
"""
import contextlib
import os
import pwd
import shutil
import subprocess
import sys

from daemon import Box, check, read_bytes, run, until

CAPABILITIES = ",+setuid,+setgid,+kill,+chown"
PATH = "/usr/bin:/bin"

# What a job says of itself: "may ..." is what it must not.
PROGRAM = """
echo ids $(id -u) $(id -g) $(id -G)
echo caps $(sed -n 's/^Cap\\(Inh\\|Prm\\|Eff\\|Amb\\):[[:blank:]]*0*//p' /proc/self/status)
kill -0 "$1" && echo "may signal the daemon"
cat "$2" && echo "may read the store"
touch "$GOGH_DIR/mine" && echo "may write to its folder"
cat "$GOGH_DIR/order" && echo "may read its order"
echo done
exec sleep 300
"""


@contextlib.contextmanager
def acting_as(user):
    """The kernel tells the daemon who connects: this user, as long as this lasts."""
    groups = os.getgroups()
    os.setgroups(os.getgrouplist(user.pw_name, user.pw_gid))
    os.setegid(user.pw_gid)
    os.seteuid(user.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class UserBox(Box):
    """A box whose daemon is 'user', with or without the capabilities that the unit gives it."""

    def __init__(self, user, has_capabilities):
        super().__init__("v100:2", ["decide_s 0.2", "grace_s 5"])
        self.user = user
        self.caps = "-all" + (CAPABILITIES if has_capabilities else "")
        os.chmod(self.dir, 0o711)
        os.chown(self.dir, user.pw_uid, user.pw_gid)
        for name in ("GOGHD", "GOGH_KEEPER"):  # where that user can reach them
            shutil.copy(os.environ[name], self.path(name))

    def spawn(self, lines=None, env=None):
        config = self.write_config(lines)
        words = ["setpriv", "--reuid=%d" % self.user.pw_uid, "--regid=%d" % self.user.pw_gid,
                 "--clear-groups", "--no-new-privs", "--inh-caps=" + self.caps,
                 "--ambient-caps=" + self.caps]
        with open(self.path("daemon.log"), "ab") as log:
            self.process = subprocess.Popen(
                words + [self.path("GOGHD"), "--config", config], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd="/", start_new_session=True,
                env=dict(os.environ, GOGH_KEEPER=self.path("GOGH_KEEPER"), **(env or {})))

    def ask_as(self, user, method, path, body=None):
        with acting_as(user):
            return self.ask(method, path, body)

    def submit_as(self, user, name, *argv, **more):
        answer = self.ask_as(user, "POST", "/v1/jobs",
                             {"argv": list(argv), "name": name, "workload": "LM", "batch": 20,
                              "cwd": "/", "env": {"PATH": PATH}, **more})
        check(answer.status == 201, user.pw_name, "cannot submit:", answer.status, answer.text)
        return answer.body["id"]

    def output(self, job, name="out"):
        with open(self.path("runs/%d.0/%s" % (job, name))) as f:
            return f.read()


def check_owned(box, job, owner):
    """It is its owner's, and nothing more."""
    box.until_state(job, "running")
    until("the job has said all", lambda: box.output(job).endswith("done\n"))
    said = box.output(job).splitlines()
    groups = " ".join(str(g) for g in os.getgrouplist(owner.pw_name, owner.pw_gid))
    check(said == ["ids %d %d %s" % (owner.pw_uid, owner.pw_gid, groups), "caps", "done"],
          "a job of", owner.pw_name, "says", said)
    check(box.job(job)["owner"] == owner.pw_name, "the job's owner is", box.job(job)["owner"])
    for name in ("out", "err"):
        at = os.stat(box.path("runs/%d.0/%s" % (job, name)))
        check((at.st_uid, at.st_mode & 0o777) == (owner.pw_uid, 0o600), name, "is", at)


def keeper_of(box, job):
    with open(box.path("runs/%d.0/status" % job)) as f:
        return int(f.readline().split()[1])


def try_capable(daemon, ann, bob):
    with UserBox(daemon, True) as box:
        box.start()
        probe = ["/bin/sh", "-c", PROGRAM, "sh", str(box.process.pid), box.path("gogh.db")]
        job = box.submit_as(ann, "anns", *probe)
        other = box.submit_as(bob, "bobs", *probe)
        check_owned(box, job, ann)
        check_owned(box, other, bob)
        uid = os.stat("/proc/%d" % keeper_of(box, job)).st_uid
        check(uid == ann.pw_uid, "a keeper is still user", uid)
        with acting_as(ann):
            with open(box.path("runs/%d.0/out" % job)) as f:
                check(f.read().endswith("done\n"), "an owner cannot read her log")
        answer = box.ask_as(bob, "POST", "/v1/jobs/%d/cancel" % job)
        check(answer.status == 403, "somebody else's cancel gives", answer.status, answer.text)
        answer = box.ask_as(ann, "POST", "/v1/jobs/%d/cancel" % job)
        check(answer.status == 200, "an owner cannot cancel:", answer.status, answer.text)
        box.until_state(job, "cancelled")
        until("its processes are gone", lambda: not box.processes_called("runs/%d.0" % job))
        check(box.job(other)["state"] == "running", "the other job is", box.job(other))
        box.must("POST", "/v1/jobs/%d/cancel" % other)  # root may
        box.until_state(other, "cancelled")
        box.finish()


def end_of(box, job):
    """How its first run ended, as its keeper wrote it down, once it has."""
    name = box.path("runs/%d.0/status" % job)
    until("the run has ended", lambda: b"\nended" in read_bytes(name))
    return read_bytes(name).decode().splitlines()[-1].split(" ", 2)[2]


def try_errors(daemon, ann):
    """Errors where only their owner can look: those of this run count, those of others do not."""
    with UserBox(daemon, True) as box:
        box.start()
        own = box.path("own")
        os.mkdir(own, 0o700)
        os.chown(own, ann.pw_uid, ann.pw_gid)
        with acting_as(ann), open(own + "/old", "w") as f:
            f.write("hipErrorNoBinaryForGpu\n")
        job = box.submit_as(ann, "old", "/bin/sh", "-c", "echo again >&2; exit 3",
                            stderr=own + "/old")
        check(end_of(box, job) == "exit 3", "after words of others it is", end_of(box, job))
        box.until_state(job, "failed")
        job = box.submit_as(ann, "new", "/bin/sh", "-c", "echo hipErrorNoBinaryForGpu >&2; exit 3",
                            stderr=own + "/new")
        check(end_of(box, job) == "exit 3 hipErrorNoBinaryForGpu", "it is", end_of(box, job))
        until("the type is known for it", lambda: any(
            m["unfit"] for m in box.must("GET", "/v1/measurements")["measurements"]))
        box.until_state(job, "waiting")
        box.must("POST", "/v1/measurements", {"measurements": [
            {"workload": box.job(job)["workload"], "gpu": "v100", "throughput": 1}]})
        until("it is tried again", lambda: os.path.exists(box.path("runs/%d.1/status" % job)))
        box.must("POST", "/v1/jobs/%d/cancel" % job)
        box.until_state(job, "cancelled")
        box.finish()


def try_incapable(daemon, ann):
    with UserBox(daemon, False) as box:
        box.start()
        answer = box.ask_as(ann, "POST", "/v1/jobs", {"argv": ["/bin/true"], "workload": "LM",
                                                      "batch": 20})
        check(answer.status == 403 and "capabilities SETUID" in answer.message(), "without capabilities",
              "another's job gives", answer.status, answer.text)
        own = box.submit_as(daemon, "own", "/bin/true")
        box.until_state(own, "finished")
        box.finish()


def main():
    daemon, ann, bob = (pwd.getpwnam(name) for name in ("games", "mail", "news"))
    try_capable(daemon, ann, bob)
    try_errors(daemon, ann)
    try_incapable(daemon, ann)
    print("jobs are their owners'")


if __name__ == "__main__":
    sys.exit(run(main))
