"""Frozen cases: inputs and expected outputs of a problem's checking cases, as DVC tracks them.

They record which outputs were correct when a result was made: `baseline` fails if today's reference (edited, or with
another torch) no longer reproduces them. Only the evaluator reads them.
"""

import json
from pathlib import Path

from kernel_scientist.problems import trees
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Case, digest

DIGESTS = "problem.json"
"""File beside the cases: digests of the problem and of its seeds."""


def freeze(problem: Problem, profile: str, folder: Path) -> list[Path]:
    """Write one file per checking case, and the digests of the problem; return the cases' paths."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for case in problem.profile(profile).tests:
        inputs = problem.generate(case)
        expected = problem.reference(problem.generate(case))
        path = folder / _name(case)
        torch.save({"sizes": case.sizes, "seed": case.seed, "inputs": inputs, "expected": expected}, path)
        paths.append(path)
    (folder / DIGESTS).write_text(json.dumps(_digests(problem), indent=1) + "\n")
    return paths


def _name(case: Case) -> str:
    """Return the name of a case's file. A label has the seed."""
    return f"{case.name}.pt" if case.label else f"{case.name}-seed{case.seed}.pt"


def _digests(problem: Problem) -> dict[str, str]:
    """Return the digests of a problem and of its seeds; DVC's later stages are repeated if they change."""
    seeds = sorted((*problem.folder.glob("seeds/*.py"), *problem.folder.glob("submission.py")))
    return {problem.name: problem.digest, **{file.name: digest(file.read_text()) for file in seeds}}


def verify(problem: Problem, profile: str, folder: Path) -> int:
    """Check that frozen inputs are reproduced and that frozen outputs pass today's check; return the number of cases.

    Raises SetupError that names the first case that fails or is missing.
    """
    import torch

    cases = problem.profile(profile).tests
    for case in cases:
        path = folder / _name(case)
        if not path.is_file():
            raise SetupError(f"frozen case {path} is missing: run `dvc repro cases`")
        held = torch.load(path, weights_only=True)
        fresh = problem.generate(case)
        if not trees.same(held["inputs"], fresh):
            raise SetupError(
                f"case {case.name}: generated inputs differ from those in {path}: run `dvc repro -f cases`"
            )
        good, why = problem.check(held["inputs"], held["expected"])
        if not good:
            raise SetupError(f"case {case.name}: the frozen output is wrong by today's reference ({why}): {path}")
    return len(cases)
