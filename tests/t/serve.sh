#!/usr/bin/env bash
# A box with real jobs: all end, promises hold, what is believed comes to what is true, moves pay.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/serve.py"
