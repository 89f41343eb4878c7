#!/usr/bin/env python3
"""slurm_worker.py TABLE DIR NAME ROW steps|rate|until N [save|ignore] - a small job under Slurm.

As fast as TABLE says, by the type of GPU it was given and by who else is there:

    TYPE ROW STEPS_PER_S                alone, on one GPU
    TYPE ROW NEIGHBOURS_ROW FACTOR      beside another, as a part of that

It believes nobody but Slurm about where it is: nodes by SLURM_JOB_NODELIST, slots by
CUDA_VISIBLE_DEVICES; a node's name begins with its GPU type and a dash. A gang of n is n times as
fast, less a tenth; its slowest member sets the pace. With 'steps' it is done after N of them; with
'rate' it serves at most N a second until told to end; with 'until' it is done once there is a file
N in DIR. Told by TERM or USR1 it saves its count and ends; with 'ignore' it does not listen. It
reports as any job of a user's would.

In DIR, which all workers share (PLACE is NODE/SLOT, with a colon in file names):
    PLACE@NAME    its row, locked as long as it lives there: how workers see each other
    NAME.lock     locked as long as it lives: a second one is a failure of whoever started it
    NAME.steps    what it has saved
    log           lines 'start|end|twice NAME RUN SLURM_ID PLACES TIME STEPS HOW', each one write
    seen          lines 'TIME NAME RUN PLACES NEIGHBOURS', each one write, every 0.2 s
"""
import fcntl
import os
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../python")]
import gogh  # noqa: E402    found only now

TICK_S = 0.1
LOOK_S = 0.2
NOISE = 0.03  # of a tick's speed


def spell_out(hosts):
    """Names of a host list: 'a-[0-1,3],b' is a-0 a-1 a-3 b."""
    names, head, depth = [], "", 0
    for c in hosts + ",":
        if c == "," and depth == 0:
            names += spell_one(head) if head else []
            head = ""
            continue
        depth += (c == "[") - (c == "]")
        head += c
    return names


def spell_one(item):
    if "[" not in item:
        return [item]
    head, rest = item.split("[", 1)
    inner, tail = rest.split("]", 1)
    found = []
    for part in inner.split(","):
        low, _, high = part.partition("-")
        for i in range(int(low), int(high or low) + 1):
            found += spell_one("%s%0*d%s" % (head, len(low), i, tail))
    return found


def places_given():
    """['v100-0/0', ...]: where Slurm has put this job. Slots are those of the first node, which is
    where a batch script runs; the others are like it.
    """
    slots = os.environ.get("CUDA_VISIBLE_DEVICES", "0") or "0"
    return ["%s/%s" % (node, slot) for node in spell_out(os.environ["SLURM_JOB_NODELIST"])
            for slot in slots.split(",")]


