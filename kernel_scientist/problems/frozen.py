"""Frozen cases: inputs and expected outputs of a problem's checking cases, as DVC tracks them.

They pin down what "right" meant when a result was made: `baseline` fails when today's reference no longer reproduces
them (another torch, an edited reference). Only the evaluator reads them.
"""

from pathlib import Path
from typing import Any

from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.errors import SetupError


def freeze(problem: Problem, profile: str, folder: Path) -> list[Path]:
    """Write one file per checking case; return their paths."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for case in problem.profile(profile).tests:
        inputs = problem.generate(case)
        expected = problem.reference(problem.generate(case))
        path = folder / f"{case.name}.pt"
        torch.save({"sizes": case.sizes, "seed": case.seed, "inputs": inputs, "expected": expected}, path)
        paths.append(path)
    return paths


def verify(problem: Problem, profile: str, folder: Path) -> int:
    """Check that inputs are generated as frozen and that frozen outputs are right today; return how many cases.

    Raises SetupError naming the first case that is not, or that is missing.
    """
    import torch

    cases = problem.profile(profile).tests
    for case in cases:
        path = folder / f"{case.name}.pt"
        if not path.is_file():
            raise SetupError(f"frozen case {path} is missing: run `dvc repro cases`")
        held = torch.load(path, weights_only=True)
        fresh = problem.generate(case)
        same = all(torch.equal(a, b) for a, b in zip(_bytes(held["inputs"]), _bytes(fresh), strict=True))
        if not same:
            raise SetupError(
                f"case {case.name}: inputs are not generated as frozen in {path}: run `dvc repro -f cases`"
            )
        good, why = problem.check(held["inputs"], held["expected"])
        if not good:
            raise SetupError(f"case {case.name}: the frozen output is wrong by today's reference ({why}): {path}")
    return len(cases)


def _bytes(values: Any) -> list[Any]:
    """Return the tensors among `values` as flat bytes: equality bit for bit, NaN included."""
    import torch

    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    return [t.contiguous().reshape(-1).view(torch.uint8) for t in tensors]
