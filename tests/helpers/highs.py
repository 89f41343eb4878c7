#!/usr/bin/env python3
"""The optimum of a small problem file, found by HiGHS: a second opinion in every respect.

    highs.py PROBLEM.json

Reads docs/formats/problem.md for itself, does the arithmetic again, and writes the problem down
in the plainest way there is: a binary for every GPU, power limit and set of jobs on it, one for
every gang and set of GPUs, rows as the rules say. Prints the objective; fails when HiGHS does not
prove an optimum. Status 77: scipy with milp is not there.
"""
import itertools
import json
import math
import sys

try:
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csc_matrix
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)


def numbers(v):
    return [float(x) for x in v.split()] if isinstance(v, str) else v


def row_of(table, k, n, default):
    """Row k of a table that may be a number, a list of numbers or a list of rows."""
    if table is None:
        return default
    if isinstance(table, (int, float)):
        return [table] * n
    row = table[k] if not isinstance(table, str) else numbers(table)[k]
    return [row] * n if isinstance(row, (int, float)) else numbers(row)


class Problem:
    def __init__(self, doc):
        self.theta = doc.get("theta", 2)
        self.price_w = doc.get("price_w", 0)
        self.cap_w = doc.get("power_cap_w", 0)
        self.margin = doc.get("watts_margin", 1)
        self.racks = doc.get("racks", [])
        self.kinds = doc["kinds"]
        self.kind_of = {k["name"]: i for i, k in enumerate(self.kinds)}
        z = doc.get("z", 1)
        near = numbers(doc.get("gang_near", list(range(1, 65))))
        far = numbers(doc.get("gang_far", near))
        self.near = lambda m: near[min(m, len(near)) - 1]
        self.far = lambda m: far[min(m, len(far)) - 1]
        self.types = [self.read_type(t, z) for t in doc["types"]]
        names = {t["name"]: i for i, t in enumerate(doc["types"])}
        self.type_of = lambda x: names[x] if isinstance(x, str) else x
        self.gpus = []
        for i, g in enumerate(doc["gpus"]):
            drained = g.get("drained", [])
            for k in range(g.get("count", 1)):
                is_drained = drained is True or (drained is not False and k in drained)
                self.gpus.append((self.type_of(g["type"]), g.get("node", ("own", i)),
                                  g.get("rack", 0), is_drained, g.get("wake_s", 0)))
        self.jobs = [self.read_job(j) for j in doc["jobs"] if j is not None]
        for i, k in enumerate(self.kinds):
            if "value_j" not in k:
                is_joules = doc.get("objective", "joules") == "joules"
                k["value_j"] = self.best_joules(i) if is_joules else 0

    def read_type(self, t, z):
        n = len(self.kinds)
        speed, sd = numbers(t["speed"]), t.get("sd", 0)
        sd = [sd] * n if isinstance(sd, (int, float)) else numbers(sd)
        cells = {}
        for k in range(n):
            slow = row_of(t.get("slowdown"), k, n, [0] * n)
            part = row_of(t.get("shared_sd"), k, n, [sd[k]] * n)
            cells[k, None] = (speed[k], speed[k] * math.exp(-z * sd[k]))
            for m in range(n):
                s = speed[k] * slow[m]
                cells[k, m] = (s, s * math.exp(-z * part[m]))
        limits = [None] + t.get("limits", [])
        return dict(cells=cells, watts=numbers(t["watts"]), limits=limits, cap_w=t["cap_w"],
                    mem=t["mem_gib"], sleep_w=t.get("sleep_w", 0),
                    idle_w=t.get("idle_w", t.get("sleep_w", 0)))

    def read_job(self, j):
        kind = self.kind_of[j["kind"]] if isinstance(j["kind"], str) else j["kind"]
        n_min = j.get("n_min", 1)
        return dict(kind=kind, spread=j.get("form") == "spread", n_min=n_min,
                    n_max=j.get("n_max", n_min), need=j.get("need", 0),
                    short_w=j.get("short_w", 1000), wait_w=j.get("wait_w", 1000),
                    move_w=j.get("move_w", 0) if j.get("present") else 0,
                    wake_rate=j.get("wake_rate", 0), late_w=j.get("late_w", 0),
                    types=[self.type_of(t) for t in j["types"]] if "types" in j else None,
                    alone=j.get("exclusive", False),
                    n_nodes=1 if j.get("one_node", False) else j.get("n_nodes", 0),
                    present=j.get("present", []), limit_w=j.get("limit_w", 0),
                    fixed=j.get("fixed", False))

    def limit_index(self, t, limit_w):
        for i, c in enumerate(self.types[t]["limits"]):
            if (c is None and limit_w == 0) or (c is not None and c["limit_w"] == limit_w):
                return i
        raise ValueError("no such limit")

    def run(self, t, limit, kinds):
        """Watts, speeds and what is held by these kinds on one GPU; None: they must not."""
        ty = self.types[t]
        if sum(self.kinds[k].get("mem_gib", 0) for k in kinds) > ty["mem"]:
            return None
        watts, speeds, lows = ty["idle_w"], [], []
        for i, k in enumerate(kinds):
            alone, low = ty["cells"][k, None]
            others = [m for n, m in enumerate(kinds) if n != i]
            speed = alone
            if len(others) == 1:
                speed, low = ty["cells"][k, others[0]]
            elif others:
                low = alone
                for m in others:
                    s, l = ty["cells"][k, m]
                    if not s > 0:
                        return None
                    speed, low = speed * min(s / alone, 1), low * min(l / alone, 1)
            if not (alone > 0 and speed > 0):
                return None
            watts += max(ty["watts"][k] - ty["idle_w"], 0) * min(self.done(k, speed) / alone, 1)
            speeds.append(speed)
            lows.append(low)
        watts = min(watts, ty["cap_w"])
        curve = ty["limits"][limit]
        if curve is not None:
            xs = np.linspace(ty["idle_w"], ty["cap_w"], len(numbers(curve["watts"])))
            f = float(np.interp(watts, xs, numbers(curve["speed"])))
            watts = float(np.interp(watts, xs, numbers(curve["watts"])))
            speeds, lows = [f * s for s in speeds], [f * l for l in lows]
        return watts, speeds, lows

    def done(self, k, speed):
        rate = self.kinds[k].get("rate", 0)
        return min(speed, rate) if rate > 0 else speed

    def best_joules(self, k):
        best = math.inf
        for t, ty in enumerate(self.types):
            for limit in range(len(ty["limits"])):
                r = self.run(t, limit, [k])
                if r:
                    best = min(best, (r[0] - ty["sleep_w"] + self.price_w) / self.done(k, r[1][0]))
        return best if math.isfinite(best) else 0

    def missed_w(self, j, low):
        return j["short_w"] * (1 - low / j["need"]) if low < j["need"] else 0

    def base_w(self):
        return sum(self.kinds[j["kind"]]["value_j"] * j["need"] for j in self.jobs)


