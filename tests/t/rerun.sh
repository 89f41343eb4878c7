#!/usr/bin/env bash
# A recorded run of real jobs, replayed: the same plans, and the simulator draws what was metered.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/rerun.py"
