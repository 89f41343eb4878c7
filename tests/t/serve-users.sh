#!/usr/bin/env bash
# A daemon with four capabilities runs jobs as their owners; without any it refuses others' jobs.
set -euo pipefail
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
    echo "skipped: needs root and setpriv, to become other users"
    exit 77
fi
exec python3 -B "$SRC/tests/helpers/serve_users.py"
