"""Tell GOGH how far a job is. Python's standard library only; does nothing outside GOGH.

    import gogh

    with gogh.track() as t:
        for batch in loader:
            train(batch)
            t.step()

Sends at most about one datagram a second and one at the end, never waits and never raises: what is
lost, the next one says again. Counts go on from what the job had done before it was moved or
restarted. For training loops that are not one's own: torch_hook, KerasCallback, TrainerCallback.

A server of requests wraps what answers them; an ASGI application is wrapped whole:

    t = gogh.track()
    t.ready()
    with t.request():
        answer()

    app = gogh.ASGIMiddleware(app)
"""

import atexit
import math
import os
import signal
import socket
import threading
import time

__all__ = [
    "track", "Tracker", "inside", "restarts", "steps_done", "torch_hook", "KerasCallback",
    "TrainerCallback", "ASGIMiddleware", "catch_checkpoint_signals", "checkpoint_requested",
]

EVERY_S = 1.0  # between two datagrams
AGAIN_S = 0.1  # when one could not be sent
BYTES_MOST = 1400  # of a datagram
BINS_MOST = 4000  # kept; older ones are left out
BIN_S = 0.025  # where nobody says what latency is promised


def _who():
    """(job, run, secret) as reports name them, or None. What a job under Slurm is given at its
    submission lacks its number in GOGH or the run: Slurm's own stand in."""
    slurm = os.environ.get("SLURM_JOB_ID")
    job = os.environ.get("GOGH_JOB") or (slurm and "s" + slurm)
    run = os.environ.get("GOGH_RUN") or (slurm and os.environ.get("SLURM_RESTART_COUNT", "0"))
    secret = os.environ.get("GOGH_SECRET")
    return (job, run, secret) if job and run and secret else None


def inside():
    """Are we inside a job of GOGH?"""
    return bool(os.environ.get("GOGH_REPORTS")) and _who() is not None


def _number(name):
    try:
        v = float(os.environ.get(name, ""))
    except ValueError:
        return 0.0
    return v if math.isfinite(v) and v >= 0 else 0.0


def restarts():
    """How often this job was started before."""
    return int(_number("GOGH_RESTART") or _number("SLURM_RESTART_COUNT"))


def steps_done():
    """Steps that the job had done before this run, as far as GOGH has heard."""
    v = _number("GOGH_STEPS_DONE")
    return int(v) if v == int(v) else v


def _address(text):
    """(family, address) of "unix:/path" or "udp:HOST:PORT"."""
    kind, _, rest = text.partition(":")
    if kind == "unix":
        return socket.AF_UNIX, rest
    if kind != "udp":
        raise ValueError(text)
    host, _, port = rest.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    return found[0], found[4]


class _Bins:
    """Arrivals by bins that were not told yet; a negative number is a run of empty ones."""

    def __init__(self, bin_s, now_s):
        self.bin_s = bin_s
        self._from_s = now_s  # when the present one began
        self._came = 0  # in it
        self._entries = []
        self._n = 0

    def _keep(self, count, n):
        if self._n + n > BINS_MOST:
            self._entries, self._n = [], 0
        if not count and self._entries and self._entries[-1] < 0:
            self._entries[-1] -= n
        else:
            self._entries.append(count or -n)
        self._n += n

    def move(self, now_s):
        """The bin of now is the present one."""
        past = int((now_s - self._from_s) / self.bin_s)
        if past > BINS_MOST:
            self._entries, self._n, self._came, self._from_s = [], 0, 0, now_s
        elif past > 0:
            self._keep(self._came, 1)
            if past > 1:
                self._keep(0, past - 1)
            self._came = 0
            self._from_s += past * self.bin_s

    def arrive(self, now_s):
        self.move(now_s)
        self._came += 1

    def text(self, room):
        """(key and value, how many entries these are), of at most so many bytes."""
        if not self._entries:
            return "", 0
        words, left = [], room - len(" arr=60000.000:")
        for e in self._entries:
            word = str(e) if e > 0 else "0" if e == -1 else "z%d" % -e
            left -= len(word) + 1
            if left < 0:
                break
            words.append(word)
        return (" arr=%.6g:%s" % (self.bin_s * 1e3, ",".join(words)), len(words)) if words else ("", 0)

    def drop(self, n):
        self._n -= sum(-e if e < 0 else 1 for e in self._entries[:n])
        del self._entries[:n]

    def __len__(self):
        return len(self._entries)


class _Served:
    """What a server has to say besides its count; None: not said."""

    def __init__(self, now_s):
        self.latency_s = _number("GOGH_LATENCY_S")
        bin_s = _number("GOGH_BIN_MS") / 1e3 or self.latency_s / 8 or BIN_S
        self.bins = _Bins(min(max(bin_s, 0.001), 60.0), now_s)
        self.ready = None
        self.late = 0 if self.latency_s else None
        self.queued = 0
        self.batches = self.busy_s = None

    def text(self):
        said = (("ready", self.ready), ("late", self.late), ("q", self.queued),
                ("b", self.batches), ("busy", self.busy_s))
        return "".join(" %s=%.15g" % (k, v) for k, v in said if v is not None)


