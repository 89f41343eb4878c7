#!/usr/bin/env bash
# kill -9 of the daemon at random moments under load: nothing acknowledged is lost or doubled.
# GOGH_KILLS=200 takes some minutes.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/serve_kill.py" "${GOGH_KILLS:-25}"
