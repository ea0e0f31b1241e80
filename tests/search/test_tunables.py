"""Tunables: the search space, the sampler, the winner."""

import math
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compilers.source import KernelSource, Value
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.hardware import gpus
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.kernel import Kernel, Try, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.search import tunables
from kernel_scientist.workers.prepared import simulated
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.trials import trial

BIG = """
TUNABLES = {"A": 2, "B": 1, "C": 0, "fixed": 3}
CHOICES = {"A": [1, 2, 4, 8, 16], "B": [1, 2, 3, 4, 5, 6], "C": [0, 1], "fixed": [3], "ghost": [1, 2], "bad": "no"}
"""
SMALL = """
TUNABLES = {"A": 2, "B": 1}
CHOICES = {"A": [1, 2, 4], "B": [1, 2]}
"""


def kernel(source: str) -> Kernel:
    return Kernel(name="k00001", language="cpp", source=source)


def landscape(values: Mapping[str, Value], source: str) -> Try:
    """The best is A 8, B 5; B 6 does not compile."""
    assert KernelSource(source).tunables == {**KernelSource(source).tunables, **values}
    if values["B"] == 6:
        return Try(values=dict(values), source=source, verdict=Verdict.COMPILE_ERROR, reason="no")
    gain = -abs(math.log2(float(values["A"])) - 3) - abs(float(values["B"]) - 5)
    return Try(values=dict(values), source=source, verdict=Verdict.OK, log2_ratio=gain)


def tuned(source: str, tries: int, seed: int = 1, tried: frozenset[str] = frozenset()) -> tuple[Try, ...]:
    return tunables.tune(kernel(source), landscape, tries, seed, tried.__contains__, lambda: False)


def test_the_space_holds_tunables_with_choices() -> None:
    assert tunables.space(BIG) == {"A": (2, 1, 4, 8, 16), "B": (1, 2, 3, 4, 5, 6), "C": (0, 1)}
    assert tunables.space("TUNABLES = {") == {} and tunables.space("x = 1") == {}


def test_a_small_space_is_searched_exhaustively_and_nothing_is_tried_twice() -> None:
    tries = tuned(SMALL, tries=50)
    assert len(tries) == len({t.source for t in tries}) == 3 * 2 - 1  # all but the kernel itself


def test_a_large_space_is_searched_better_than_at_random() -> None:
    names, choices = "ABCD", list(range(8))
    source = f"TUNABLES = {dict.fromkeys(names, 0)}\nCHOICES = {dict.fromkeys(names, choices)}\n"

    def bowl(values: Mapping[str, Value], source: str) -> Try:
        gain = -sum((float(v) - 5) ** 2 for v in values.values())
        return Try(values=dict(values), source=source, verdict=Verdict.OK, log2_ratio=gain)

    searched, drawn = 0.0, 0.0
    for seed in range(5):
        tries = tunables.tune(kernel(source), bowl, 40, seed, lambda _: False, lambda: False)
        best = tunables.winner(tries)
        assert len(tries) == 40 and best is not None and best.log2_ratio is not None
        lot = random.Random(seed)
        searched += best.log2_ratio
        drawn += max(-float(sum((lot.choice(choices) - 5) ** 2 for _ in names)) for _ in range(40))
    assert searched > drawn


@pytest.mark.slow
@given(st.integers(0, 1000))
def test_the_same_seed_gives_the_same_tries(seed: int) -> None:
    assert tuned(BIG, 5, seed) == tuned(BIG, 5, seed)


def test_sources_tried_before_are_left_out() -> None:
    before = frozenset(t.source for t in tuned(SMALL, 3))
    after = tuned(SMALL, 50, tried=before)
    assert len(after) == 2 and not before & {t.source for t in after}


def test_the_search_stops_on_request() -> None:
    assert tunables.tune(kernel(BIG), landscape, 9, 1, lambda _: False, lambda: True) == ()


def test_only_promising_untuned_kernels_are_candidates() -> None:
    def one(name: str, ratio: float, **changes: object) -> object:
        made = trial(name, ratio, {"k00001": (ratio, ratio)} if name != "k00001" else {})
        return made.model_copy(
            update={"kernel": made.kernel.model_copy(update={"source": f"{SMALL}# {name}", **changes})}
        )

    population = Population((one("k00001", 1.0), one("k00002", 2.0), one("k00003", 1.95)))  # type: ignore[arg-type]

    def chosen(population: Population, busy: frozenset[str] = frozenset(), promising: float = 0.9) -> str | None:
        trial_ = tunables.candidate(population, promising, busy)
        return trial_.kernel.name if trial_ else None

    assert chosen(population) == "k00002" and chosen(population, frozenset({"k00002"})) == "k00003"
    assert chosen(population, frozenset({"k00002"}), 1.0) is None and chosen(population, promising=1.0) == "k00002"
    population.add(one("k00004", 2.1, tuned_from="k00002"))  # type: ignore[arg-type]
    assert chosen(population) == "k00003"  # neither the tuned one nor the one it was tuned from
    assert chosen(population, frozenset({"k00003"})) is None and chosen(Population()) is None


AUTOTUNED = """
import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512}, num_warps=2),
        triton.Config({"BLOCK": 1024}, num_warps=4),  # the usual one
        triton.Config({"BLOCK": 2048}, num_warps=8),
    ],
    key=["size"],
)
@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < size), mask=offsets < size)


def custom_kernel(data):
    x, out = data
    copy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
"""


def test_tritons_configurations_are_tunables(evaluator_for: Callable[[str], Evaluator]) -> None:
    assert tunables.space(AUTOTUNED) == {"autotune.copy_kernel": ("all", 0, 1, 2)}
    one = tunables.configured(KernelSource(AUTOTUNED), {"autotune.copy_kernel": 1})
    assert "1024" in one and "512" not in one and "2048" not in one and tunables.space(one) == {}
    assert tunables.configured(KernelSource(AUTOTUNED), {"autotune.copy_kernel": "all"}) == AUTOTUNED
    tried = tunables.tune(kernel(AUTOTUNED), first_is_best, 9, 1, lambda _: False, lambda: False)
    assert len(tried) == 3
    problem = evaluator_for("identity").problem
    with WorkerPool(Harness(call_timeout_s=60), machine=simulated(problem, gpus.MI300X)) as pool:
        evaluator = Evaluator(problem, "cpu", pool.harness, pool)
        made = Kernel(name="k", language="triton", source=one)
        assert evaluator.check(made, evaluator.compile(made)).verdict is Verdict.OK


def test_computed_configurations_are_left_alone() -> None:
    assert tunables.space("@autotune(configs=[c for c in everything], key=[])\ndef f(): pass\n") == {}
    assert tunables.space("@autotune(configs=[one], key=[])\ndef f(): pass\n") == {}


def first_is_best(values: Mapping[str, Value], source: str) -> Try:
    return Try(values=dict(values), source=source, verdict=Verdict.OK, log2_ratio=0.1)
