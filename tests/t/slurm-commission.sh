#!/usr/bin/env bash
# A site that Slurm runs is commissioned: jobs, files and measurements go the same way as on a box.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/commission.py" slurm
