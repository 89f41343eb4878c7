"""Meters of GPUs that are not there: watts and joules by what runs, as dcgm-exporter has them."""
import fcntl
import http.server
import os
import subprocess
import threading
import time

from daemon import CEILING_S, check


def gogh(*words, status=0):
    done = subprocess.run([os.environ["GOGH"]] + list(words), text=True, capture_output=True,
                          timeout=CEILING_S)
    check(done.returncode == status, "gogh", words, "ended with %d, not %d:" %
          (done.returncode, status), done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def locked(folder):
    """(place, who, row) of all workers that hold their place locked, as they see each other."""
    for name in os.listdir(folder):
        place, at, who = name.partition("@")
        if not at:
            continue
        try:
            with open(os.path.join(folder, name)) as f:
                try:
                    fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield place, who, f.read()
        except FileNotFoundError:
            pass


class Meter:
    """Watts of all GPUs, read twenty times a second, as joules since it began.

    'labels' has a GPU's labels on the page, 'figures' the idle and greatest watts of each type,
    'loads' the part of what lies between that a row draws alone.
    """

    def __init__(self, labels, figures, loads):
        self.labels, self.figures, self.loads = labels, figures, loads
        self.joules = dict.fromkeys(labels, 0.0)
        self.watts = {gpu: figures[self.type_of(gpu)][0] for gpu in labels}
        self.is_over, self.lock = False, threading.Lock()
        meter = self

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = meter.page().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.threads = [threading.Thread(target=f)
                        for f in (self.integrate, self.server.serve_forever)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *unused):
        self.is_over = True
        self.server.shutdown()
        self.server.server_close()
        for t in self.threads:
            t.join()

    def url(self):
        return "http://127.0.0.1:%d/metrics" % self.server.server_address[1]

    def type_of(self, gpu):
        raise NotImplementedError

    def shares(self):
        """{gpu: [(row, what is left of its speed alone), ...]} at this moment."""
        raise NotImplementedError

    def alone_w(self, gpu_type, row):
        idle, cap = self.figures[gpu_type]
        return idle + self.loads[row] * (cap - idle)

    def now_w(self):
        there, watts = self.shares(), {}
        for gpu in self.labels:
            idle, cap = self.figures[self.type_of(gpu)]
            drawn = sum(share * (self.alone_w(self.type_of(gpu), row) - idle)
                        for row, share in there.get(gpu, ()))
            watts[gpu] = min(idle + drawn, cap)
        return watts

    def integrate(self):
        at_s = time.monotonic()
        while not self.is_over:
            time.sleep(0.05)
            watts, now_s = self.now_w(), time.monotonic()
            with self.lock:
                self.watts = watts
                for gpu in watts:
                    self.joules[gpu] += watts[gpu] * (now_s - at_s)
            at_s = now_s

    def page(self):
        form = "DCGM_FI_DEV_%s{%s} %.3f\n"
        with self.lock:
            return "".join(form % (what, self.labels[gpu], value) for gpu in self.labels
                           for what, value in (("POWER_USAGE", self.watts[gpu]),
                                               ("TOTAL_ENERGY_CONSUMPTION",
                                                1000 * self.joules[gpu]),
                                               ("GPU_UTIL", self.busy(gpu)),
                                               ("MEM_COPY_UTIL", self.busy(gpu) / 3),
                                               ("FB_USED", 4000)))

    def busy(self, gpu):
        """Percent: as its watts are of what it may draw."""
        idle, cap = self.figures[self.type_of(gpu)]
        return 100 * (self.watts[gpu] - idle) / (cap - idle)
