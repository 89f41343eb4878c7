#!/usr/bin/env bash
# Servers that do not report are asked for their Prometheus page.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/services_scrape.py"