class _Request:
    """From when a request came to when it was answered, as a context."""

    def __init__(self, tracker):
        self._tracker = tracker

    def __enter__(self):
        self._from_s = time.monotonic()
        self._tracker.arrive()
        return self

    def __exit__(self, kind, error, trace):
        self._tracker.done(time.monotonic() - self._from_s)
        return False


class Tracker:
    """A count of steps, and the datagrams that tell it. Made by track(); any thread may use it."""

    def __init__(self, start=None, every_s=EVERY_S):
        self._lock = threading.Lock()
        self._every_s = every_s
        self._total = steps_done() if start is None else start
        self._counted = False
        self._sent = None
        self._next_s = 0.0
        self._unfit = False
        self._served = None
        self._closed = threading.Event()
        self._socket = None
        self._pid = os.getpid()
        try:
            self._open()
        except (OSError, ValueError):
            self._socket = None
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._relock)

    def _relock(self):
        self._lock = threading.Lock()  # whoever held it is not here

    def _open(self):
        if not inside():
            return
        family, self._to = _address(os.environ["GOGH_REPORTS"])
        self._head = "gogh1 %s %s %s" % _who()
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    @property
    def total(self):
        """Steps done since the job's first start."""
        return self._total

    def step(self, n=1):
        """n more steps are done."""
        with self._lock:
            self._count(self._total + n)

    def steps(self, total):
        """total steps are done, counted since the job's first start.

        It never falls, but for the first one, which says where the checkpoint was.
        """
        with self._lock:
            self._count(total)

    def unfit(self):
        """The GPU's memory does not suffice: say so, then end with an error. GOGH starts the job elsewhere."""
        with self._lock:
            self._unfit = True
            self._send()

    # ---- servers ----

    def ready(self):
        """Requests are taken from now on; said at once."""
        with self._lock:
            self._serve().ready = 1
            self._send()

    def request(self):
        """with t.request(): a request came, and is answered in the block."""
        return _Request(self)

    def arrive(self):
        """A request came."""
        with self._lock:
            served = self._serve()
            served.queued += 1
            served.bins.arrive(time.monotonic())
            self._speak()

    def done(self, latency_s):
        """It was answered, so long after it came."""
        with self._lock:
            served = self._serve()
            self._total += 1
            self._counted = True
            served.queued = max(served.queued - 1, 0)
            if served.late is not None:
                served.late += not latency_s <= served.latency_s
            self._speak()

    def batch(self, n, seconds):
        """A batch of n requests took so long; one of none is not counted."""
        with self._lock:
            served = self._serve()
            try:
                is_one = n > 0 and math.isfinite(seconds) and seconds >= 0
            except TypeError:
                return
            if is_one:
                served.batches = (served.batches or 0) + 1
                served.busy_s = (served.busy_s or 0) + seconds
            self._speak()

    def _serve(self):
        if self._served is None:
            self._served = _Served(time.monotonic())
            self._start_timer()
        return self._served

    def _start_timer(self):
        """Somebody who speaks where nothing comes."""
        if self._socket is not None:
            threading.Thread(target=self._keep_speaking, name="gogh", daemon=True).start()

    def _keep_speaking(self):
        while not self._closed.wait(self._every_s):
            with self._lock:
                self._speak()

    def _speak(self):
        """Where it is time; bins that fill up are told before."""
        now_s = time.monotonic()
        self._served.bins.move(now_s)
        early_s = 0.75 * self._every_s if len(self._served.bins) > 256 else 0
        if now_s >= self._next_s - early_s and os.getpid() == self._pid:
            self._send()

    def flush(self):
        """The last count, now, where it was not told yet."""
        with self._lock:
            self._flush()

    def _flush(self):
        # A forked worker (of a data loader, say) knows less than its parent, and keeps silent. So does
        # whoever counted nothing and would only repeat what GOGH knows.
        knows_more = self._counted or not self._total
        if os.getpid() == self._pid and knows_more and self._is_news():
            self._send()

    def close(self):
        """The last count, and the end."""
        with self._lock:
            self._closed.set()
            if self._served is not None and os.getpid() == self._pid:
                self._served.ready = 0 if self._served.ready else self._served.ready
                self._send()
            else:
                self._flush()
            if self._socket is not None:
                self._socket.close()
            self._socket = None
        atexit.unregister(self.close)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None and is_out_of_memory(error):
            self.unfit()
        self.close()
        return False

    def _count(self, total):
        try:
            is_count = math.isfinite(total) and total >= 0
        except TypeError:
            return
        if is_count and (total > self._total or not self._counted):
            self._total = total
            self._counted = True
        if self._is_news() and time.monotonic() >= self._next_s:
            self._send()

    def _is_news(self):
        return self._socket is not None and (self._sent is None or self._total > self._sent)

    def _send(self):
        if self._socket is None:
            return
        text = "%s %.15g%s" % (self._head, self._total, " unfit=1" if self._unfit else "")
        n_told = 0
        if self._served is not None:
            self._served.bins.move(time.monotonic())
            text += self._served.text()
            bins, n_told = self._served.bins.text(BYTES_MOST - len(text))
            text += bins
        try:
            self._socket.sendto(text.encode("ascii"), self._to)
        except (OSError, ValueError):  # full, or the daemon is away: the next one says it again
            self._next_s = time.monotonic() + AGAIN_S
            return
        self._next_s = time.monotonic() + self._every_s
        self._sent = self._total
        if n_told:
            self._served.bins.drop(n_told)
            if len(self._served.bins):  # not all had room
                self._next_s = 0.0


