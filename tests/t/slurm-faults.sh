#!/usr/bin/env bash
# A real Slurm cluster in which something is killed, hangs or is late, and GOGH in front of it: nothing
# is lost, nothing runs twice. GOGH_TEST_ALL=1: longer.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/slurm_faults.py" "$@"
