"""Which of a file's operators take its time: shares by operator, by PyTorch's profiler on this machine's CPU."""

import contextlib
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from kernel_scientist.problems.problem import REFERENCE_KERNEL, Problem, Profile
from kernel_scientist.problems.trees import cloned

WARM_UP, CALLS = 3, 10
LEAST = 0.01
"""Share from which an operator is named."""


def shares(problem: Problem, profile: Profile, language: str) -> Mapping[str, float]:
    """Return each operator's share, 0 to 1, of the time of the reference's operators, the largest first.

    Of the least times of several calls on the profile's first timed case, without the time between operators. Empty for
    a problem that is no file of a model, or has kernels, or does not run here.
    """
    only_it = bool(problem.adapter) and [file.stem for file in problem.seeds(language)] == [REFERENCE_KERNEL]
    return _profiled(problem, profile.benchmarks[0].name) if only_it and profile.benchmarks else {}


@functools.lru_cache(maxsize=16)
def _profiled(problem: Problem, name: str) -> Mapping[str, float]:
    from torch.autograd.profiler import profile

    case = next(c for p in problem.profiles.values() for c in p.benchmarks if c.name == name)
    here = dataclasses.replace(problem, device="cpu")
    least = dict[str, float]()  # of several calls: other processes take the cores away in some
    with contextlib.suppress(Exception):  # sizes or types that this CPU cannot run
        inputs = [cloned(here.generate(case)) for _ in range(WARM_UP + CALLS)]
        for data in inputs[:WARM_UP]:
            here.reference(data)
        for data in inputs[WARM_UP:]:
            profiled: Any = profile(use_kineto=False)
            with profiled:
                here.reference(data)
            for event in profiled.key_averages():
                name, us = event.key.removeprefix("aten::"), event.self_cpu_time_total
                if event.key.startswith("aten::"):
                    least[name] = min(us, least.get(name, us))
        total = sum(least.values())
        ordered = sorted(least.items(), key=lambda item: -item[1])
        return {operator: us / total for operator, us in ordered if us >= LEAST * total}
    return {}
