#!/usr/bin/env bash
# Jobs of all kinds on a real Slurm cluster, and what users and sites may do to them.
# GOGH_TEST_ALL=1: all of a life, some minutes.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/slurm_life.py" "$@"
