"""A program that reports steps at a known rate, and behaves as it is told.

    paced.py RATE [WORD...]

    slow-in-3       at half the rate in run 3
    unfit-in-N      says that it does not fit in run N, and ends with an error
    full-in-N       ends with words of CUDA in run N
    die-in-N        ends with status 5 in run N, after words of its own
    end-in-N        ends well in run N
    stubborn        ignores SIGTERM
    silent-in-N     does no step in run N
    family=FILE     has a child in its group and one in a session of its own, both stubborn; the
                    three numbers are in FILE.RUN
    env=FILE        writes down what it was told
"""
import os
import signal
import socket
import subprocess
import sys
import time

rate, words = float(sys.argv[1]), sys.argv[2:]
job, run = os.environ["GOGH_JOB"], os.environ["GOGH_RUN"]
head = f"gogh1 {job} {run} {os.environ['GOGH_SECRET']}"
to = os.environ["GOGH_REPORTS"].removeprefix("unix:")
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def put(path, text):
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
    os.rename(path + ".new", path)


for word in words:
    name, _, value = word.partition("=")
    if word == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif name == "family":
        deaf = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
        pids = [os.getpid()] + [subprocess.Popen(deaf, start_new_session=new).pid
                                for new in (False, True)]
        put(f"{value}.{run}", " ".join(map(str, pids)) + "\n")
    elif name == "env":
        put(value, "".join(f"{k}={v}\n" for k, v in os.environ.items()))
if f"slow-in-{run}" in words:
    rate /= 2
if f"silent-in-{run}" in words:
    rate = 0
began, done = time.monotonic(), 0
while True:
    time.sleep(0.05)
    now = int((time.monotonic() - began) * rate)
    if now > done:
        done = now
        try:
            s.sendto(f"{head} {done}".encode(), socket.MSG_DONTWAIT, to)
        except BlockingIOError:  # the next one says the same
            pass
    if done < 5:
        continue
    if f"unfit-in-{run}" in words:
        s.sendto(f"{head} {done} unfit=1".encode(), to)
        sys.exit(1)
    if f"full-in-{run}" in words:
        sys.exit("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB")
    if f"die-in-{run}" in words:
        print("what it said\nbefore it died", file=sys.stderr)
        sys.exit(5)
    if f"end-in-{run}" in words:
        sys.exit(0)