class Program:
    def __init__(self):
        self.cost, self.upper, self.whole = [], [], []
        self.entries, self.low, self.high = [], [], []

    def column(self, cost, upper=1.0, whole=1):
        self.cost.append(cost)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(self, terms, low, high):
        self.entries += [(len(self.low), c, v) for c, v in terms]
        self.low.append(low)
        self.high.append(high)

    def solve(self):
        r, c, v = zip(*self.entries)
        a = csc_matrix((v, (r, c)), shape=(len(self.low), len(self.cost)))
        # Watts above caps by the width of a hair are the judge's business.
        out = milp(np.array(self.cost), integrality=np.array(self.whole),
                   bounds=Bounds(0, np.array(self.upper)),
                   constraints=LinearConstraint(a, np.array(self.low), np.array(self.high)),
                   options=dict(mip_rel_gap=0, time_limit=200))
        if out.status != 0:
            sys.exit(f"HiGHS: {out.message}")
        return out.fun


def wake_w(p, j, g):
    """What a job pays for waking a GPU that it comes to."""
    idle_w = p.types[p.gpus[g][0]]["idle_w"]
    return p.gpus[g][4] * (j["wake_rate"] * (idle_w + p.price_w) + j["late_w"])


def stands(p, on, n_nodes):
    """Are these GPUs on so many nodes, as many on each? 0: wherever."""
    nodes = [p.gpus[g][1] for g in on]
    return n_nodes == 0 or all(nodes.count(n) * n_nodes == len(nodes) for n in nodes)


def may_be_on(p, j, g):
    t, _, _, drained, _ = p.gpus[g]
    if j["types"] is not None and t not in j["types"]:
        return False
    if j["fixed"] and g not in j["present"]:
        return False
    return not drained or g in j["present"]


