#!/usr/bin/env bash
# benchmarks.surfaces on the oldest and the newest Spark that pyproject.toml allows, each in a venv of its own (that of
# spark_versions.sh), with pyhive and what Spark Connect needs:
#   tests/surfaces.sh [VERSION ...]        by default 4.0.* and 4.3.*
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-python3}"
[ "$#" -gt 0 ] || set -- '4.0.*' '4.3.*'
for version in "$@"; do
  venv=".venv/spark-${version%.\*}"
  if [ ! -x "$venv/bin/python" ]; then
    "$PYTHON" -m venv "$venv"
  fi
  "$venv/bin/python" -m pip install --quiet "pyspark[connect]==$version" '.[test]' pyhive pure-sasl thrift thrift_sasl
  rm -rf build
  "$venv/bin/python" -m benchmarks.surfaces
done
