#!/usr/bin/env python3
"""GPUs that a driver shows, and watts that it or a dcgm-exporter tells; by stand-ins for both.

The driver is tests/helpers/nvml_stub.c, which says what a file says. That GPUs are found and typed,
that watts are read and add up to joules, that power limits are set and given back, that jobs see the
GPUs they were given; and that a driver which fails or hangs, or an exporter that is gone, leaves it
to the model and holds nobody up.
"""
import http.server
import os
import re
import sys
import threading

from daemon import Box, check, run, until

# Name, UUID, bytes, watts, joules counted so far (-1: not counted), and lowest, usual, highest limit.
V100 = ["Tesla_V100-SXM2-16GB", "GPU-v", 17e9, 61, -1, 100, 300, 300]
P100 = ["Tesla_P100-PCIE-16GB", "GPU-p", 17e9, 42, -1, 125, 250, 250]

LINES = ["gpus nvml", "power nvml", "power_s 0.2", "decide_s 0.2", "warmup_s 1"]
SLEEPER = ["/bin/sleep", "300"]


class GpuBox(Box):
    """A box whose GPUs are those of the driver's file."""

    def __init__(self, gpus, lines):
        super().__init__(lines=lines)
        self.cards = [list(g) for g in gpus]
        self.trouble = []
        self.tell()

    def tell(self):
        """The driver's file as it should be; limits that were set stay in it."""
        lines = ["gpu %d %s" % (i, " ".join(str(w) for w in g)) for i, g in enumerate(self.cards)]
        lines += ["set %d %g" % pair for pair in self.limits()] + self.trouble
        with open(self.path("nvml.new"), "w") as f:
            f.write("\n".join(lines) + "\n")
        os.rename(self.path("nvml.new"), self.path("nvml"))

    def limits(self):
        """Power limits in the order they were set: (GPU, watts)."""
        if not os.path.exists(self.path("nvml")):
            return []
        with open(self.path("nvml")) as f:
            rows = [line.split() for line in f]
        return [(int(r[1]), float(r[2])) for r in rows if r[0] == "set"]

    def write_config(self, lines=None):
        name = super().write_config(lines)
        with open(name) as f:
            kept = [line for line in f if not line.startswith("node ")]
        with open(name, "w") as f:
            f.writelines(kept)
        return name

    def begin(self, lines=None):
        self.start(lines, env={"GOGH_NVML_LIB": os.environ["NVML_STUB_LIB"],
                               "NVML_STUB": self.path("nvml"), "GOGH_ROCM_LIB": "/nonesuch"})

    def all_gpus(self):
        return self.get("/v1/gpus")["gpus"]

    def watts(self):
        return [(g["source"], g["watts"]) for g in self.all_gpus()]

    def until_watts(self, want):
        until("watts are %s, not %s" % (want, self.watts()), lambda: self.watts() == want)

    def sleeper(self, name, **more):
        body = {"argv": SLEEPER, "workload": "ResNet-18", "batch": 64, "steps": 1e6, "cwd": "/",
                "name": name}
        return self.submit(dict(body, **more))["id"]


def environment(pid):
    with open("/proc/%d/environ" % pid, "rb") as f:
        return dict(entry.split("=", 1) for entry in f.read().decode().split("\0") if entry)


def pid_of(box, job):
    """Of the job's command: the one that the run's status names."""
    box.until_state(job, "running")
    with open(box.path("runs/%d.0/status" % job)) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("started"))


def check_quiet(box):
    """The loop went on all the time. A busy machine may hold it for a moment, a driver for seconds."""
    held = [int(m) for m in re.findall(r"the loop was held for (\d+) ms", box.log())]
    check(len(held) == box.metric("gogh_loop_stalls_total"), "stalls that were logged:", held)
    check(max(held, default=0) < 1000, "the loop was held for", held, "ms")


# ---- the driver ----

def check_found(box):
    gpus = box.all_gpus()
    check([g["type"] for g in gpus] == ["v100-sxm2-16", "p100"], "types are",
          [g["type"] for g in gpus])
    check(gpus[0]["title"] == "Tesla V100-SXM2-16GB", "the driver's title is", gpus[0]["title"])
    check([g["sharing"] for g in gpus] == ["timeslice", "timeslice"], "they share by", gpus)
    check(len({g["node"] for g in gpus}) == 1 and gpus[1]["slot"] == 1, "they are", gpus)


