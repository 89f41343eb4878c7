#!/usr/bin/env bash
# GPUs and watts by NVML and by a dcgm-exporter: found, read, limited; and done without when they fail.
set -euo pipefail
exec python3 -B "$SRC/tests/helpers/serve_gpus.py"
