#!/usr/bin/env bash
# A box is commissioned: what is named, what is run, what comes of it, and what is left when it is ended.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/commission.py"
