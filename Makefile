# `make run` and `make test` each do all of the set-up that they need, on a fresh Debian 12 as well.
PYTHON ?= /usr/bin/python3
VENV := .venv/bin
SETUP = PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m strandline.setup

.PHONY: help run test setup setup-test setup-python lint format unit lock clean

help:
	@echo 'make run     set up, start the real stack, show a node killed and recovered, serve until Ctrl-C'
	@echo 'make test    set up, then every check: ruff, mypy, import-linter, all tests (JOBS=1: in one process)'
	@echo 'make setup   set up only: packages, jars, PyLucene, .venv'
	@echo 'make unit    the tests that need no server'
	@echo 'make lint    ruff, mypy and import-linter'
	@echo 'make format  let ruff put the code into shape'
	@echo 'make lock    write the Python locks again, after a change of a pin'
	@echo 'make clean   remove .venv and what tools left in the checkout'

run: setup
	$(VENV)/strandline demo

# Each process runs one file of tests after the other. Those that take longest come first (tests/file_times.json), so
# that all processes end at about the same time.
JOBS ?= 2
PYTEST = $(VENV)/pytest --durations=25 \
	$(if $(filter-out 1,$(JOBS)),--numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder)
test: setup-test lint
	$(PYTEST)
	@$(SETUP) --keep-kernels

unit: setup-test
	$(PYTEST) tests/unit

setup:
	@setup/debian.sh run
	@$(SETUP)

setup-test:
	@setup/debian.sh test
	@$(SETUP)

setup-python:
	@$(SETUP)

lint: setup-test
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports --config setup.cfg

format: setup-test
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

lock: setup
	PYTHONPATH=src $(PYTHON) -m strandline.setup.lock

clean:
	rm -rf .venv build .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache src/strandline.egg-info
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
