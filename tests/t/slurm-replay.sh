#!/usr/bin/env bash
# A recorded run on a real Slurm cluster, replayed: the same plans, and the simulator draws what was
# metered.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/slurm_replay.py"
