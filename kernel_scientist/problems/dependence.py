"""Whether an output depends on the inputs: a kernel for one that hardly does may ignore them."""

import random
from typing import Any

from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.trees import cloned
from kernel_scientist.records.kernel import Case

OTHERS = 4
"""Other inputs whose outputs are compared."""
_constant: dict[tuple[str, str], bool] = {}
"""Answers of `is_constant`, by digest of the problem and name of the case: a call may take a minute."""


def is_constant(problem: Problem, case: Case) -> bool:
    """Whether the check passes outputs for several other inputs of a case. Parameters of a model stay."""
    key = (problem.digest, case.name)
    if key not in _constant:
        _constant[key] = _is_constant(problem, case)
    return _constant[key]


def _is_constant(problem: Problem, case: Case) -> bool:
    rng, data = random.SystemRandom(), problem.generate(case)
    parameters = data[-2:] if problem.adapter else ()

    def other() -> Any:
        inputs = problem.generate(case, problem.secret_seed(rng))
        return problem.reference((*inputs[:-2], *parameters) if parameters else inputs)

    return all(problem.check(cloned(data), other())[0] for _ in range(OTHERS))
