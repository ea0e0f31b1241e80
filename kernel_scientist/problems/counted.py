"""Work of a case, counted while the reference runs: torch's flop counter, and the bytes of inputs and outputs."""

import contextlib
import dataclasses
import gc
import json
import threading
from collections.abc import Generator
from typing import Any

from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.trees import cloned, items, tensors
from kernel_scientist.records import environment, layout
from kernel_scientist.records.kernel import Case, digest

REAL_BYTES = 64 << 20
"""Inputs up to this size are made; of larger ones only the shapes are followed."""
_lock = threading.RLock()
_known: dict[tuple[str, str], tuple[float, float]] = {}


def work(problem: Problem, case: Case) -> tuple[float, float]:
    """Return (flops, bytes) of a case; flops are those of matrix products, convolutions and attention.

    Where the reference cannot be followed without values, flops are 0 and bytes those of the inputs.
    """
    key = (problem.digest, case.name)
    with _lock:
        if key not in _known:
            _known[key] = _kept(problem, case)
        return _known[key]


def run(problem: Problem, case: Case) -> tuple[float, float]:
    """Run the reference once; return (flops, bytes). Raises what the reference raises."""
    from torch.utils.flop_counter import FlopCounterMode

    data = problem.generate(case)
    with FlopCounterMode(display=False) as counter:
        output = problem.reference(cloned(data))
    return float(counter.get_total_flops()), _bytes(problem, data) + _bytes(problem, output, inputs=False)


def _kept(problem: Problem, case: Case) -> tuple[float, float]:
    name = digest(
        chr(0).join((problem.digest, case.model_dump_json(), environment.sources_digest("problems", "records")))
    )
    file = environment.cache_folder() / "work" / f"{name}.json"
    if file.exists():
        flops, moved = json.loads(file.read_text())
        return float(flops), float(moved)
    found = _count(problem, case)
    environment.keep(file, json.dumps(found))
    return found


def _count(problem: Problem, case: Case) -> tuple[float, float]:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    inputs, apart = 0.0, dataclasses.replace(problem)  # the problem's own module keeps no tensors without values
    with contextlib.suppress(Exception), _uncollected(), FakeTensorMode():
        data = apart.generate(case)
        inputs = _bytes(problem, data)
        if inputs > REAL_BYTES:
            with FlopCounterMode(display=False) as counter:
                output = apart.reference(data)
            return float(counter.get_total_flops()), inputs + _bytes(problem, output, inputs=False)
    if inputs <= REAL_BYTES:
        with contextlib.suppress(Exception):
            return run(problem, case)
    return 0.0, inputs


@contextlib.contextmanager
def _uncollected() -> Generator[None]:
    """Stop Python's garbage collector: with it, `Module.to` without values failed at random (torch 2.13)."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _bytes(problem: Problem, value: Any, inputs: bool = True) -> float:
    """Return the bytes that must be read of inputs, or written of an output. What tensors share counts once."""
    parts = [item for place, item in enumerate(items(value)) if not inputs or place not in problem.writes]
    return float(layout.unique_bytes(tensors(parts)))
