# Every target makes its own environment first, with plain venv and pip, and again only when the pins change. What it
# needs of the system it installs with apt-get, where there is one, as root or with sudo.

PYTHON ?= python3
BIN := .venv/bin

# How many tests run at a time; `make test JOBS=0` runs them in one process, which a debugger needs.
JOBS ?= 2

# Which tests: all, or files such as `make test TESTS=tests/test_lake.py`.
TESTS ?=

# How many edited files `make fuzz` tries.
EDITS ?= 20000

# How often `make trial` kills a trial, and how many decisions it computes again.
KILLS ?= 50
DECISIONS ?= 10000

# Options for installing torch alone, e.g. where to find its CPU build: make sb3 TORCH_OPTIONS="--index-url …"
TORCH_OPTIONS ?=

# Each worker begins with a run of neighbouring files, so it loads few kernels twice; who is done first takes from the
# other, so there is no tail.
PYTEST = $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --ignore=tests/sb3

.PHONY: help paper test slow check fuzz trial bench docs wheel sb3 deep slurm clean
.DEFAULT_GOAL := help

help: ## show this list
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

paper: .venv/ready ## reproduce the paper in reduced form, and write a page to open
	$(BIN)/lacuna paper --out out/paper

test: .venv/ready ## prove the laws in minutes, and run every example of the docstrings, the README and the docs
	$(if $(TESTS)$(filter 0,$(JOBS)),,$(BIN)/python tests/compile_kernels.py $(JOBS))
	$(PYTEST) -m "not slow" $(TESTS)

slow: .venv/ready ## run the other tests: browser, notebooks, Dask, fresh machines, kills, long replays
	@command -v chromium >/dev/null && $(BIN)/python -m playwright --version >/dev/null 2>&1 || \
	  .ci/install chromium libatomic1 || true # without a browser, the tests that open a page are skipped, and say so
	$(PYTEST) -m slow $(TESTS)

check: .venv/ready ## check style, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fuzz: .venv/ready ## edit saved agents, runs and logs of trials at random, and read them under bounds checking
	$(BIN)/python tests/fuzz_files.py --edits $(EDITS)

trial: .venv/ready ## kill a trial at random moments, and compute a long one again in every way
	$(BIN)/python tests/trial_kills.py $(KILLS)
	$(BIN)/python tests/trial_replay.py $(DECISIONS)

bench: .venv/ready ## measure nanoseconds per step, next to a C++ loop if there is a g++
	$(BIN)/lacuna bench

docs: .venv/ready ## write the reference pages from the code, and build the documentation as a site
	$(BIN)/python reference/generate.py
	$(BIN)/zensical build --clean --strict
	@echo "Open $(CURDIR)/out/docs/index.html"

wheel: .venv/ready ## build wheels and sdists into out/dist, and try them in empty environments
	$(BIN)/python tests/empty_environment.py

sb3: .venv-sb3/ready ## check and train with Stable-Baselines3, in an environment of its own
	.venv-sb3/bin/python -m pytest -q -c pyproject.toml --rootdir . tests/sb3

deep: .venv-sb3/ready ## compare deep learners with lacuna's agent under the same masks: hours; stop and go on at will
	.venv-sb3/bin/python benchmarks/deep/run.py --workers $(JOBS)

slurm: .venv/ready ## run a study on a real SLURM of one node, installed with apt-get if it is missing (needs root or sudo)
	tests/slurm/run $(BIN)

clean: ## remove everything that was made, environments included
	rm -rf .venv .venv-sb3 .cache out build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find src tests examples paper -name __pycache__ -prune -exec rm -rf {} +

define new_environment
	@command -v $(PYTHON) >/dev/null || { echo "lacuna needs Python 3.11 or newer, and there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and \
	  f"lacuna needs Python 3.11 or newer; $(PYTHON) is {v[0]}.{v[1]}. Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  .ci/install $$($(PYTHON) -c 'import sys; print("python{}.{}-venv".format(*sys.version_info))')
	$(PYTHON) -m venv $(1)
endef

.venv/ready: pyproject.toml paper/pyproject.toml constraints.txt
	$(call new_environment,.venv)
	$(BIN)/python -m pip install -c constraints.txt -e ".[dev]" -e paper
	@touch $@

# torch goes first, so that the build chosen for it stays.
.venv-sb3/ready: pyproject.toml constraints.txt
	$(call new_environment,.venv-sb3)
	.venv-sb3/bin/python -m pip install -c constraints.txt $(TORCH_OPTIONS) torch
	.venv-sb3/bin/python -m pip install -c constraints.txt stable-baselines3 sb3-contrib pytest
	.venv-sb3/bin/python -m pip install -c constraints.txt -e .
	@touch $@
