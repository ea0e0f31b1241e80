"""Kernels that dispatch by shape: what runs only on timed cases is executed there, compared and watched."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.correctness import timed_cases
from kernel_scientist.evaluation.predicted import PredictedEvaluator
from kernel_scientist.hardware import gpus
from kernel_scientist.problems.problem import Profile
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.prepared import simulated
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT
from tests.problems.test_kinds_of_folders import folder

SOURCE = (ROOT / "tests/gpu/machine/dispatching.py").read_text()
WAYS = ("whole", "halves", "persistent", "split", "torch", "atomic", "locked", "turned", "contiguous")
BY_K = "if k <= 640 or"
SOUND = {
    **{
        f"{way}, tiles of {side}": (way, "SPLIT, BLOCK = 4, 64", f"SPLIT, BLOCK = 4, {side}")
        for way in WAYS[:7]
        for side in (32, 128)
    },
    **{
        f"{way}, {parts} parts": (way, "SPLIT, BLOCK = 4", f"SPLIT, BLOCK = {parts}")
        for way in WAYS[3:7]
        for parts in (2, 3)
    },
    "persistent, 5 tiles a program": ("persistent", "TILES_PER_PROGRAM = 2", "TILES_PER_PROGRAM = 5"),
    "by rows": ("split", BY_K, "if m < 192 or"),
    "by columns": ("halves", BY_K, "if n % 128 == 64 and n > 64 and m > 192 or"),
    "by the number of tiles": ("locked", BY_K, "if tiles[0] * tiles[1] <= 15 or"),
    "by a table of shapes": ("atomic", BY_K, "if (m, n, k) != (256, 576, 1152) or"),
    "another width of the sum": (
        "split",
        "1024),)](scratch, c, m * n, WIDTH=1024",
        "512),)](scratch, c, m * n, WIDTH=512",
    ),
    "rows in another order": (
        "whole",
        "tile_m, tile_n = tl.program_id(0), tl.program_id(1) + offset_n",
        "tile_m, tile_n = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1) + offset_n",
    ),
}
"""Sound variations of the ways: with WAYS itself, 38 sound kernels."""
TIMED = ({"m": 192, "n": 320, "k": 1024}, {"m": 256, "n": 576, "k": 1152})
LOCK = 'tl.atomic_add(locks_ptr + tile_m * tl.num_programs(1) + tile_n, 1, sem="acq_rel")'
WRONG = {
    "half of k": (
        "whole",
        'c, m, n, k, 0, BLOCK=BLOCK)\n    elif WAY == "halves"',
        'c, m, n, k // 2 if k > 640 else k, 0, BLOCK=BLOCK)\n    elif WAY == "halves"',
    ),
    "a limit inside of the kernel": ("whole", "range(first, last)", "range(first, tl.minimum(last, 7))"),
    "a scale of another block": ("whole", "sa_ptr + block * m", "sa_ptr + block % 8 * m"),
    "the second half starts one tile late": ("halves", "n, k, half, BLOCK", "n, k, half + 1, BLOCK"),
    "the first half is computed twice": ("halves", "n, k, half, BLOCK", "n, k, 0, BLOCK"),
    "the last tile is left out": ("persistent", "tl.cdiv(m, BLOCK) * tiles_n,", "tl.cdiv(m, BLOCK) * tiles_n - 1,"),
    "too few programs": ("whole", "tiles = (triton.cdiv(m, BLOCK),", "tiles = (triton.cdiv(m, BLOCK) - (k > 640),"),
    "the reducer forgets the last part": ("split", "static_range(SPLIT)", "static_range(SPLIT - 1)"),
    "a remainder of k is dropped": ("split", "blocks * (part + 1) // SPLIT", "blocks // SPLIT * (part + 1)"),
    "one part is not summed": ("torch", "scratch.sum(0)", "scratch[1:].sum(0)"),
    "a sum that begins anywhere": ("atomic", "torch.zeros((m, n)", "torch.empty((m, n)"),
    "half of the parts are added": (
        "atomic",
        "(*tiles, SPLIT)](a, b, sa, sb, scratch, m, n, k, BLOCK=BLOCK, SPLIT=SPLIT)\n        c.copy_",
        "(*tiles, SPLIT // 2)](a, b, sa, sb, scratch, m, n, k, BLOCK=BLOCK, SPLIT=SPLIT)\n        c.copy_",
    ),
    "a lock that orders nothing": ("locked", LOCK, LOCK.replace("acq_rel", "relaxed")),
    "the last one to arrive adds too few": ("locked", "for other in range(SPLIT)", "for other in range(SPLIT - 1)"),
    "nobody is the last to arrive": ("locked", "if arrived == SPLIT - 1", "if arrived == SPLIT"),
    "half of the output": ("whole", "    return c\n", "    return c if k <= 640 else c[: m // 2]\n"),
    "a column less": ("whole", "    return c\n", "    return c if k <= 640 else c[:, 1:]\n"),
    "rows and columns are confused": ("turned", "k, m, BLOCK=128)", "m, k, BLOCK=128)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def evaluator() -> Iterator[PredictedEvaluator]:
    problem = problems.find("fp8-blockwise-gemm")
    timed = tuple(Case(sizes=sizes, seed=1) for sizes in TIMED)
    small = Profile(tests=(Case(sizes={"m": 64, "n": 64, "k": 128}, seed=1),), benchmarks=timed, held_out=())
    problem = replace(problem, profiles={"full": small})
    with WorkerPool(Harness(call_timeout_s=60), machine=simulated(problem, gpus.MI300X)) as pool:
        yield PredictedEvaluator(problem, "full", pool.harness, pool, gpus.MI300X)


def checked(evaluator: PredictedEvaluator, way: str, before: str = "", after: str = "") -> Evaluation:
    assert before in SOURCE
    source = SOURCE.replace(before, after) if before else SOURCE
    source = source.replace('WAY = "split"', f'WAY = "{way}"')
    kernel = Kernel(name="k", language="triton", source=source)
    return evaluator.check(kernel, evaluator.compile(kernel))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_sound_way_is_executed_on_every_timed_case(evaluator: PredictedEvaluator, way: str) -> None:
    found = checked(evaluator, way)
    assert found.verdict is Verdict.OK and "values compared on 2 of 2 timed cases" in found.coverage, found


@pytest.mark.slow
def test_a_matrix_products_order_of_sums_and_lines_are_told(evaluator: PredictedEvaluator) -> None:
    kernel = Kernel(name="k", language="triton", source=SOURCE.replace('WAY = "split"', 'WAY = "whole"'))
    found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is Verdict.OK, found.reason
    assert any("sums within matrix instructions in the other order: " in one for one in found.evidence), found
    assert len(found.predictions) == 2
    for lines in (p.lines for p in found.predictions):
        assert any("tl.dot(a, b)" in one.text and one.causes.get("matrix", 0) > 0.02 for one in lines), lines


@pytest.mark.soak
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_variation_is_ok(evaluator: PredictedEvaluator, name: str) -> None:
    found = checked(evaluator, *SOUND[name])
    assert found.verdict is Verdict.OK and "values compared on 2 of 2 timed cases" in found.coverage, found


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_an_error_on_timed_cases_only_is_found(evaluator: PredictedEvaluator, name: str) -> None:
    found = checked(evaluator, *WRONG[name])
    assert found.verdict is Verdict.INCORRECT, found
    assert "64-n64" not in found.reason, "the small case is right"


DOUBLED = """
def generate_input(size: int, seed: int):
    return (torch.randn(size, generator=torch.Generator().manual_seed(seed)),)


