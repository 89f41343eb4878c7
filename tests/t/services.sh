#!/usr/bin/env bash
# Services of real servers under load: moved, killed, drained, and the daemon killed. Nobody who
# asks goes without an answer because of it, and nothing is started twice. In make test-all five
# minutes.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/services.py"
