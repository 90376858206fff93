#!/usr/bin/env bash
# The engine on the oldest and the newest Spark that pyproject.toml allows, each in a venv of its own:
#   tests/spark_versions.sh [VERSION ...]        by default 4.0.* and 4.3.*
# Venvs are kept under .venv/spark-VERSION; SPARK_TESTS names other tests to run.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-python3}"
TESTS="${SPARK_TESTS:-tests/engine tests/test_planted_bugs.py tests/cli}"
[ "$#" -gt 0 ] || set -- '4.0.*' '4.3.*'
for version in "$@"; do
  venv=".venv/spark-${version%.\*}"
  if [ ! -x "$venv/bin/python" ]; then
    "$PYTHON" -m venv "$venv"
  fi
  "$venv/bin/python" -m pip install --quiet "pyspark==$version" '.[test]'
  rm -rf build
  echo "== Spark $("$venv/bin/python" -c 'import pyspark; print(pyspark.__version__)')"
  # Spark 4.0 leaves the sockets of toArrow to the garbage collector, which is no fault of ours.
  # shellcheck disable=SC2086
  "$venv/bin/python" -m pytest -q -W default::pytest.PytestUnraisableExceptionWarning $TESTS
done
