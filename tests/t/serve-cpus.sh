#!/usr/bin/env bash
# CPUs and memory of a box are part of what is planned: nobody is placed where they are used up, and is told so.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/serve_cpus.py"
