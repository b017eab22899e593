# `make help` lists the targets. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
# Without bytecode, each of the hundreds of processes that the tests start would parse all that it imports.
unexport PYTHONDONTWRITEBYTECODE
INTERPRETED := tests/clustering/test_clusters.py \
	$(addprefix tests/matching/test_,$(addsuffix .py,matcher partitions vectors simhash imatch sketch lsh cosine lcs join)) \
	$(addprefix tests/evaluation/test_,$(addsuffix .py,metrics threshold)) \
	$(addprefix tests/text/test_,$(addsuffix .py,tokens text regions)) \
	$(addprefix tests/signatures/test_,$(addsuffix .py,signatures extract templates)) \
	$(addprefix tests/outofcore/test_,$(addsuffix .py,store vectorize store_pipeline contiguous_ids block_join))

.PHONY: help install reproduce test test-long test-versions bench race coverage dist mutation fuzz soak audit lint docs notebooks clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# what the reproduction runs on: no tools for tests, documentation, clusters or browsers
$(VENV)/.runtime: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; give one with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[experiments]'
	@touch $@

$(VENV)/.installed: $(VENV)/.runtime
	$(PIP) -e '.[all,dev]'
	@touch $@

install: $(VENV)/.installed ## make .venv with everything pinned

reproduce: $(VENV)/.runtime ## the main job on the built-in collection
	$(BIN)/python run.py

test: $(VENV)/.installed ## the quick tests, on all cores
	$(BIN)/python tests/helpers/compile_kernels.py
	$(BIN)/python -m pytest -q -n auto --dist worksteal --durations=10

test-long: $(VENV)/.installed ## the long tests too
	$(BIN)/python -m pytest -q -m ''

BENCH := .venv-bench
$(BENCH)/.installed: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[experiments]' -r benchmarks/requirements.txt
	@touch $@

bench: $(BENCH)/.installed ## joins against other tools, to results/bench; 20 minutes; make bench SIZE=20k tries it
	$(BENCH)/bin/python -m benchmarks.bench $(if $(SIZE),--collection "short $(SIZE)" --tau 0.9 0.5)

RACE := .venv-race
$(RACE)/.installed: pyproject.toml constraints.txt benchmarks/race-requirements.txt
	$(PYTHON) -m venv $(RACE)
	$(RACE)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[experiments,newsframes,trafilatura]' -r benchmarks/race-requirements.txt
	$(RACE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps text-dedup==0.4.0
	@touch $@

race: $(RACE)/.installed ## other tools from files to kept documents, to results/race; five minutes; make race SIZE=300 tries it
	$(RACE)/bin/python -m benchmarks.end_to_end $(if $(SIZE),--size $(SIZE)) $(if $(LIMIT),--limit $(LIMIT))

VERSIONS ?= 3.11 3.12 3.13 3.14
test-versions: ## the quick tests on every version of Python that is there (pyenv or PATH), and on the oldest libraries
	@for version in $(VERSIONS) lowest; do PYTHON=$(PYTHON) sh tests/helpers/test_version.sh $$version || exit 1; done

coverage: $(VENV)/.installed ## branches of the library that the tests take, with interpreted kernels; 20 minutes
	$(BIN)/coverage erase
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -q -n auto -W ignore:overflow -m 'not long and not compiled' $(INTERPRETED)
	$(BIN)/coverage run -m pytest -q -n auto
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered --sort=cover
	@$(BIN)/coverage json -q -o - | $(BIN)/python -c 'import json, sys; print("branches: {percent_branches_covered:.1f} %".format(**json.load(sys.stdin)["totals"]))'

mutation: $(VENV)/.installed ## change the bounds, metrics and partitions in hundreds of ways; the tests must notice
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mutmut>=3'
	$(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results

FUZZ_SECONDS ?= 360
TARGETS ?= html warc arc trec jsonl csv parquet manifest
fuzz: $(VENV)/.installed ## hostile bytes to every reader, guided by coverage, then operations on stores and copies; two hours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=2.3'
	@for target in $(TARGETS); do $(BIN)/python tests/fuzz/fuzz.py $$target -max_total_time=$(FUZZ_SECONDS) || exit 1; done
	FUZZ=1 $(BIN)/python -m pytest -q -m '' tests/outofcore/test_store_machine.py tests/clustering/test_copy_machine.py

# in this order: times first, which wait for a quiet machine; PARTS=experiments leaves out the others
PARTS ?= bench race experiments scale pages
.PHONY: results $(addprefix results-,$(PARTS))
.NOTPARALLEL:
results: $(addprefix results-,$(PARTS)) ## make all committed results, see docs/reproduction.md; a stopped run continues
results-bench: bench
results-race: race
results-experiments: $(VENV)/.installed
	$(BIN)/python run.py experiment=all
results-scale: $(VENV)/.installed
	$(BIN)/python run.py experiment=scale
results-pages: $(VENV)/.installed
	$(BIN)/python run.py experiment=claims
	$(BIN)/python -m experiments.show.pages
	$(BIN)/python -m experiments.harness.manifest

SOAK_MINUTES ?= 30
soak: $(VENV)/.installed ## 8 workers on generated crawls; memory, files and processes in results/runs/soak
	$(BIN)/python tests/helpers/soak.py --minutes $(SOAK_MINUTES)

audit: $(VENV)/.installed ## known vulnerabilities of the pinned versions, and their licences; needs a network
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7' 'pip-licenses>=5'
	@$(BIN)/python tests/helpers/audit.py

lint: $(VENV)/.installed ## style, types, layers; prints the size of the project
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/helpers/size.py

DIST := .venv-dist
dist: $(VENV)/.installed ## build the wheel and the sdist, check their metadata, install each alone and run the command
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(PIP) 'twine>=6'
	$(BIN)/twine check --strict dist/*
	@for built in dist/*; do rm -rf $(DIST) && $(PYTHON) -m venv $(DIST) \
		&& $(DIST)/bin/python -m pip install --quiet --disable-pip-version-check $$built \
		&& $(DIST)/bin/spotsigs dedup data/tiny --out $(DIST)/kept/ || exit 1; done

clean: ## remove what can be made again (not results/)
	rm -rf $(VENV) $(BENCH) $(RACE) $(DIST) dist data/cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

notebooks: $(VENV)/.installed ## open the notebooks; python notebooks/execute.py runs them again
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'jupyterlab>=4'
	$(BIN)/python -m jupyterlab notebooks

docs: $(VENV)/.installed ## build the documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build
