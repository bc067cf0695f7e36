# Two commands from a fresh clone: `make reproduce` and `make test`. They need python3 and make.
# Tests come in three sizes: `make test` (minutes), `make test-all` (the rest of what CI runs), `make test-long` (hours).

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
INSTALL := $(PIP) install -c constraints.txt

# Made-up inputs are the same at each run, so that a run judges the commit; plain pytest draws new ones.
PYTEST := $(BIN)/python -m pytest --dist loadgroup
SAME := --hypothesis-profile=ci
# A test that hangs fails with the lines where its threads stand; the longest test of `test-all` runs every notebook.
LIMIT = -o faulthandler_exit_on_timeout=true -o faulthandler_timeout=
WORKERS ?= auto

# Tests start Python hundreds of times: without stored bytecode each start compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE
# There is a worker a core: threads of linear algebra would wait for each other.
quick-tests test-all test-long: export OPENBLAS_NUM_THREADS := 1

.PHONY: reproduce test types quick-tests test-all test-long mutants mutation docs lab explore bench clean
.DELETE_ON_ERROR:

reproduce: .venv/installed
	$(BIN)/workbench reproduce --profile quick

test: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	@$(MAKE) --no-print-directory -j2 types quick-tests

types: .venv/installed
	$(BIN)/mypy

# Tests of one file share what they prepare, so one worker runs them all.
quick-tests: .venv/installed
	$(PYTEST) -n $(WORKERS) --dist loadfile $(SAME) $(LIMIT)600 -m 'not slow and not long'

test-all: .venv/installed
	$(PYTEST) -n $(WORKERS) $(SAME) $(LIMIT)2000 -m 'slow and not long'

test-long: .venv/installed
	$(PYTEST) -n $(WORKERS) -m long

# Every planted mistake, and the test that sees it; the table is part of the documentation.
mutants: .venv/installed
	$(BIN)/python -m tests.planted --out docs/planted.inc

# Small changes at 200 drawn places, and which test sees each: an hour; goes on if broken off.
mutation: .venv/installed
	$(BIN)/python -m tests.mutation

# The tutorials are shown as they ran; pictures of figures are those of runs, where there are any.
docs: .venv/docs
	$(BIN)/workbench reproduce 00_tour 01_explore 02_your_data 03_answer_bank 04_accounting
	$(BIN)/python -m sphinx -W --keep-going -q -d build/docs/pages -b html docs build/docs/html
	@echo "Documentation: build/docs/html/index.html"

lab: .venv/installed
	$(BIN)/workbench lab

explore: .venv/installed
	$(BIN)/workbench explore

bench: .venv/peers
	$(BIN)/python -m experiments.benchmarks

# What is installed follows pyproject.toml and constraints.txt; touch either and it is redone.
.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing the workbench into .venv (a minute or two, about 1 GB) …"
	@$(INSTALL) -e '.[test]'
	@touch $@

.venv/peers: .venv/installed
	@echo "Installing the libraries we measure ourselves against …"
	@$(INSTALL) -e '.[test,peers]'
	@touch $@

.venv/docs: .venv/installed
	@echo "Installing what builds the documentation …"
	@$(INSTALL) -e '.[test,docs]'
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "need Python 3.11 or later, \
	this is " + sys.version.split()[0] + "; name another with: make PYTHON=python3.12")'
	@echo "Making .venv …"
	@$(PYTHON) -m venv .venv

clean:
	rm -rf .venv experiments/results .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
