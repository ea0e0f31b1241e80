"""Tricks that a model of a GPU may fall for: none of them gains anything in the prediction."""

import pytest

from kernel_scientist import problems
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.hardware import gpus
from kernel_scientist.records.kernel import Case
from tests.conftest import ROOT

PROBLEM = problems.find("fp8-blockwise-gemm")
CASES = (Case(sizes={"m": 2048, "n": 2304, "k": 2048}, seed=1),)
SEED = (ROOT / "problems/fp8-blockwise-gemm/seeds/triton_tiled.py").read_text()
WAYS = (ROOT / "tests/gpu/machine/dispatching.py").read_text()
LOOP = "    for _ in range(k // 128):\n"
CALL = "gemm_kernel[grid](\n"


def inspected(source: str, cases: tuple[Case, ...] = CASES) -> Inspection:
    found = inspect.inspect(source, PROBLEM, cases, gpus.MI300X, 120, counts=True)
    assert found.report.ok, found.report.log
    return found


def time_us(source: str, cases: tuple[Case, ...] = CASES) -> float:
    found = inspected(source, cases)
    assert not found.unpredicted(PROBLEM, cases)
    return found.predictions(PROBLEM, cases)[0].time_us


def changed(*changes: tuple[str, str]) -> str:
    source = SEED
    for before, after in changes:
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    return source


def way(name: str) -> str:
    return WAYS.replace('WAY = "split"', f'WAY = "{name}"')


@pytest.mark.slow
def test_work_is_not_hidden_from_the_programs_of_one_die() -> None:
    """Every eighth program, all of one die, computes one tile; the others compute two."""
    head, rest = SEED.split("    pid = tl.program_id(0)\n")
    body, call = rest.split("\n\n@functools.cache")
    indented = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    tiles = "    die, turn = tl.program_id(0) % 8, tl.program_id(0) // 8\n"
    tiles += "    first = turn * 15 + tl.maximum(2 * die - 1, 0)\n"
    tiles += "    for pid in range(first, tl.minimum(first + 1 + tl.minimum(die, 1), tiles_m * tiles_n)):\n"
    uneven = f"{head}{tiles}{indented}\n\n@functools.cache{call}"
    grid = '(triton.cdiv(m, TUNABLES["BLOCK_M"]) * triton.cdiv(n, TUNABLES["BLOCK_N"]),)'
    assert uneven.count(grid) == 1
    uneven = uneven.replace(grid, f"(8 * triton.cdiv({grid}[0], 15),)")
    assert time_us(uneven) > 0.97 * time_us(SEED)


def test_rounds_that_depend_on_an_input_are_not_predicted_without_it() -> None:
    source = changed(
        (LOOP, "    for _ in range(tl.load(rounds_ptr)):\n"),
        ("    a_ptr,  #", "    rounds_ptr, a_ptr,  #"),
        (CALL, f"{CALL}        a_scale.view(torch.int32),\n"),
    )
    (reason,) = inspected(source).unpredicted(PROBLEM, CASES)
    assert "gemm_kernel was not counted: rounds_ptr holds integers whose values only running it shows" in reason


def test_rounds_of_which_zeros_make_none_are_not_predicted() -> None:
    (reason,) = inspected(changed((LOOP, "    for _ in range(k // 128 * (tl.load(a_scale_ptr) > 0)):\n"))).unpredicted(
        PROBLEM, CASES
    )
    assert "its matrix products have 0 flops of" in reason


def test_rounds_that_the_submission_itself_wrote_are_read() -> None:
    source = changed(
        (LOOP, "    for _ in range(tl.load(rounds_ptr)):\n"),
        ("    a_ptr,  #", "    rounds_ptr, a_ptr,  #"),
        (CALL, f"{CALL}        torch.tensor([k // 128], dtype=torch.int32, device=a.device),\n"),
    )
    found = inspected(source)
    (load,) = [load for load in found.loads(CASES[0].name) if load.traffic.flops]
    assert sum(load.traffic.flops.values()) == pytest.approx(PROBLEM.work(CASES[0]).flops)


def test_half_of_the_product_is_not_predicted() -> None:
    (reason,) = inspected(changed((LOOP, "    for _ in range(k // 128 - 1):\n"))).unpredicted(PROBLEM, CASES)
    assert "its matrix products have" in reason and "that the case needs" in reason


@pytest.mark.slow
def test_torch_s_operations_cost_their_bytes_and_a_launch() -> None:
    copies = changed((CALL, f"a_scale = a_scale.clone()\n    b = b.clone()\n    {CALL}"))
    base = time_us(SEED)
    assert time_us(copies) > base + 4
    zeros = changed((CALL, f"torch.zeros((4096, 4096), device=a.device)\n    {CALL}"))
    assert time_us(zeros) > base + 64e6 / 5.3e6


@pytest.mark.parametrize(
    "call", ["torch.matmul(a.float(), b.float().t())", "torch.sort(a_scale)", "int(a_scale.sum())"]
)
def test_torch_s_other_operations_are_not_predicted(call: str) -> None:
    (reason,) = inspected(changed((CALL, f"{call}\n    {CALL}"))).unpredicted(PROBLEM, CASES)
    assert "torch's `" in reason


@pytest.mark.slow
def test_the_last_one_to_arrive_is_charged_for_what_it_adds() -> None:
    cases = (Case(sizes={"m": 512, "n": 1280, "k": 1024}, seed=1),)  # 160 tiles, 4 programs each
    (last,), two = (inspected(way(name), cases).loads(cases[0].name)[-n:] for name, n in (("locked", 1), ("split", 2)))
    assert last.traffic.asked_bytes == pytest.approx(sum(load.traffic.asked_bytes for load in two), rel=0.02)


def test_a_while_loop_multiplies_what_the_same_for_loop_does_and_waits_more_often() -> None:
    body = "    left = k // 128\n    while left > 0:\n        left -= 1\n"
    (loop,), (ahead,) = (inspected(source).loads(CASES[0].name) for source in (changed((LOOP, body)), SEED))
    assert loop.traffic.flops == ahead.traffic.flops and loop.traffic.unique_bytes == ahead.traffic.unique_bytes
    assert loop.issue.rounds > ahead.issue.rounds, "Triton pipelines no while loop"


@pytest.mark.slow
def test_a_loop_without_an_end_is_not_predicted() -> None:
    (reason,) = inspected(changed((LOOP, "    while k > 0:\n"))).unpredicted(PROBLEM, CASES)
    assert "gemm_kernel was not counted: " in reason
