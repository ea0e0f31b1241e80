# make run    evolve a kernel, end to end            make check        lint and the quick half of the tests
# make run PROBLEM=softmax                           the same for another problem than params.yaml names
# make test   lint, and the tests without those of   make slow         tests that take long: whole campaigns, servers in
#             the two targets at the right                             service, every edit of the playbook executed
# make lint   style, types, layers                   make adversarial  the cheats that `make test` leaves out
# make soak   campaigns that are killed twenty times; every Triton edit compiled for gfx942; 10,000 generated kernels
# make bench  measurements into benchmarks/results/  make gpu-check    everything that needs a GPU, in ten minutes
# make chaos  servers, workers, disk and database fail at random moments of a campaign; every kernel is there once
# make first-light  a GPU's first run in steps, each with its own result; ten minutes
# make bench-model  the model of the MI300X against published measurements
# make ui     the Prefect and MLflow web pages       make prompts      example prompts into docs/prompts
# make docs   docs/reference, from the code
# make screenshots  the pictures in docs/img, by a campaign and Chromium
PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export LITELLM_LOCAL_MODEL_COST_MAP := True
export LITELLM_MODE := PRODUCTION
export DO_NOT_TRACK := true
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true
# Without bytecode each of a run's many processes compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE
STAMP := $(VENV)/.installed
# Tests that measure, and those of a GPU, have the machine to themselves; the others run three at a time, as much of
# their time is waiting.
ALONE = $(shell grep -rlE "mark\.(alone|gpu)" --include=test_*.py tests)
USUAL = not (soak or adversarial)
TESTS = pytest -q -m "(alone or gpu) and $(1) and $(USUAL)" $(ALONE) && \
	pytest -q -m "not (alone or gpu) and $(1) and $(USUAL)" -n 3 --dist loadfile --no-loadscope-reorder tests

.PHONY: run test slow check adversarial soak chaos lint bench bench-model first-light gpu-check prompts docs screenshots ui install clean

# PROBLEM replaces the parameter `problem` while DVC runs. params.yaml is put back afterwards, also when the run is stopped;
# after one that was killed the next run does it. A run holds a lock; processes that are being killed get five seconds to go.
OTHERS = sed '/^problem: /d'
LOCKED = mkdir -p .cache && exec 9>.cache/run.lock && \
	{ flock -w 5 9 || { echo "error: make run is at work in this folder" >&2; exit 2; }; } && \
	if [ -f .cache/params.yaml ] && [ "$$($(OTHERS) .cache/params.yaml)" = "$$($(OTHERS) params.yaml)" ]; then \
		mv .cache/params.yaml params.yaml && echo "params.yaml is put back: make run PROBLEM=... was killed" >&2; \
	fi

run: install
ifdef PROBLEM
	@test -f problems/$(PROBLEM)/task.yml -o -f problems/$(PROBLEM).py || { \
		echo "no problem $(PROBLEM); known: $$(kernel-scientist problems list | cut -d' ' -f1 | xargs)"; exit 2; }
	@$(LOCKED) && cp params.yaml .cache/params.yaml && \
	trap 'mv .cache/params.yaml params.yaml' EXIT && trap 'exit 130' INT TERM HUP && \
	sed -i 's|^problem: [^ ]*|problem: $(PROBLEM)|' params.yaml && dvc repro
else
	@$(LOCKED) && dvc repro
endif

test: lint
	@$(call TESTS,not slow)

slow: install
	@$(call TESTS,slow)

check: lint
	@pytest -q -m "quick and not slow" -n 2 tests

adversarial: install
	@pytest -q -m adversarial tests/cheats

soak: install
	@pytest -q -m soak --ignore tests/chaos

chaos: install
	@pytest -q -s -m soak tests/chaos

lint: install
	@ruff check .
	@ruff format --check .
	@basedpyright
	@lint-imports

bench: install
	@python -m benchmarks.overhead
	@python -m benchmarks.engine
	@python -m benchmarks.evaluator
	@python -m benchmarks.host_time

bench-model: install
	@python -m benchmarks.model

first-light: install
	@python -m benchmarks.first_light

gpu-check: install
	@python -m benchmarks.gpu_check

screenshots: install
	@python -m tests.screenshots

prompts: install
	@python -m docs.write_prompts

docs: install
	@python -m docs.write_reference

ui: install
	@kernel-scientist ui

install: $(STAMP)

# The programs of the environment name its folder, so in a folder that was moved or copied install.py mends them.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

$(STAMP): pyproject.toml constraints.txt install.py
	@$(PYTHON) install.py $(VENV)
	@pwd -P >$(STAMP)

# Removes what can be made again. Runs (mlruns/) and DVC's cache are results and are kept.
clean:
	rm -rf $(VENV) .cache .prefect .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
