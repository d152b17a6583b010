# `make run` and `make test` each do all of the set-up that they need, on a fresh Debian 12 as well.
PYTHON ?= /usr/bin/python3
VENV := .venv/bin
SETUP = PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m strandline.setup

.PHONY: help run test setup setup-test setup-python lint format unit simulate simulate-jobs soak-jobs promql-conformance \
	mutants pictures lock clean

help:
	@echo 'make run     set up, start the real stack, show a node killed and recovered, serve until Ctrl-C'
	@echo 'make test    set up, then every check: ruff, mypy, import-linter, all tests (JOBS=1: in one process)'
	@echo 'make setup   set up only: packages, jars, PyLucene, .venv'
	@echo 'make unit    the tests that need no server'
	@echo 'make simulate  seeded histories of crashes, stalls and wrong clocks (SEEDS=10000 FROM=0)'
	@echo 'make simulate-jobs  the same for bulk jobs (SEEDS=10000 FROM=0)'
	@echo 'make soak-jobs   kill processes at random during a job on the real stack (KILLS=30 KIND=import|send)'
	@echo 'make promql-conformance  ask a real node 5,179 questions, and compare with the answers of Prometheus 3.15'
	@echo 'make mutants   put deliberate faults into copies of the checkout: each must make a test fail (ONLY=name: one)'
	@echo 'make pictures  draw the pictures of the status page in docs/ anew'
	@echo 'make lint    ruff, mypy and import-linter'
	@echo 'make format  let ruff put the code into shape'
	@echo 'make lock    write the Python locks again, after a change of a pin'
	@echo 'make clean   remove .venv and what tools left in the checkout'

run: setup
	$(VENV)/strandline demo

# Each process runs one file of tests after the other. Those that take longest come first (tests/file_times.json), so
# that all processes end at about the same time. Three on two cores: tests with real servers wait for half of their time.
JOBS ?= 3
# With bytecode even where it is switched off: without, each process compiles every test anew, for ten seconds.
PYTEST = PYTHONDONTWRITEBYTECODE= $(VENV)/pytest --durations=25 \
	$(if $(filter-out 1,$(JOBS)),--numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder)
# What the tests have compiled is kept even if one fails (1): the machine code does not depend on that. After an interrupt
# it would be a part.
test: setup-test lint
	$(PYTEST); ended=$$?; if [ $$ended -le 1 ]; then $(SETUP) --keep-kernels; fi; exit $$ended

unit: setup-test
	$(PYTEST) tests/unit

SEEDS ?= 10000
FROM ?= 0
simulate: setup-test
	$(VENV)/python tests/strandline-sim --seeds $(SEEDS) --from $(FROM)

simulate-jobs: setup-test
	$(VENV)/python tests/strandline-sim --suite jobs --seeds $(SEEDS) --from $(FROM)

KILLS ?= 30
KIND ?= import
soak-jobs: setup-test
	PYTHONPATH=tests $(VENV)/python -m soak_jobs --kind $(KIND) --kills $(KILLS) $(addprefix --seed ,$(SEED))

PARTITIONS ?= 2
promql-conformance: setup-test
	PYTHONPATH=tests $(VENV)/python -m promql_conformance --partitions $(PARTITIONS)

mutants: setup-test
	PYTHONPATH=tests $(VENV)/python -m mutants --jobs $(JOBS) $(addprefix --only ,$(ONLY))

pictures: setup-test
	PYTHONPATH=tests $(VENV)/python -m page_pictures

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