class Worker:
    def __init__(self, table, folder, name, row):
        self.dir, self.name, self.row = folder, name, row
        self.run = os.environ.get("SLURM_RESTART_COUNT", "0")
        self.places = places_given()
        self.type = self.places[0].split("-")[0]
        self.steps, self.locks = 0.0, []
        self.chance = random.Random("%s %s" % (name, self.run))
        self.table = {}
        with open(table) as f:
            for words in map(str.split, f):
                self.table[tuple(words[:-1])] = float(words[-1])

    def path(self, name):
        return os.path.join(self.dir, name)

    # ---- what it reads and writes ----

    def write(self, name, *words):
        """One line in one write, so that lines of many workers do not mix."""
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.write(fd, (" ".join(map(str, words)) + "\n").encode())
        os.close(fd)

    def tell(self, what, how="-"):
        self.write("log", what, self.name, self.run, os.environ["SLURM_JOB_ID"],
                   ",".join(self.places), "%.3f" % time.time(), "%.3f" % self.steps, how)

    def resume(self):
        try:
            with open(self.path(self.name + ".steps")) as f:
                self.steps = float(f.read())
        except FileNotFoundError:
            pass

    def save(self):
        part = self.path(self.name + ".part")
        with open(part, "w") as f:
            f.write("%.3f\n" % self.steps)
        os.rename(part, self.path(self.name + ".steps"))

    # ---- where it is, and who else ----

    def lock(self, name, how=0):
        """Whoever holds the lock lives: it goes with the process, however that ends."""
        fd = os.open(self.path(name), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | how)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def be_alone(self):
        if self.lock(self.name + ".lock", fcntl.LOCK_NB) is None:
            self.tell("twice")
            sys.exit(4)

    def place_file(self, place):
        return "%s@%s" % (place.replace("/", ":"), self.name)

    def take_places(self):
        for place in self.places:
            fd = self.lock(self.place_file(place))  # others look at it for a moment
            os.ftruncate(fd, 0)
            os.write(fd, self.row.encode())
            self.locks.append(fd)

    def leave_places(self):
        for place in self.places:
            os.unlink(self.path(self.place_file(place)))

    def lives(self, name):
        """The row of whoever lives at a place; None: nobody does."""
        try:
            fd = os.open(self.path(name), os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            return os.read(fd, 64).decode() or None
        finally:
            os.close(fd)

    def neighbours(self):
        """{name: row} of all who share one of its GPUs."""
        found = {}
        heads = [p.replace("/", ":") + "@" for p in self.places]
        for name in os.listdir(self.dir):
            who = name.partition("@")[2]
            if who and who != self.name and name[:-len(who)] in heads:
                row = self.lives(name)
                if row is not None:
                    found[who] = row
        return found

    # ---- work ----

    def speed(self, neighbours):
        speed = self.table.get((self.type, self.row), 0)
        for row in neighbours.values():
            speed *= self.table.get((self.type, self.row, row), 0.6)
        n = len(self.places)
        return speed * (0.9 * n if n > 1 else 1) * self.chance.lognormvariate(0, NOISE)

    def look(self):
        """Who is beside it; written down, as long as it lives."""
        beside = self.neighbours()
        self.write("seen", "%.3f" % time.time(), self.name, self.run, ",".join(self.places),
                   ",".join(sorted(beside)) or "-")
        return beside

    def work(self, goal, is_told):
        at_s, look_s, beside = time.monotonic(), 0, {}
        with gogh.track(start=0) as reports:
            while not goal.is_reached(self) and not is_told():
                now_s = time.monotonic()
                if now_s >= look_s:
                    beside, look_s = self.look(), now_s + LOOK_S
                speed = min(self.speed(beside), goal.rate)
                self.steps = min(goal.steps, self.steps + speed * min(now_s - at_s, 1))
                at_s = now_s
                reports.steps(int(self.steps))
                time.sleep(TICK_S)


class Goal:
    def __init__(self, kind, value):
        self.steps = float(value) if kind == "steps" else float("inf")
        self.rate = float(value) if kind == "rate" else float("inf")
        self.file = value if kind == "until" else None

    def is_reached(self, worker):
        return worker.steps >= self.steps or (self.file is not None and
                                              os.path.exists(worker.path(self.file)))


def main():
    if len(sys.argv) < 7:
        sys.exit(__doc__.splitlines()[0])
    worker, goal = Worker(*sys.argv[1:5]), Goal(*sys.argv[5:7])
    is_deaf = sys.argv[7:] == ["ignore"]
    os.umask(0)  # users share DIR
    gogh.catch_checkpoint_signals((signal.SIGTERM, signal.SIGUSR1))
    worker.be_alone()
    worker.resume()
    worker.take_places()
    worker.tell("start")
    worker.work(goal, lambda: not is_deaf and gogh.checkpoint_requested())
    worker.save()
    worker.leave_places()
    worker.tell("end", "done" if goal.is_reached(worker) else "saved")


if __name__ == "__main__":
    main()
