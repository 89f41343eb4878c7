"""A job that only pretends: it makes steps at a pace that depends on its GPU, and says so.

    gogh submit --workload resnet18 --batch 32 --steps 2000 -- python3 docs/examples/pretend.py 2000
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import gogh

PACE = {"k80": 8.0, "p100": 30.0, "v100": 55.0}    # steps a second, made up

steps = int(sys.argv[1])
pace = PACE.get(os.environ.get("GOGH_GPU_TYPE", ""), 20.0)

with gogh.track() as t:
    while t.total < steps:
        time.sleep(1 / pace)
        t.step()
print("done: %d steps on %s" % (steps, os.environ.get("GOGH_GPU_TYPE", "nothing in particular")))