def is_out_of_memory(error):
    """Is it the error that a framework raises when a GPU's memory does not suffice?"""
    names = {c.__name__ for c in type(error).__mro__}
    return bool(names & {"OutOfMemoryError", "ResourceExhaustedError"}) or (
        isinstance(error, RuntimeError) and "out of memory" in str(error))


def track(start=None, every_s=EVERY_S):
    """A Tracker. Counts from 'start', or from what the job had done before this run.

    As a context ("with gogh.track() as t:") it also tells GOGH when the block ends because
    the GPU's memory does not suffice.
    """
    return Tracker(start, every_s)


class ASGIMiddleware:
    """app = gogh.ASGIMiddleware(app): counts HTTP requests, and is ready when the application is."""

    def __init__(self, app, tracker=None):
        self.app = app
        self.tracker = tracker if tracker is not None else track()
        self._is_ready = False

    def _ready(self):
        if not self._is_ready:
            self._is_ready = True
            self.tracker.ready()

    async def __call__(self, scope, receive, send):
        kind = scope.get("type")
        if kind == "lifespan":
            async def send_and_see(message):
                if message.get("type") == "lifespan.startup.complete":
                    self._ready()
                await send(message)

            await self.app(scope, receive, send_and_see)
        elif kind == "http":
            self._ready()  # where there is no lifespan, the first request says so
            with self.tracker.request():
                await self.app(scope, receive, send)
        else:
            await self.app(scope, receive, send)


# ---- frameworks: nothing of them is imported before it is asked for ----

def torch_hook(tracker=None, n=1):
    """For PyTorch 2: optimizer.register_step_post_hook(gogh.torch_hook()) counts every step."""
    t = tracker if tracker is not None else track()

    def hook(*args, **kwargs):
        t.step(n)

    hook.tracker = t
    return hook


def _keras_callback():
    try:
        from keras.callbacks import Callback
    except ImportError:
        from tensorflow.keras.callbacks import Callback

    class KerasCallback(Callback):
        """model.fit(..., callbacks=[gogh.KerasCallback()]) counts every batch."""

        def __init__(self, tracker=None):
            super().__init__()
            self.tracker = tracker if tracker is not None else track()

        def on_train_batch_end(self, batch, logs=None):
            self.tracker.step()

        def on_train_end(self, logs=None):
            self.tracker.flush()  # there may be another fit()

    return KerasCallback


def _trainer_callback():
    from transformers import TrainerCallback as Base

    class TrainerCallback(Base):
        """Trainer(..., callbacks=[gogh.TrainerCallback()]) tells the trainer's global step."""

        def __init__(self, tracker=None):
            super().__init__()
            self.tracker = tracker if tracker is not None else track()

        def _is_told_here(self, state):
            return getattr(state, "is_world_process_zero", True)

        def on_step_end(self, args, state, control, **kwargs):
            if self._is_told_here(state):
                self.tracker.steps(state.global_step)
            if checkpoint_requested():
                control.should_save = True
                control.should_training_stop = True
            return control

        def on_train_end(self, args, state, control, **kwargs):
            if self._is_told_here(state):
                self.tracker.steps(state.global_step)
                self.tracker.flush()
            return control

    return TrainerCallback


_lazy = {"KerasCallback": _keras_callback, "TrainerCallback": _trainer_callback}


def __getattr__(name):  # PEP 562: made when first asked for
    if name not in _lazy:
        raise AttributeError("module 'gogh' has no attribute %r" % name)
    globals()[name] = made = _lazy[name]()
    return made


# ---- moves ----

_requested = False


def catch_checkpoint_signals(signals=(signal.SIGUSR1, signal.SIGTERM)):
    """From the main thread: take note when GOGH asks to save and end, instead of dying of it."""
    def note(number, frame):  # may come in the middle of anything: no lock, nothing but a flag
        global _requested
        _requested = True

    for s in signals:
        signal.signal(s, note)


def checkpoint_requested():
    """Has GOGH asked to save and end (after catch_checkpoint_signals)?"""
    return _requested
