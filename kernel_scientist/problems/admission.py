"""Admission of a problem: known wrong outputs must fail its check, and the golden output must pass.

Otherwise, a tolerance that accepts zeros would reward a kernel that does nothing. Admission runs once per version of a
problem. Exceptions are listed in lab.yml (controls: exempt), such as `copy` for the identity.
"""

import contextlib
import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from kernel_scientist.problems import modules
from kernel_scientist.problems.dependence import is_constant
from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.trees import changed, cloned, items, tensors
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError, one_line
from kernel_scientist.records.kernel import Case, digest

Outputs = Iterator[tuple[str, Any]]


def require(problem: Problem, profile: str) -> None:
    """Run the controls unless this version of the problem has passed them.

    Raises SetupError that names the control with the wrong result.
    """
    key = (problem.digest, profile, problem.device, torch.__version__, environment.evaluator_digest())
    passed = environment.cache_folder() / "admission" / digest("\0".join(key))
    if passed.exists():
        return
    require_sent(problem)
    cases = problem.profile(profile).tests or problem.profile(profile).benchmarks
    if cases and (fault := _fault(problem, max(cases, key=lambda case: problem.work(case).bytes))):
        raise SetupError(f"problem {problem.name} fails its admission: {fault}")
    passed.parent.mkdir(parents=True, exist_ok=True)
    passed.touch()


def require_sent(problem: Problem) -> None:
    """Raise SetupError if the inputs of a problem's first case cannot be sent to a worker as they are."""
    profile = problem.profile("auto")
    key = (problem.digest, problem.device, torch.__version__, environment.sources_digest("problems", "records"))
    known = environment.cache_folder() / "sent" / digest("\0".join(key))
    if known.exists():
        return
    for case in (*profile.tests, *profile.benchmarks)[:1]:
        try:
            problem.generate(case)
            _require_one_device(problem, case)
        except SetupError:
            raise
        except Exception:  # the admission tells it
            return
    environment.keep(known, "")


def _require_one_device(problem: Problem, case: Case) -> None:
    """Raise SetupError if some inputs would lie on a GPU and others beside it: tensors without values stand for those.

    What cannot be generated so, or asks for a GPU first, is seen where there is one.
    """
    there, data = dataclasses.replace(problem, device="meta"), None
    if problem.device != "cpu" or problem.adapter or there.sources == problem.sources:  # KernelBench moves all itself
        return
    with modules.generators_on_cpu(), contextlib.suppress(Exception):
        data = there.generate(case)
    on_gpu = [[tensor.is_meta for tensor in tensors(item)] for item in items(data)]
    if any(any(one) for one in on_gpu):
        for place, one in enumerate(on_gpu):
            if not all(one):
                reason = f"input {place}: a tensor on cpu, while kernels get all on the GPU, cannot be sent to a worker"
                raise SetupError(f"problem {problem.name} cannot be evaluated: {reason}")


def _fault(problem: Problem, case: Case) -> str:
    """Return why a problem is not admitted; empty if it is. An exception in its files is a reason, too."""
    try:
        return examine(problem, case)
    except SetupError:
        raise
    except Exception as error:
        return f"{type(error).__name__} on {case.name}: {one_line(error)}"


def examine(problem: Problem, case: Case) -> str:
    """Return a sentence about the first failed control; empty if all pass."""
    data = problem.generate(case, problem.secret_seed(random.SystemRandom()))
    right = problem.reference(cloned(data))
    if not problem.check(data, problem.reference(cloned(data)))[0]:
        return f"its reference is random: a second output for the same inputs of {case.name} fails its own check"
    good, message = problem.check(data, problem.golden(cloned(data)))
    if not good:
        return f"its golden output in double precision fails its own check on {case.name}: {message}"
    constant = f"its output hardly depends on its inputs: its check passes the outputs for other inputs of {case.name}"
    for name, wrong in _controls(problem, data, right):
        if name not in problem.controls.exempt and problem.check(data, wrong)[0]:
            if name in ("mean", "permuted rows") and is_constant(problem, case):
                return constant
            mend = (
                f"tighten the tolerance or the inputs, or except it in {problem.folder / 'lab.yml'} (controls: exempt)"
            )
            fault = f"its check passes a wrong output on {case.name}: {name}"
            return fault if problem.adapter else f"{fault}; {mend}"
    return constant if is_constant(problem, case) else ""


def _controls(problem: Problem, data: Any, right: Any) -> Outputs:
    """Yield (name, wrong output) of each control."""
    yield "zeros", changed(right, torch.zeros_like)
    if any(x.numel() > 1 for x in tensors(right)):
        yield "mean", changed(right, lambda x: torch.full_like(x, x.to(torch.float64).mean().item()))
        yield "permuted rows", changed(right, _permuted)
    if isinstance(right, torch.Tensor):
        for position, value in enumerate(items(data)):
            if position not in problem.writable and isinstance(value, torch.Tensor) and value.numel() == right.numel():
                yield "copy", value.contiguous().reshape(right.shape).to(right.dtype)
    if problem.controls.reduction is not None:
        yield "half of the reduction", problem.reference(_halved(data, *problem.controls.reduction))
    if problem.controls.precision is not None:
        yield "lower precision", problem.reference(_rounded(problem, data, problem.controls.precision))


def _permuted(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor rolled by one along its first dimension that is longer than one, if it has one."""
    dim = next((d for d, length in enumerate(tensor.shape) if length > 1), None)
    return tensor if dim is None else tensor.roll(1, dim)


def _halved(data: Any, position: int, dimension: int) -> Any:
    """Return the inputs with the second half of the reduction zeroed."""
    halved = cloned(data)
    tensor = items(halved)[position]
    length = tensor.shape[dimension]
    tensor.narrow(dimension, length // 2, length - length // 2).zero_()
    return halved


def _rounded(problem: Problem, data: Any, precision: str) -> Any:
    """Return the inputs rounded to a narrower type."""
    narrow = getattr(torch, precision, None)
    if not isinstance(narrow, torch.dtype):
        raise SetupError(f"{problem.folder / 'lab.yml'}: controls: precision: {precision!r} is not a torch type")

    def through(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32).to(narrow).to(torch.float32).to(x.dtype) if x.is_floating_point() else x

    return changed(cloned(data), through)


def fault(place: Path, compat: str = "intended") -> str:
    """Return why the problem at a path cannot be used on this CPU; empty if it is admissible."""
    from kernel_scientist import problems

    try:
        require(problems.load(place, compat=compat), "auto")
    except SetupError as error:
        return str(error)
    return ""
