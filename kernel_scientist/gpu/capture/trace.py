"""Counts a Triton launch's memory traffic and flops by interpreting some of its programs.

Most values are not computed (see `counting_interpreter`), so a launch of any size is traced quickly. Of a long loop two
iterations are run and scaled; its trip count is recorded. Two samples of programs are traced: programs from the first
to the last of the grid, for the work of an average program, and one die's share of the first wave in dispatch order,
for the lines that its L2 serves to several of them.

Runs in untrusted processes: imports the standard library, numpy, torch, triton and the record of a launch.
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from triton.runtime.jit import JITFunction

from kernel_scientist.gpu.capture.counting_interpreter import (
    Array,
    Counter,
    Ranges,
    counting,
    interpreted,
    interpreter,
    restored,
)
from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.hardware.gpus import Gpu

SPREAD, SHARING = 12, 32
"""Programs of the two samples."""
ACCESSES, LEAST = 3_000, 6
"""Memory accesses after which a sample ends, and its least number of programs."""
WHOLE = 640
"""Programs that are traced if programs differ in their work, or if their work depends on atomic operations."""


class Tracer:
    """Traces programs of one launch."""

    def __init__(
        self, kernel: JITFunction[Any], arguments: dict[str, Any], grid: tuple[int, ...], gpu: Gpu, known: Ranges
    ) -> None:
        self.function, self.gpu, self.known = interpreted(kernel.fn), gpu, known
        self.grid = (*grid, 1, 1)[:3]
        self.programs = int(np.prod(self.grid))
        constants = {p.name for p in kernel.params if p.is_constexpr}
        self.arguments, self.constants = arguments, constants
        self.storages = _storages(arguments)

    def run(self, numbers: Iterable[int], most: int = ACCESSES, atomics: bool = False) -> list[Counter]:
        """Return the counts of each of some programs; the sample ends after `most` accesses. Raises as the kernel."""
        starts = sorted(map(int, self.storages))
        total = Counter(line_bytes=self.gpu.line_bytes, storages=starts, known=self.known, atomics=atomics)
        found: list[Counter] = []
        builder = interpreter.interpreter_builder
        with counting(self.function, total):
            named = {n: a if n in self.constants else interpreter._implicit_cvt(a) for n, a in self.arguments.items()}
            builder.set_grid_dim(*self.grid)
            for number in numbers:  # x runs fastest in dispatch order
                x, rest = number % self.grid[0], number // self.grid[0]
                builder.set_grid_idx(x, rest % self.grid[1], rest // self.grid[1])
                self.function(**named)
                found.append(total.taken())
                if len(found) >= LEAST and sum(one.accesses for one in found) >= most:
                    break
        return found

    def spread(self, most: int) -> list[int]:
        """Return the first program, the last one, and one of each part of the grid between them."""
        if self.programs <= most:
            return list(range(self.programs))
        rng, edges = random.Random(self.programs), np.linspace(1, self.programs - 1, most - 1).astype(int)
        between = [rng.randrange(a, b) for a, b in itertools.pairwise(edges)]
        return [0, self.programs - 1, *rng.sample(between, len(between))]

    def sharing(self, slots: int) -> list[int]:
        """Return one die's share of the first wave."""
        return list(range(min(self.programs - 1, self.gpu.dies // 2), min(self.programs, slots), self.gpu.dies))


def trace(
    kernel: JITFunction[Any],
    arguments: dict[str, Any],
    grid: tuple[int, ...],
    slots: int,
    gpu: Gpu,
    known: Ranges = (),
    trial: bool = False,
) -> tuple[Traffic, set[int]]:
    """Trace a launch on a GPU that runs `slots` programs at a time. Raises any exception of the kernel.

    Also returns the addresses that stores begin at: what lies there is not known any more.
    `known`: memory whose integers are real. `trial`: trace fewer programs, for one of many configurations.
    """
    tracer = Tracer(kernel, arguments, grid, gpu, known)
    spread = tracer.run(tracer.spread(SPREAD // 4 if trial else SPREAD))
    if any(one.guesses for one in spread) and tracer.programs <= WHOLE:
        with restored(known):
            spread = tracer.run(range(tracer.programs), WHOLE * ACCESSES, atomics=True)
    elif len({one.work for one in spread}) > 1:
        spread = tracer.run(tracer.spread(WHOLE), WHOLE * ACCESSES)
    sharing = tracer.run(tracer.sharing(slots)[: SHARING // 4 if trial else SHARING])
    stored = {start for one in (*spread, *sharing) for start in one.stored}
    return _summed(tracer, spread, sharing), stored


def _summed(tracer: Tracer, spread: Sequence[Counter], sharing: Sequence[Counter]) -> Traffic:
    programs, line_bytes, storages = tracer.programs, tracer.gpu.line_bytes, tracer.storages
    scale, sizes = programs / len(spread), sum(storages.values())
    lines_bytes = sum(one.lines for one in spread) * line_bytes * scale
    shared, alone = _union(one for each in sharing for one in each.touched), sum(one.lines for one in sharing)
    l2 = lines_bytes * shared / alone if alone else 0.0  # programs outside of the sample share no less
    flops: dict[str, float] = defaultdict(float)
    rounds: dict[int, list[int]] = defaultdict(list)
    for one in spread:
        for name, value in one.flops.items():
            flops[name] += value * scale
        for depth, trips in one.rounds.items():
            rounds[depth] += trips
    works = [one.work for one in spread]
    return Traffic(
        programs=programs,
        traced=len(spread),
        asked_bytes=sum(one.asked for one in spread) * scale,
        lines_bytes=lines_bytes,
        l2_bytes=l2,
        unique_bytes=min(sizes, l2) if sizes else l2,
        flops=dict(flops),
        trips=tuple(float(np.mean(rounds[depth])) for depth in sorted(rounds)),
        storages=storages,
        heaviest=max(works) * len(works) / sum(works) if any(works) else 1.0,
        guesses=tuple(sorted({line for one in spread for line in one.guesses})),
    )


def _union(touched: Iterable[tuple[Array, float]]) -> float:
    """Return the number of distinct lines, each weighted by the loop iterations that it represents."""
    by_weight: dict[float, list[Array]] = defaultdict(list)
    for lines, weight in touched:
        by_weight[weight].append(lines)
    return sum(weight * len(np.unique(np.concatenate(parts))) for weight, parts in by_weight.items())


def _storages(arguments: dict[str, Any]) -> dict[str, float]:
    """Return the size of all tensor arguments of a launch, by storage."""
    storages: dict[str, float] = {}
    for value in arguments.values():
        tensor = getattr(value, "base", value)  # of a descriptor or a reinterpreted tensor
        if hasattr(tensor, "untyped_storage"):
            storages[str(tensor.untyped_storage().data_ptr())] = float(tensor.numel() * tensor.element_size())
    return storages
