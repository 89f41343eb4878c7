#!/usr/bin/env bash
# gogh-slurm-driver on a real cluster of its own: all requests, forged names, dead and hung daemons.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd munged scontrol; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
exec python3 -B "$SRC/tests/helpers/slurm_driver.py" real
