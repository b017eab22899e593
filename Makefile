# `make help` lists the targets. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

.PHONY: help install reproduce test test-long bench lint docs clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; give one with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@touch $@

install: $(VENV)/.installed ## make .venv with everything pinned

reproduce: $(VENV)/.installed ## the main job on the built-in collection
	$(BIN)/python run.py

test: $(VENV)/.installed ## the quick tests
	$(BIN)/python -m pytest -q

test-long: $(VENV)/.installed ## the long tests too
	$(BIN)/python -m pytest -q -m ''

BENCH := .venv-bench
$(BENCH)/.installed: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . -r benchmarks/requirements.txt
	@touch $@

bench: $(BENCH)/.installed ## half an hour beside the peers, to results/bench; make bench SIZE=20k tries it in two minutes
	$(BENCH)/bin/python -m benchmarks.bench $(if $(SIZE),--collection "short $(SIZE)" --tau 0.9 0.5)

lint: $(VENV)/.installed ## style, types, layering
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

clean: ## remove what can be made again (not results/)
	rm -rf $(VENV) $(BENCH) data/cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

docs: $(VENV)/.installed ## build the documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build
