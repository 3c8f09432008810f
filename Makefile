# Every target sets up what it needs. Start with `make demo` or `make test`.
#   make test ARGS="-k search"     arguments for pytest; JOBS=1 runs the tests one after the other
#   make serve ARGS="--gateway-port 9000"
#   make bench ARGS="startup"

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
JOBS ?= 2
ARGS ?=

# A real EverOS, for tests and benchmarks only; may lie outside the checkout.
export EVEROS_FOLDER ?= .everos

# What runs on SQLite in a whole run, and then on a PostgreSQL server from a wheel; other tests start one themselves.
ON_POSTGRES := tests/engine tests/gateway tests/memory_service tests/upstream tests/properties/test_isolation.py

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help setup demo serve test test-everos test-postgres everos lint format bench bench-peers bench-recall clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   start the gateway on a temporary folder and walk through the whole story"
	@echo "make test   run the tests"
	@echo "make everos install a real EverOS for the tests (Python 3.12 or newer); make test-everos runs only those"
	@echo "make test-postgres  run those that can on PostgreSQL, which a whole run does as well"
	@echo "make serve  start both faces on ./data: gateway http://127.0.0.1:8093, Memory-Service :8094"
	@echo "make lint   formatting, lints, types, import arrows"
	@echo "make format put the code into the project's format"
	@echo "make bench  run the benchmarks and print their tables"
	@echo "make bench-peers    recall of other memory systems beside ours (installs them apart; needs the LoCoMo file)"
	@echo "make bench-recall   how well the engine finds, on data sets that you have; ARGS=\"--dev-only\""
	@echo "make setup  only create .venv and install"
	@echo "make clean  remove .venv and caches, never your data"

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Memory Gateway needs Python 3.11 or newer; install it, or: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Memory Gateway needs Python 3.11 or newer; $(PYTHON) is older or missing"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "$(PYTHON) cannot create virtual environments; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV) (once; this takes a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup
	@$(BIN)/memory-gateway demo $(ARGS)

serve: setup
	@$(BIN)/memory-gateway serve $(ARGS)

# Where a real EverOS is installed, a whole run includes what needs one; a run with ARGS is what they say.
test: setup
ifeq ($(strip $(ARGS)),)
	@if $(BIN)/python -m tests.everos_live.install --check; then set -- --everos both; \
	else echo "no EverOS is installed (make everos): the tests play back what one answered"; fi; \
	$(BIN)/python -m pytest -n $(JOBS) "$$@"
	@$(MAKE) --no-print-directory test-postgres
else
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)
endif

test-postgres: setup
	$(BIN)/python -m pytest -n $(JOBS) --database postgres $(ON_POSTGRES) $(ARGS)

test-everos: setup
	$(BIN)/python -m pytest --everos live tests/everos_live tests/conformance $(ARGS)

everos: setup
	@$(BIN)/python -m tests.everos_live.install

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

bench-peers: setup
	$(BIN)/python -m benchmarks.peers $(ARGS)

bench-recall: setup
	$(BIN)/python -m benchmarks.recall $(ARGS)

clean:
	rm -rf $(VENV) .everos .everos.lock build dist benchmarks/.cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
