#!/usr/bin/env bash
# A real Slurm cluster, steered: waves of jobs, complete rearrangements, nobody where no plan put it,
# and what is believed comes to what is true. GOGH_TEST_ALL=1: 24 GPUs and 40 jobs.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/slurm_scenario.py"