def check_seen(box):
    """A job sees the GPU it was given, and no other."""
    for kind, uuid in (("v100-sxm2-16", "GPU-v"), ("p100", "GPU-p")):
        job = box.sleeper("on-" + kind, types=[kind], exclusive=True)
        seen = environment(pid_of(box, job))
        check(seen["CUDA_VISIBLE_DEVICES"] == uuid and seen["GOGH_GPU_TYPE"] == kind,
              "on a", kind, "a job sees", seen)
        check("ROCR_VISIBLE_DEVICES" not in seen, "a job on an NVIDIA GPU is told of AMD's")


def check_limits(box):
    """What is known to draw much is limited; with the job goes its limit."""
    box.must("POST", "/v1/measurements", {"measurements": [
        {"workload": "ResNet-18 (batch size 64)", "gpu": kind, "throughput": speed, "watts": watts,
         "duration_s": 600}
        for kind, speed, watts in (("v100-sxm2-16", 20, 295), ("p100", 12, 245))]})
    limited = until("a power limit is set", lambda: [g for g in box.all_gpus() if g["limit_w"]])
    for g in limited:
        card = box.cards[g["slot"]]
        check(card[5] <= g["limit_w"] <= card[7], "a limit beyond its bounds:", g)
        until("the driver has the limit of %s" % g["gpu"],
              lambda g=g: dict(box.limits()).get(g["slot"]) == g["limit_w"])
    for g in box.all_gpus():
        for j in g["jobs"]:
            box.must("POST", "/v1/jobs/%d/cancel" % j["id"])
    until("limits are back at the default",
          lambda: all(w == box.cards[i][6] for i, w in dict(box.limits()).items()))


def trouble(box, line, want):
    """Something befalls the driver, and passes."""
    before = box.metric("gogh_power_failures_total")
    box.trouble = [line]
    box.tell()
    until("the model stands in: " + line,
          lambda: all(source == "model" and w > 0 for source, w in box.watts()))
    check(box.metric("gogh_power_failures_total") > before, "failures are not counted")
    job = box.sleeper("meanwhile")
    box.until_state(job, "running")
    box.must("POST", "/v1/jobs/%d/cancel" % job)
    box.until_state(job, "cancelled")
    box.trouble = []
    box.tell()
    box.until_watts(want)


def try_driver():
    with GpuBox([V100, P100], LINES + ["set power_limits 1"]) as box:
        box.begin()
        check_found(box)
        box.until_watts([("nvml", 61), ("nvml", 42)])
        box.cards[1][3] = 117.5
        box.tell()
        box.until_watts([("nvml", 61), ("nvml", 117.5)])
        check_seen(box)
        check_limits(box)
        want = [("nvml", 61), ("nvml", 117.5)]
        trouble(box, "fail nvmlDeviceGetPowerUsage 15", want)
        trouble(box, "hang nvmlDeviceGetPowerUsage", want)
        check_quiet(box)
        box.finish()


def try_hanging_end():
    """A driver that never answers again does not keep the daemon from ending."""
    with GpuBox([V100], LINES) as box:
        box.begin()
        box.until_watts([("nvml", 61)])
        box.trouble = ["hang nvmlDeviceGetPowerUsage"]
        box.tell()
        until("the model stands in", lambda: box.watts()[0][0] == "model")
        box.finish()


def try_another_card():
    """GPUs that change between two starts are a node of another name, and jobs run there."""
    with GpuBox([V100], LINES) as box:
        box.begin()
        box.stop()
        box.cards.append(P100)
        box.tell()
        box.begin()
        nodes = box.get("/v1/nodes")["nodes"]
        check([n["state"] for n in nodes] == ["down", "up"], "nodes are", nodes)
        until("the new node's watts are read",
              lambda: box.watts()[1:] == [("nvml", 61), ("nvml", 42)])
        job = box.sleeper("after", types=["p100"])
        seen = environment(pid_of(box, job))["CUDA_VISIBLE_DEVICES"]
        check(seen == "GPU-p", "a job sees", seen)
        box.must("POST", "/v1/jobs/%d/cancel" % job)
        box.until_state(job, "cancelled")
        box.finish()


