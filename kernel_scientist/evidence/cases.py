"""Digests of cases: the inputs that a problem's generator makes with their seeds."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from kernel_scientist.hardware import cpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evidence import CaseEvidence, ProblemEvidence
from kernel_scientist.records.kernel import Case, digest


def of_problem(problem: Problem, profile: str) -> ProblemEvidence:
    """Return a problem's evidence for one profile."""
    import torch

    chosen = problem.profile(profile)
    return ProblemEvidence(
        name=problem.name,
        digest=problem.digest,
        device=problem.device,
        compat=problem.compat,
        profile=profile,
        generated_by=f"torch {torch.__version__} on {cpu.model()}",
        reference=digest(problem.reference_source),
        tests=tuple(of_case(problem, case) for case in chosen.tests),
        benchmarks=tuple(of_case(problem, case) for case in chosen.benchmarks),
        held_out=tuple(of_case(problem, case) for case in chosen.held_out),
    )


def of_case(problem: Problem, case: Case) -> CaseEvidence:
    """Return a case with its work and the digest of its inputs, which is empty if they cannot be generated here."""
    try:
        inputs = of_inputs(problem.generate(case))
    except (RuntimeError, AssertionError, SetupError):  # torch without the device, or without the memory
        inputs = ""
    return CaseEvidence(case=case, work=problem.work(case), inputs=inputs)


def of_inputs(data: Any) -> str:
    """Return the sha256 of a tree of inputs: containers, values, and the type, shape and bytes of each tensor."""
    total = hashlib.sha256()
    for part in _parts(data):
        total.update(len(part).to_bytes(8) + part)
    return total.hexdigest()


def _parts(value: Any) -> Iterable[bytes]:
    import torch

    if isinstance(value, torch.Tensor):
        yield f"tensor {value.dtype} {tuple(value.shape)}".encode()
        yield value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for key, item in cast(Mapping[str, Any], value).items():
            yield str(key).encode()
            yield from _parts(item)
    elif isinstance(value, (list, tuple)):
        items = cast(list[Any], value)
        yield f"{type(value).__name__} {len(items)}".encode()
        for item in items:
            yield from _parts(item)
    else:
        yield f"{type(value).__name__} {value!r}".encode()
