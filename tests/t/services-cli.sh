#!/usr/bin/env bash
# Services as people see them: submitted, refused, listed, shown, explained, scaled, ended.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/services_cli.py"
