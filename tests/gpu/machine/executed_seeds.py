"""Seeds executed by the machine in a worker, as an evaluation does, with what they were given."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.hardware import gpus
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import protocol
from kernel_scientist.workers import prepared
from kernel_scientist.workers.untrusted.outputs import tensors
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.gpu.machine import exact_sums

SEED = 1
"""Of the inputs: the same in every run."""


@dataclass(frozen=True)
class SeedCall:
    """A call of a seed."""

    case: Case
    data: tuple[torch.Tensor, ...]
    """Its inputs, with the output's buffer as it was before the call."""
    output: torch.Tensor
    exact: bool
    """Whether every order of its sums gives the same number (`exact_sums`)."""


@contextmanager
def drivers(problem: Problem) -> Iterator[Driver]:
    """Give what calls seeds of a problem in workers whose launches the machine executes."""
    harness = Harness()
    with WorkerPool(harness, "cpu", machine=prepared.simulated(problem, gpus.MI300X, threads=1)) as pool:
        yield Driver(problem, harness, pool)


def executed(driver: Driver, path: Path, cases: Sequence[Case], exact: bool) -> list[SeedCall]:
    """Call a seed on each case; if `exact`, also on inputs of a product whose sums fp32 holds."""
    found = list[SeedCall]()
    with driver.pool.worker() as worker:
        driver.imported(worker, path.read_text(), [])
        for case in cases:
            for is_exact in (False, True) if exact else (False,):
                inputs = driver.inputs.draw(case, SEED)
                if is_exact:
                    exact_sums.fill(inputs.data)
                data: Any = copy.deepcopy(inputs.data)
                _, (output,) = driver.row(worker, {0: inputs}, 120)
                (made,) = tensors(protocol.decode(output.tree, list(output.buffers), None))
                found.append(SeedCall(case, data, made.clone(), is_exact))
    return found