def try_sharing():
    """What was known of how GPUs are shared is taken back by a word, or by GPUs that differ."""
    said = "gputype v100-sxm2-16 sharing="
    one_each = ["mode 0 0 3", "mode 1 0 3"]
    with GpuBox([V100, [V100[0], "GPU-w"] + list(V100[2:])], LINES) as box:
        for lines, modes, want in (([said + "exclusive"], [], "exclusive"),
                                   ([said + "unknown"], [], None),
                                   ([], one_each, "exclusive"),
                                   ([], one_each[1:], None),
                                   ([], ["mode 0 0 2", "mode 1 0 2"], None),
                                   ([], [], "timeslice")):
            box.trouble = modes
            box.tell()
            box.begin(lines)
            until("with %s and %s GPUs share by %s" % (lines, modes, want),
                  lambda: [g["sharing"] for g in box.all_gpus()] == [want, want])
            if "mode 0 0 2" in modes:
                check("compute mode 'prohibited'" in box.log(), "a GPU that takes nothing is told")
            box.stop()


def try_refusals():
    with GpuBox([V100], LINES) as box:
        box.trouble = ["fail nvmlDeviceGetCount_v2 9"]
        box.tell()
        env = {"GOGH_NVML_LIB": os.environ["NVML_STUB_LIB"], "NVML_STUB": box.path("nvml")}
        said = box.refused(env=env)
        check("NVML" in said, "a driver that fails is not named:", said)
        box.trouble = []
        box.cards[0][0] = "Mystery_9000"
        box.tell()
        said = box.refused(env=env)
        check("Mystery 9000" in said and "gputype" in said, "an unknown GPU is refused with", said)


# ---- the exporter ----

class Exporter(http.server.BaseHTTPRequestHandler):
    watts = {}

    def do_GET(self):
        lines = ["# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).",
                 "# TYPE DCGM_FI_DEV_POWER_USAGE gauge"]
        lines += ['DCGM_FI_DEV_POWER_USAGE{gpu="%d",UUID="",device="nvidia%d"} %g' % (i, i, w)
                  for i, w in self.watts.items()]
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Server:
    def __init__(self, port=0):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Exporter)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def joules(box):
    return [g["joules"] for g in box.all_gpus()]


def check_energy(box, watts):
    """Joules grow as the exporter's watts say, and jobs and nobody used all of them."""
    with_clock = lambda: (box.get("/v1/status")["now_s"], joules(box))
    t0, before = with_clock()
    until("three seconds pass", lambda: with_clock()[0] >= t0 + 3)
    t1, after = with_clock()
    for i, w in enumerate(watts):
        grown = (after[i] - before[i]) / (t1 - t0)
        check(abs(grown / w - 1) < 0.25, "GPU", i, "draws", w, "W and its joules grow by", grown)
    low = sum(joules(box))
    total = box.get("/v1/report")["total"]["joules"]
    high = sum(joules(box))
    check(low * (1 - 1e-6) <= total <= high + 2 * sum(watts), "the GPUs drew", low, "to", high,
          "J and the report has", total)


def try_dcgm():
    Exporter.watts = {0: 200, 1: 90.5}
    with Server() as server:
        url = "http://127.0.0.1:%d/metrics" % server.port
        box = Box("v100:1 k80:1", ["power dcgm=" + url, "power_s 0.2", "decide_s 0.2"])
        with box:
            drive_dcgm(box, server)


def until_sources(box, want):
    until("sources are %s" % want,
          lambda: [(g["source"], g["watts"]) for g in box.get("/v1/gpus")["gpus"]] == want)


def drive_dcgm(box, server):
    box.all_gpus = lambda: box.get("/v1/gpus")["gpus"]
    box.start()
    until_sources(box, [("dcgm", 200), ("dcgm", 90.5)])
    job = box.submit({"argv": SLEEPER, "workload": "LM", "batch": 20, "cwd": "/"})["id"]
    box.until_state(job, "running")
    check_energy(box, [200, 90.5])
    server.__exit__()
    until("the model stands in",
          lambda: all(g["source"] == "model" and g["watts"] > 0 for g in box.all_gpus()))
    Exporter.watts = {0: 150, 1: 80}
    with Server(server.port):
        until_sources(box, [("dcgm", 150), ("dcgm", 80)])
        Exporter.watts = {1: 80}    # it lost one
        until("one is read, one modelled",
              lambda: [g["source"] for g in box.all_gpus()] == ["model", "dcgm"])
        box.must("POST", "/v1/jobs/%d/cancel" % job)
        box.until_state(job, "cancelled")
        check_quiet(box)
        box.finish()


def main():
    try_refusals()
    try_driver()
    try_hanging_end()
    try_another_card()
    try_sharing()
    try_dcgm()
    print("found, read, limited, and done without")


if __name__ == "__main__":
    sys.exit(run(main))
