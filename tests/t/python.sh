#!/usr/bin/env bash
# The Python module, by Python's own unit tests.
set -euo pipefail
command -v python3 >/dev/null || { echo "no python3: skipped"; exit 77; }
cd "$SRC"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=python exec python3 -W error tests/python/test_gogh.py
