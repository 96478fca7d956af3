# Everything runs in .venv, which the first call creates. Needs Python 3.11 or newer, pip and make.

PYTHON ?= python3
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
# One thread per test worker: several workers with a full thread pool each only get in each other's way.
PYTEST = OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=$${OPENBLAS_NUM_THREADS:-1} \
	$(BIN)/python -m pytest -n $(WORKERS)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check lint format format-check ruff types layers tests tests-fast bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed ## install the library and run `usimul demo`
	$(BIN)/usimul demo

test: lint tests ## every static check, every test, every example

check: lint tests-fast ## the same without the tests marked slow

lint: format-check ruff types layers ## formatting, lint, types, import contracts

format: $(VENV)/.installed-dev ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

format-check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .

ruff: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports --no-logo

tests: $(VENV)/.installed-dev
	$(PYTEST)

tests-fast: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow"

bench: $(VENV)/.installed-dev ## time the library: benchmarks/speed.py
	$(BIN)/python benchmarks/speed.py

clean: ## remove caches and build products; .venv stays
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamps are older than pyproject.toml or constraints.txt exactly when an installation is due.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "usimul needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -f $@; exit 1; }

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing usimul into $(VENV); torch is large, the first time takes minutes."
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing usimul and its development tools into $(VENV); torch is large, the first time takes minutes."
	$(PIP) -e '.[dev]'
	@touch $(VENV)/.installed $@
