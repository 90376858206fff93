#!/usr/bin/env bash
# A standalone cluster on loopback whose workers lack the package: tests/cluster.sh [PYTHON]. Takes about a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${1:-.venv/bin/python}"
exec "$PYTHON" tests/cluster.py