def write(p):
    prog = Program()
    n, m = len(p.jobs), len(p.gpus)
    once = [[] for _ in range(n)]          # of jobs that are not spread
    parts = [{} for _ in range(n)]         # of spread ones: GPU -> terms
    held = [[] for _ in range(n)]          # (column, low)
    on_gpu = [[] for _ in range(m)]
    over = [[] for _ in range(m)]          # (column, watts above idle)
    sharers = [i for i, j in enumerate(p.jobs) if j["spread"] or j["n_min"] <= 1]

    for g, (t, _, _, _, wake_s) in enumerate(p.gpus):
        ty = p.types[t]
        for limit in range(len(ty["limits"])):
            for size in range(1, p.theta + 1):
                for who in itertools.combinations(sharers, size):
                    js = [p.jobs[i] for i in who]
                    if not all(may_be_on(p, j, g) for j in js):
                        continue
                    if size > 1 and any(j["alone"] for j in js):
                        continue
                    r = p.run(t, limit, [j["kind"] for j in js])
                    if not r:
                        continue
                    watts, speeds, lows = r
                    cost = watts - ty["sleep_w"] + p.price_w
                    for j, s, l in zip(js, speeds, lows):
                        cost -= p.kinds[j["kind"]]["value_j"] * p.done(j["kind"], s)
                        if j["spread"] and g not in j["present"]:
                            cost += wake_w(p, j, g)
                        elif j["spread"] and wake_s > 0:
                            raise ValueError("a spread job on GPUs that sleep is not written")
                        if not j["spread"]:
                            cost += p.missed_w(j, l)
                            if j["present"] != [g]:
                                cost += j["move_w"] + wake_w(p, j, g)
                    x = prog.column(cost)
                    on_gpu[g].append((x, 1))
                    over[g].append((x, watts - ty["idle_w"]))
                    for i, j, l in zip(who, js, lows):
                        if j["spread"]:
                            parts[i].setdefault(g, []).append((x, 1))
                            held[i].append((x, l))
                        elif not j["fixed"] or j["present"] == [g]:
                            once[i].append((x, 1))
                        else:
                            prog.upper[x] = 0
    for i, j in enumerate(p.jobs):
        for size in range(2, j["n_max"] + 1 if not j["spread"] else 0):
            gpus = [g for g in range(m) if may_be_on(p, j, g)]
            for on in itertools.combinations(gpus, size):
                types = {p.gpus[g][0] for g in on}
                is_near = len({p.gpus[g][1] for g in on}) == 1
                if len(types) > 1 or size < j["n_min"] or not stands(p, on, j["n_nodes"]):
                    continue
                if j["fixed"] and list(on) != j["present"]:
                    continue
                t = types.pop()
                for limit in range(len(p.types[t]["limits"])):
                    r = p.run(t, limit, [j["kind"]])
                    if not r:
                        continue
                    f = p.near(size) if is_near else p.far(size)
                    cost = size * (r[0] - p.types[t]["sleep_w"] + p.price_w)
                    cost -= p.kinds[j["kind"]]["value_j"] * p.done(j["kind"], f * r[1][0])
                    cost += p.missed_w(j, f * r[2][0])
                    if list(on) != j["present"]:
                        cost += j["move_w"] + sum(wake_w(p, j, g) for g in on)
                    x = prog.column(cost)
                    once[i].append((x, 1))
                    for g in on:
                        on_gpu[g].append((x, 1))
                        over[g].append((x, r[0] - p.types[t]["idle_w"]))
    add_job_rows(p, prog, once, parts, held)
    for terms in on_gpu:
        if terms:
            prog.row(terms, -math.inf, 1)
    add_caps(p, prog, over)
    return prog


def add_job_rows(p, prog, once, parts, held):
    for i, j in enumerate(p.jobs):
        waits = prog.column(j["wait_w"] + j["move_w"], 0 if j["fixed"] else 1)
        if not j["spread"]:
            prog.row(once[i] + [(waits, 1)], 1, 1)
            continue
        every = [t for terms in parts[i].values() for t in terms]
        prog.row(every + [(waits, j["n_max"])], -math.inf, j["n_max"])
        prog.row(every + [(waits, 1)], 1, math.inf)
        if j["need"] > 0:
            short = prog.column(j["short_w"], 1, 0)
            prog.row([(x, l / j["need"]) for x, l in held[i]] + [(short, 1), (waits, 1)], 1,
                     math.inf)
        if not j["present"]:
            continue
        moves = prog.column(j["move_w"], 0 if j["fixed"] else 1)
        if j["move_w"]:
            prog.row([(moves, 1), (waits, 1)], -math.inf, 1)    # waiting has paid for moving
        for g in range(len(p.gpus)):
            terms = parts[i].get(g, [])
            if g in j["present"]:
                prog.row(terms + [(moves, 1), (waits, 1)], 1, math.inf)
            elif terms:
                prog.row(terms + [(moves, -1)], -math.inf, 0)


def add_caps(p, prog, over):
    now = []
    for g, (t, *_) in enumerate(p.gpus):
        js = [j for j in p.jobs if g in j["present"]]
        limit = p.limit_index(t, js[0]["limit_w"]) if js else 0
        r = p.run(t, limit, [j["kind"] for j in js]) if js else None
        now.append(r[0] if r else p.types[t]["idle_w"])
    caps = [(p.cap_w, range(len(p.gpus)))]
    for k, cap in enumerate(p.racks):
        caps.append((cap, [g for g in range(len(p.gpus)) if p.gpus[g][2] == k]))
    for cap, gpus in caps:
        if cap <= 0:
            continue
        idle = sum(p.types[p.gpus[g][0]]["idle_w"] for g in gpus)
        room = max(cap, p.margin * sum(now[g] for g in gpus)) * (1 + 5e-10) - p.margin * idle
        terms = [(x, p.margin * w / 100) for g in gpus for x, w in over[g]]
        if terms:
            prog.row(terms, -math.inf, room / 100)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        p = Problem(json.load(f))
    print(json.dumps(write(p).solve() + p.base_w()))


main()
