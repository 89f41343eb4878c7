#!/usr/bin/env bash
# Jobs of all kinds on a real Slurm cluster, and what users and sites may do to them.
# GOGH_SLURM_LONG=1: all of it, some minutes.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/slurm_life.py" "$@"
