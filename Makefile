# make run    evolve a kernel, end to end          make test   everything CI checks
# make ui     the Prefect and the MLflow UI         make lint   style, types, layers
# make bench  our own overheads, into benchmarks/results/     make prompts   docs/prompts, an example of each
# make soak   what takes too long for make test: twenty kills     make gpu-check   all that needs a GPU, in ten minutes
PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export LITELLM_LOCAL_MODEL_COST_MAP := True
export LITELLM_MODE := PRODUCTION
export DO_NOT_TRACK := true
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true
STAMP := $(VENV)/.installed
# Tests that measure, and those of a GPU, have the machine to themselves; the others run three at a time, as much of
# their time is waiting.
ALONE = $(shell grep -rlE "mark\.(alone|gpu)" --include=test_*.py tests)

.PHONY: run test soak lint bench gpu-check prompts ui install clean

run: install
	@dvc repro

test: lint
	@pytest -q -m "alone or gpu" $(ALONE)
	@pytest -q -m "not (alone or gpu or soak)" -n 3 --dist loadfile --no-loadscope-reorder tests

soak: install
	@pytest -q -m soak

lint: install
	@ruff check .
	@ruff format --check .
	@basedpyright
	@lint-imports

bench: install
	@python -m benchmarks.overhead
	@python -m benchmarks.judge

gpu-check: install
	@python -m benchmarks.gpu_check

prompts: install
	@python -m kernel_scientist.scientist.showcase.__main__

ui: install
	@kernel-scientist ui

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt install.py
	@$(PYTHON) install.py $(VENV)
	@touch $(STAMP)

# What can be made again. Runs (mlruns/) and DVC's cache are kept: they are results.
clean:
	rm -rf $(VENV) .cache .prefect .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
