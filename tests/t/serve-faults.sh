#!/usr/bin/env bash
# A full disk, no descriptors, killed keepers, broken stores: refused clearly, and survived.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/serve_faults.py" "$@"
