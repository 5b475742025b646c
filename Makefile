# Interlock. `make up` and `make test` are all that is needed after a clone.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := $(VENV)
# Behind a proxy with its own authority only the system's certificates will do; a bare system has none.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS ?= 1
endif
WORKERS ?= 2
# What is compiled is kept: the suite alone starts dozens of processes, each of which would compile it all anew.
unexport PYTHONDONTWRITEBYTECODE
# Compiles what a start imports, once, here: else every process of every start may have to.
WARM := env DJANGO_SETTINGS_MODULE=config.settings $(BIN)/python -c \
  "import django; django.setup(); import celery.apps.beat, celery.apps.worker, config.devstack.stack, config.devstack.serve, config.urls, demo.web"

.DEFAULT_GOAL := help
.PHONY: help up test slow lint types bench faults soak audit prerequisites

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: $(VENV)/installed ## start everything: database, broker, web, worker, demo company
	@exec $(BIN)/python manage.py up

test: lint types ## everything a change must pass
	$(BIN)/python -m pytest -q -n $(WORKERS)
	$(BIN)/python -m pytest -q -n $(WORKERS) tests/browser

lint: $(VENV)/installed ## style, layers, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djlint templates --lint --quiet
	$(BIN)/lint-imports
	$(BIN)/deptry .

types: $(VENV)/installed ## mypy, strict
	$(BIN)/mypy .

bench: $(VENV)/installed ## the measurements of docs/performance.md
	$(BIN)/python -m bench

faults: $(VENV)/installed ## break the running application under load, and count every effect
	$(BIN)/python -m bench.faults

slow: $(VENV)/installed ## the tests that start processes, break things or walk everything
	$(BIN)/python -m pytest -q -n $(WORKERS) -m slow
	$(BIN)/python -m pytest -q -n $(WORKERS) -m slow tests/browser

soak: $(VENV)/installed ## all of it, with the tests that take minutes
	INTERLOCK_SOAK=1 $(BIN)/python -m pytest -q -n $(WORKERS)
	INTERLOCK_SOAK=1 $(BIN)/python -m pytest -q -n $(WORKERS) tests/browser

audit: $(VENV)/installed ## known weaknesses in what is locked (asks the network)
	$(BIN)/uv export -q --frozen --no-dev --no-emit-project -o .data/audit.txt
	$(BIN)/pip-audit --require-hashes --disable-pip -r .data/audit.txt

prerequisites:
	@command -v git >/dev/null || { echo "git is needed: apt-get install git" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is needed, 3.11 to 3.14: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
	  || { echo "$(PYTHON) is `$(PYTHON) -V`; 3.11 to 3.14 is needed: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "$(PYTHON) comes without venv: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/installed: pyproject.toml uv.lock requirements-bootstrap.txt | prerequisites
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.txt
	@echo "Installing the locked packages into $(VENV) …"
	@$(BIN)/uv sync --quiet --frozen --python $(BIN)/python
	@$(WARM)
	@touch $@
