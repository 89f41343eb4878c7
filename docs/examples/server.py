"""A small inference server with dynamic batching that only pretends to have a model.

    gogh submit --service --rate 40 --p99 200ms --max-batch 16 -- \\
        python3 docs/examples/server.py --t0 20ms --per-request 2ms --max-batch 16

Whoever waits is taken together, up to --max-batch; a batch of b requests takes t0 + b * per-request
seconds, longer on slow GPUs (--speed). What a real server does for GOGH is all here:

    GET  /healthz   200 when it takes requests; 503 while it loads and once it was told to end
    POST /infer     (or GET) one request
    GET  /stats     what it did so far

It listens where GOGH_PORT says, tells GOGH of requests and batches, and on SIGTERM serves on until
balancers have heard of it, then ends with 0: nobody who asked goes without an answer.
"""
import argparse
import asyncio
import concurrent.futures
import contextlib
import hashlib
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import gogh

REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}
PATIENCE = 10  # drains, after which it leaves although requests still come


def seconds(text):
    """0.2 of "0.2", "0.2s" or "200ms"."""
    if text.endswith("ms"):
        return float(text[:-2]) / 1000
    return float(text.removesuffix("s"))


def speeds(text):
    """{"k80": 3.0} of "k80=3"; several are parted by commas."""
    return {name: float(times) for name, times in (word.split("=") for word in text.split(","))}


def read_options(words=None):
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--host", default="127.0.0.1",
                   help="where to listen; 0.0.0.0 where requests come from other hosts")
    p.add_argument("--port", type=int, default=int(os.environ.get("GOGH_PORT", 0)),
                   help="GOGH_PORT unless told; 0: any that is free")
    p.add_argument("--t0", type=seconds, default=0.02, help="what any batch takes")
    p.add_argument("--per-request", type=seconds, default=0.002, help="what each one adds")
    p.add_argument("--max-batch", type=int, default=16)
    p.add_argument("--speed", type=speeds, default={}, metavar="TYPE=TIMES,...",
                   help="how many times longer it takes on a GPU type (GOGH_GPU_TYPE)")
    p.add_argument("--load-time", type=seconds, default=0.0, help="until it takes requests")
    p.add_argument("--drain", type=seconds, default=2.0,
                   help="told to end, it leaves when nothing was asked of it for so long")
    p.add_argument("--burn", action="store_true", help="use the CPU meanwhile instead of sleeping")
    return p.parse_args(words)


class Silent:
    """In place of a tracker that knows nothing of requests."""
    request = contextlib.nullcontext
    ready = batch = lambda *_: None


def burn(cpu_s):
    """Use that much time of a CPU. Hashing lets go of Python's lock, so requests still come in."""
    end = time.thread_time() + cpu_s
    block = bytes(200_000)
    while time.thread_time() < end:
        hashlib.sha256(block)


class Server:
    def __init__(self, options):
        self.options = options
        self.gpu = os.environ.get("GOGH_GPU_TYPE", "none")
        self.times = options.speed.get(self.gpu, 1.0)
        tracker = gogh.track()
        self.tracker = tracker if hasattr(tracker, "request") else Silent()
        self.burner = concurrent.futures.ThreadPoolExecutor(1)
        self.waiting = asyncio.Queue()
        self.is_ready = self.is_draining = False
        self.n_inside = self.n_requests = self.n_batches = 0
        self.asked_s = time.monotonic()  # when the last request came

    # ---- the model ----

    def step_s(self, n):
        return (self.options.t0 + self.options.per_request * n) * self.times

    async def compute(self, n):
        if self.options.burn:
            await asyncio.get_running_loop().run_in_executor(self.burner, burn, self.step_s(n))
        else:
            await asyncio.sleep(self.step_s(n))

    async def work(self):
        """Forever: take whoever waits, as many as fit, and answer them together."""
        while True:
            batch = [await self.waiting.get()]
            while len(batch) < self.options.max_batch and not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            began_s = time.monotonic()
            await self.compute(len(batch))
            self.n_batches += 1
            self.tracker.batch(len(batch), time.monotonic() - began_s)
            for done in batch:
                if not done.done():
                    done.set_result(len(batch))

    async def infer(self):
        """One request: how large the batch was that it came to."""
        done = asyncio.get_running_loop().create_future()
        self.n_inside += 1
        self.n_requests += 1
        self.asked_s = time.monotonic()
        try:
            with self.tracker.request():
                self.waiting.put_nowait(done)
                return await done
        finally:
            self.n_inside -= 1

    # ---- HTTP ----

    async def answer(self, path):
        """(status, object) for a request."""
        if path == "/infer":
            if not self.is_ready:
                return 503, {"error": "the model is being loaded"}
            return 200, {"batch": await self.infer(), "gpu": self.gpu, "pid": os.getpid()}
        if path == "/healthz":
            is_up = self.is_ready and not self.is_draining
            return (200 if is_up else 503), {"ready": is_up, "draining": self.is_draining}
        if path == "/stats":
            return 200, {"requests": self.n_requests, "batches": self.n_batches,
                         "queued": self.waiting.qsize(), "inside": self.n_inside}
        return 404, {"error": "there are /infer, /healthz and /stats"}

    async def serve(self, reader, writer):
        """A connection: one request after the other."""
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError,
                                 asyncio.LimitOverrunError, asyncio.CancelledError):
            is_last = False
            while not is_last:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in head[1:])}
                await reader.readexactly(int(headers.get("content-length", 0)))
                status, body = await self.answer(head[0].split(" ")[1].partition("?")[0])
                text = json.dumps(body).encode()
                is_last = self.is_draining or headers.get("connection", "").lower() == "close"
                more = "Connection: close\r\n" if is_last else ""
                writer.write(b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%s"
                             b"Content-Length: %d\r\n\r\n%s" %
                             (status, REASONS[status].encode(), more.encode(), len(text), text))
                await writer.drain()
        writer.close()

    # ---- its life ----

    async def load(self):
        await asyncio.sleep(self.options.load_time)
        self.is_ready = True
        self.tracker.ready()
        print("ready", flush=True)

    async def drain(self, listener):
        """Balancers hear of the end a little later: serve until nothing has come for a while."""
        self.is_draining = True
        drain_s = self.options.drain
        self.asked_s = time.monotonic()
        end_s = self.asked_s + PATIENCE * drain_s
        while time.monotonic() < min(self.asked_s + drain_s, end_s):
            await asyncio.sleep(drain_s / 20)
        listener.close()
        while self.n_inside:
            await asyncio.sleep(0.01)

    async def run(self):
        told_to_end = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_end.set)
        listener = await asyncio.start_server(self.serve, self.options.host, self.options.port,
                                              backlog=1024)
        print("listening on %d" % listener.sockets[0].getsockname()[1], flush=True)
        tasks = [asyncio.create_task(self.work()), asyncio.create_task(self.load())]
        await told_to_end.wait()
        await self.drain(listener)
        print("done: %d requests in %d batches" % (self.n_requests, self.n_batches), flush=True)
        del tasks  # which asyncio.run ends


if __name__ == "__main__":
    try:
        asyncio.run(Server(read_options()).run())
    except OSError as e:
        sys.exit("server.py: cannot listen: %s" % e)
