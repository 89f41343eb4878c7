"""A job that only pretends: it makes steps at the pace of its workload on its GPU, and says so.

    gogh submit --workload resnet18 --batch 32 --steps 2000 -- python3 docs/examples/pretend.py 2000
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import gogh

# Steps a second, all made up; of these two workloads near to what `gogh predict` says.
PACES = {
    "ResNet-18 (batch size 32)": {"k80": 7, "p100": 30, "v100": 30},
    "bert-base (batch size 16)": {"k80": 0.3, "p100": 1.5, "v100": 2.6},
}
OTHERS = {"k80": 8, "p100": 20, "v100": 30}

steps = int(sys.argv[1])
gpu = os.environ.get("GOGH_GPU_TYPE", "nothing in particular")
pace = PACES.get(os.environ.get("GOGH_WORKLOAD"), OTHERS).get(gpu, 20)

with gogh.track() as t:
    while t.total < steps:
        time.sleep(1 / pace)
        t.step()
print("done: %d steps on %s" % (steps, gpu))
