#!/usr/bin/env bash
# gogh-slurm-driver with commands that hang, flood, lie and die: answered in time, and survived.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/slurm_driver.py" fake
