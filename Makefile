# `make run` and `make test` do all the set-up that they need, also on a fresh Debian 12.
PYTHON ?= /usr/bin/python3
VENV := .venv/bin
SETUP = PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m strandline.setup

.PHONY: help run test setup setup-test setup-python lint format unit coverage simulate simulate-jobs soak-jobs promql-conformance \
	mutants pictures lock clean

help:
	@echo 'make run     set up, start the real stack, demonstrate a recovery, serve until Ctrl-C'
	@echo 'make test    set up and run every check: ruff, mypy, import-linter, all tests (JOBS=1: in one process)'
	@echo 'make setup   set up only: packages, jars, PyLucene, .venv'
	@echo 'make unit    tests without servers'
	@echo 'make coverage  branch coverage of the whole suite, in build/coverage (TESTS=tests/unit/wire: of some tests)'
	@echo 'make simulate  seeded histories of crashes, stalls and wrong clocks (SEEDS=10000 FROM=0)'
	@echo 'make simulate-jobs  the same for bulk jobs (SEEDS=10000 FROM=0)'
	@echo 'make soak-jobs   kill processes at random during a job on the real stack (KILLS=30 KIND=import|send)'
	@echo 'make promql-conformance  compare 5,179 queries on a real node with the answers of Prometheus 3.15'
	@echo 'make mutants   apply deliberate faults to copies of the checkout; each must make a test fail (ONLY=name)'
	@echo 'make pictures  render the screenshots of the status page in docs/'
	@echo 'make lint    ruff, mypy and import-linter'
	@echo 'make format  format the code with ruff'
	@echo 'make lock    update the Python locks after changing a pin'
	@echo 'make clean   remove .venv and generated files'

run: setup
	$(VENV)/strandline demo

# Each process runs one test file after the other, slowest first (tests/file_times.json), so that all processes end at
# about the same time. Three processes on two cores, because tests with real servers wait for half of their time.
JOBS ?= 3
# Writes bytecode even if the environment disables it: otherwise each process compiles all tests, for ten seconds.
PARALLEL = $(if $(filter-out 1,$(JOBS)),--numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder)
PYTEST = PYTHONDONTWRITEBYTECODE= $(VENV)/pytest --durations=25 $(PARALLEL)
# Kernels compiled by the tests are kept even if a test fails (exit code 1), because they do not depend on that. After an
# interrupt they would be incomplete.
test: setup-test lint
	$(PYTEST); ended=$$?; if [ $$ended -le 1 ]; then $(SETUP) --keep-kernels; fi; exit $$ended

# Branch coverage of the Python code over the whole suite, in about twice the time of `make test`. It is reported even if
# a test fails. Processes that a test kills with SIGKILL report nothing.
coverage: setup-test
	rm -rf build/coverage && mkdir -p build/coverage
	-PYTHONDONTWRITEBYTECODE= $(VENV)/coverage run -m pytest $(PARALLEL) --timeout 1800 $(TESTS)
	$(VENV)/coverage combine -q
	$(VENV)/coverage report --sort=cover > build/coverage/report.txt
	$(VENV)/coverage html -q -d build/coverage/html
	tail -n 1 build/coverage/report.txt

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
