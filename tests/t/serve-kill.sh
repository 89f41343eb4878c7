#!/usr/bin/env bash
# kill -9 of the daemon at random moments under load: nothing acknowledged is lost or doubled.
# In make test-all 200 times, some minutes.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/serve_kill.py" "$((${GOGH_TEST_ALL:-0} ? 200 : 15))"
