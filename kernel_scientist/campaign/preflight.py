"""What can be wrong with a call, found before anything is started: each is a SetupError with one sentence."""

import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_scientist import problems, scientist
from kernel_scientist.compile import extension_builder, gxx
from kernel_scientist.compile.source import language_of, read_kernel
from kernel_scientist.hardware import gpu, targets
from kernel_scientist.hardware.targets import Target
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import ROLES, Params
from kernel_scientist.scientist.llm import estimate

TIMEOUT_S = 5


def resolve(params: Params) -> tuple[Problem, Target]:
    """Return the problem and the target that the parameters name, once the language can be judged there."""
    target = targets.resolve(params.target, params.language)
    problem = problems.find(params.problem, target.device)
    problem.profile(params.profile)
    if params.language == "cpp":
        gxx.find()
    if params.language in ("hip", "cuda") and target.device != "cpu":
        extension_builder.find(gpu=True)
    if target.device != "cpu" and (mode := gpu.exclusive()):
        raise SetupError(
            f"a GPU here is in compute mode {mode}: a comparison keeps several processes on one; "
            "set it with `nvidia-smi -c DEFAULT`"
        )
    return problem, target


def kernels(params: Params, files: Sequence[Path]) -> None:
    """Check a call about kernel files: they can be read, define `custom_kernel`, and the first one can be judged."""
    texts = [read_kernel(file) for file in files]
    _cache()
    resolve(params.model_copy(update={"language": language_of(texts[0])}))


def campaign(params: Params) -> None:
    """Check a call of `optimize`: problem, target, compiler, seeds, minds, store."""
    from kernel_scientist.tracking import mlflow_store

    _cache()
    problem, _ = resolve(params)
    for seed in problem.seeds(params.language):
        read_kernel(seed)
    scientist.require(params.llm, params.language)
    mlflow_store.reach(environment.tracking_uri(params.tracking.uri))


def _cache() -> None:
    folder = environment.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SetupError(
            f"cannot write to {folder}, where built kernels and locks are kept: {error.strerror}; "
            "KERNEL_SCIENTIST_CACHE can name another folder"
        ) from error


def prefect() -> None:
    """Check that the Prefect server that is configured, if any, answers."""
    api = os.environ.get("PREFECT_API_URL")
    if not api:
        return
    try:
        with urllib.request.urlopen(f"{api.rstrip('/')}/health", timeout=TIMEOUT_S):
            return
    except urllib.error.HTTPError:
        return  # it answers; what it thinks of /health is its own affair
    except (OSError, ValueError) as error:
        raise SetupError(
            f"no Prefect server answers at {api} ({getattr(error, 'reason', error)}); start one, or unset "
            "PREFECT_API_URL to use one for the time of the run"
        ) from error


def plan(params: Params) -> dict[str, Any]:
    """Return what a campaign would do."""
    problem, target = resolve(params)
    scientist.require(params.llm, params.language)
    seeds = problem.seeds(params.language)
    planned = len(seeds) + params.search.generations * params.search.experiments
    return {
        "problem": problem.name,
        "target": target.name,
        "seeds": [s.name for s in seeds],
        "kernels": min(planned, params.budget.kernels),
        "timed_cases": [c.name for c in problem.profile(params.profile).benchmarks],
        "minds": {name: params.llm.role(name).model for name in ROLES},
        "usd": estimate.usd(params, problem, len(seeds)),
        "budget_usd": params.budget.usd,
    }
