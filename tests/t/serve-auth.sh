#!/usr/bin/env bash
# Over TCP every route is refused without a token, and with a scope below its own.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/serve_auth.py"
