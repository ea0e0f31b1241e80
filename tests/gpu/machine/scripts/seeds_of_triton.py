"""What `test_against_interpreter.py` runs twice: once where the machine takes Triton's launches, once interpreted.

Arguments: the machine's library, or "interpreter" where Triton interprets; the file that results go to. Computes each
problem's Triton seeds on two of its checking cases. Writes, by seed and case, a list of outputs: that of the problem's
own inputs, and for matrix products that of inputs whose sums fp32 holds exactly, in whatever order they are added.
"""

import contextlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import torch

from kernel_scientist import problems
from kernel_scientist.gpu.capture.inspect import facts
from kernel_scientist.gpu.fake.device import pretended
from kernel_scientist.gpu.machine import library
from kernel_scientist.gpu.machine.allocations import Allocations
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.triton_launches import TritonLaunches
from kernel_scientist.hardware import gpus
from tests.gpu.machine import exact_sums
from tests.interpreter import numerics

GPU = facts(gpus.MI300X)
UNWRITTEN = 0xFF
"""Bytes of memory that nobody wrote: NaN in every floating-point type."""
CASES = slice(0, 3, 2)
"""Which of a problem's checking cases: a small one, and one that fills no whole number of tiles."""
Inputs = tuple[torch.Tensor, ...]


def loaded(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with pretended(GPU):
        spec.loader.exec_module(module)
    return module


def computed(module: types.ModuleType, data: Inputs, machine: Executor | None) -> torch.Tensor:
    """Return a copy of what a seed computes, executed by the machine or, where that is None, interpreted."""
    with pretended(GPU), contextlib.ExitStack() as within:
        if machine is not None:
            machine.allocations = within.enter_context(Allocations(data, [len(data) - 1], UNWRITTEN))
        output = module.custom_kernel(data)
    return output.clone()


def main() -> None:
    torch.set_num_threads(1)
    executor = None
    if sys.argv[1] == "interpreter":
        numerics.install()
    else:
        executor = Executor(library.loaded(Path(sys.argv[1])), 1)
        TritonLaunches(GPU, executor)
    found: dict[str, Any] = {}
    for problem in map(problems.find, problems.names()):
        for path in sorted(problem.folder.glob("seeds/triton_*.py")):
            module = loaded(path)
            for number, case in enumerate(problem.profile("cpu").tests[CASES]):
                data = problem.generate(case)
                outputs = [computed(module, data, executor)]
                if "gemm" in problem.name:
                    exact_sums.fill(data)
                    outputs.append(computed(module, data, executor))
                found[f"{problem.name}-{path.stem}-{number}"] = outputs
    torch.save(found, sys.argv[2])


if __name__ == "__main__":
    main()