def check_implementation(data, output):
    right = ref_kernel(data)
    good = [*output] == [*right] and all(torch.allclose(output[key], right[key]) for key in right)
    return good, "" if good else "differs"


def ref_kernel(data):
    return {"double": data[0] * 2, "square": data[0] * data[0]}
"""
BOTH = """
import torch, triton, triton.language as tl

@triton.jit
def both(x_ptr, double_ptr, square_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(double_ptr + at, x + x, mask=at < n)
    tl.store(square_ptr + at, x * x, mask=at < n)

def custom_kernel(data):
    x = data[0]
    double, square = torch.empty_like(x), torch.empty_like(x)
    both[(triton.cdiv(x.numel(), 256),)](x, double, square, x.numel(), BLOCK=256)
    return {"double": double, "square": square}
"""


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("", "", Verdict.OK),
        ("x * x,", "x * x + (n > 1024),", Verdict.INCORRECT),
        ('"square": square}', '**({"square": square} if x.numel() < 1024 else {})}', Verdict.INCORRECT),
        ('"square": square}', '"square": square if x.numel() < 1024 else square.half()}', Verdict.INCORRECT),
    ],
    ids=["right", "wrong where it is timed", "an output less", "an output of another type"],
)
def test_several_outputs_keep_their_structure(before: str, after: str, verdict: Verdict, tmp_path: Path) -> None:
    place = folder(tmp_path / "doubled", DOUBLED, {"size": 256}, {"size": 4096})
    problem = problems.load(place)
    with WorkerPool(Harness(call_timeout_s=60), machine=simulated(problem, gpus.MI300X)) as pool:
        evaluator = PredictedEvaluator(problem, "full", pool.harness, pool, gpus.MI300X)
        kernel = Kernel(name="k", language="triton", source=BOTH.replace(before, after) if before else BOTH)
        found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is verdict, found


TRIPLED = """
def generate_input(size: int, seed: int):
    return (torch.randn(size, generator=torch.Generator().manual_seed(seed)), torch.zeros(size))


def check_implementation(data, output):
    {check}
    good = torch.allclose(got, right)
    return good, "" if good else "differs"


def ref_kernel(data):
    return data[0] * 3
"""
CHECKS = {
    "computes, then reads": "right = ref_kernel(data); got = output.double(); right = right.double()",
    "reads, then computes": "got = output.double(); right = ref_kernel(data).double()",
    "computes in its own words": "got, right = output, data[0] + data[0] + data[0]",
    "computes something else first": "ref_kernel((data[0][:3], data[1])); got, right = output, ref_kernel(data)",
}
TRIPLE = """
import torch, triton, triton.language as tl

@triton.jit
def triple(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 3 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

def custom_kernel(data):
    x, out = data[0], torch.empty_like(data[0])
    triple[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [("", "", Verdict.OK), ("3 *", "(3 + (n > 1024)) *", Verdict.INCORRECT)],
    ids=["right", "wrong"],
)
@pytest.mark.parametrize("check", CHECKS)
def test_a_part_of_an_output_is_compared_by_any_check(
    check: str, before: str, after: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_cases, "LEAST_S", 1e-3)
    reference = TRIPLED.replace("{check}", CHECKS[check])
    problem = problems.load(folder(tmp_path / "tripled", reference, {"size": 256}, {"size": 4096}))
    timed = (Case(sizes={"size": 1 << 21}, seed=1), Case(sizes={"size": 1 << 22}, seed=1))
    problem = replace(problem, profiles={"full": replace(problem.profile("full"), benchmarks=timed)})
    with WorkerPool(Harness(call_timeout_s=60, executed_s=2e-3), machine=simulated(problem, gpus.MI300X)) as pool:
        evaluator = PredictedEvaluator(problem, "full", pool.harness, pool, gpus.MI300X)
        kernel = Kernel(name="k", language="triton", source=TRIPLE.replace(before, after) if before else TRIPLE)
        found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is verdict, found
    if verdict is Verdict.OK:
        assert "values compared on 2 of 2 timed cases" in found.coverage, found
        assert " of 98304 programs" in found.coverage, "a part of them"


HURRIED = Harness(call_timeout_s=60, executed_s=2e-3)
LARGE = (1 << 21, 1 << 22)
OWN_BUFFER = "torch.empty_like(data[0])"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (OWN_BUFFER, "torch.zeros_like(data[0])", Verdict.OK),
        (OWN_BUFFER, "torch.full_like(data[0], 7)", Verdict.OK),
        ("return out", "return out.double().float()", Verdict.OK),
        ("return out", "return out if x.numel() < 1024 else out.add_(1)", Verdict.INCORRECT),
        ("triton.cdiv(x.numel(), 64),)", "min(triton.cdiv(x.numel(), 64), 20_000),)", Verdict.INCORRECT),
    ],
    ids=["zeros", "sevens", "copied", "torch adds", "too few programs"],
)
def test_what_a_part_of_the_programs_did_not_write_is_told_from_what_nobody_writes(
    before: str, after: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_cases, "LEAST_S", 1e-3)
    reference = TRIPLED.replace("{check}", CHECKS["computes, then reads"])
    problem = problems.load(folder(tmp_path / "tripled", reference, {"size": 256}, {"size": 4096}))
    timed = tuple(Case.model_validate({"sizes": {"size": size}, "seed": 1}) for size in LARGE)
    problem = replace(problem, profiles={"full": replace(problem.profile("full"), benchmarks=timed)})
    assert before in TRIPLE
    with WorkerPool(HURRIED, machine=simulated(problem, gpus.MI300X)) as pool:
        evaluator = PredictedEvaluator(problem, "full", pool.harness, pool, gpus.MI300X)
        kernel = Kernel(name="k", language="triton", source=TRIPLE.replace(before, after))
        found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is verdict, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["the reducer forgets the last part", "one part is not summed"])
def test_each_way_to_launch_is_compared_also_when_the_time_for_values_is_over(
    name: str, evaluator: PredictedEvaluator
) -> None:
    harness = evaluator.harness.model_copy(update={"executed_s": 1e-3})
    hurried = PredictedEvaluator(evaluator.problem, "full", harness, evaluator.pool, gpus.MI300X)
    assert checked(hurried, *WRONG[name]).verdict is Verdict.INCORRECT


@pytest.mark.slow
def test_every_timed_case_is_predicted_when_the_time_for_values_is_over(evaluator: PredictedEvaluator) -> None:
    harness = evaluator.harness.model_copy(update={"executed_s": 1e-3})
    hurried = PredictedEvaluator(evaluator.problem, "full", harness, evaluator.pool, gpus.MI300X)
    found = checked(hurried, "split")
    assert found.verdict is Verdict.OK and len(found.predictions) == 2, found
