"""What `test_triton_checks.py` runs in a process of its own, where the machine takes Triton's launches.

Prints, as JSON, for every kernel of `tests/memory` and every seed what a checking run said and whether it was right.
"""

import contextlib
import importlib.util
import json
import random
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from kernel_scientist import problems
from kernel_scientist.gpu.capture.inspect import facts
from kernel_scientist.gpu.fake.device import pretended
from kernel_scientist.gpu.machine import library
from kernel_scientist.gpu.machine.checking import Checks
from kernel_scientist.gpu.machine.executor import Executor
from kernel_scientist.gpu.machine.triton_launches import TritonLaunches
from kernel_scientist.gpu.machine.undefined import CheckedAllocations
from kernel_scientist.hardware import gpus

FOLDER = Path(__file__).resolve().parents[3] / "memory"
GPU = facts(gpus.MI300X)
EXECUTOR = Executor(library.loaded(Path(sys.argv[1])), 1)


def load(path: Path, text: str | None = None) -> types.ModuleType:
    """Import a submission; Triton reads its source back through its file."""
    if text is not None and text != path.read_text():
        path = Path(sys.argv[2]) / f"{path.parts[-3]}_{path.name}"
        path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with pretended(GPU):
        spec.loader.exec_module(module)
    return module


def checked(module: types.ModuleType, data: object, writable: list[int], defined: list[int]) -> tuple:
    """Call a submission under a checking run; return its output and the defects."""
    EXECUTOR.checks, EXECUTOR.seed = Checks(EXECUTOR.library), random.getrandbits(60)
    EXECUTOR.allocations = memory = CheckedAllocations(data, writable, EXECUTOR.checks, random.getrandbits(60))
    for position in set(writable) - set(defined):
        memory.poison(data[position])
    output = data[-1]
    with pretended(GPU), memory, contextlib.suppress(RuntimeError):  # it does not end: a finding says why
        output = module.custom_kernel(data)
    memory.reached(output)
    return output, [asdict(defect) for defect in EXECUTOR.take()[0]]


def examine(path: Path) -> dict:
    """Check one kernel of the corpus."""
    torch.manual_seed(0)
    module = load(path)
    data = module.data()
    expected = module.expected(*(x.clone() for x in data)) if hasattr(module, "expected") else None
    output, defects = checked(module, data, [len(data) - 1], getattr(module, "DEFINED", []))
    right = expected is not None and torch.allclose(output.float(), expected.float(), rtol=2e-2, atol=1e-2)
    return {"defects": defects, "right": right}


def examine_seed(name: str, path: Path) -> dict:
    """Check a problem's seed on all cases of its tests."""
    problem, found, right = problems.find(name), [], True
    module = load(path, problem.adapted(path.read_text()))
    for case in problem.profile("cpu").tests:
        data = problem.generate(case)
        output, defects = checked(module, data, [len(data) - 1], [])
        found += defects
        right &= problem.check(problem.generate(case), output)[0]
    return {"defects": found, "right": right}


def attempt(check: Callable[..., dict], *args: object) -> dict:
    try:
        return check(*args)
    except Exception:
        return {"error": traceback.format_exc()[-3000:]}


def main() -> None:
    torch.set_num_threads(1)
    TritonLaunches(GPU, EXECUTOR)
    results = {f"{p.parent.name}/{p.stem}": attempt(examine, p) for p in sorted(FOLDER.glob("*/*.py"))}
    for name in problems.names():
        for path in problems.find(name).seeds("triton"):
            results[f"seeds/{name}-{path.stem}"] = attempt(examine_seed, name, path)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
