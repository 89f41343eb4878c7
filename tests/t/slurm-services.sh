#!/usr/bin/env bash
# Services on a real Slurm cluster: replicas are Slurm's jobs, serve real requests, die and come back.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/slurm_services.py"
