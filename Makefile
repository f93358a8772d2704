# Two commands do all the set-up: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint bench demo docs lock clean

$(VENV)/.ready: pyproject.toml requirements-dev.lock tools/make_venv.sh
	PYTHON="$(PYTHON)" tools/make_venv.sh $(VENV) requirements-dev.lock
	@touch $@

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -q
