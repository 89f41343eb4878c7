#!/usr/bin/env bash
# The example server batches and drains, the example balancer routes, the load generator counts.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/examples.py"
