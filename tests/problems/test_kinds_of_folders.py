"""What GPU MODE's folders contain beyond the simplest: found by loading real ones, written here in the same format."""

import resource
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.problems import admission, shrink, trees
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.workers.worker_pool import WorkerPool

CHECK = """
import torch


def check_implementation(data, output):
    right = ref_kernel(data)
    right, output = (right, output) if isinstance(right, torch.Tensor) else (right[0], output[0])
    good = torch.allclose(output.float(), right.float(), rtol=1e-5, atol=1e-5)
    return good, "" if good else "differs"


"""
SUM = """
def generate_input(size: int, seed: int):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(size, generator=gen, device="cuda"), torch.empty(size, device="cuda")


def ref_kernel(data):
    return torch.cumsum(data[0].double(), 0)
"""
TAIL = """
def generate_input(size: int, seed: int):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    x = torch.randint(0, 9, (size,), generator=gen, device="cuda")
    return x, torch.zeros_like(x)


def ref_kernel(data):
    data[1][...] = 0
    data[1][4:] = data[0][4:]
    return data[1]
"""
SORT = """
def generate_input(size: int, seed: int):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(size, generator=gen, device="cuda") + seed


def ref_kernel(data):
    return torch.sort(data)[0]
"""
LARGEST = """
def generate_input(rows: int, seed: int):
    return torch.randn(rows, 32, generator=torch.Generator().manual_seed(seed)).cuda()


def ref_kernel(data):
    return torch.max(data, dim=1)
"""
PRODUCT = """
def generate_input(m: int, k: int, seed: int):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return tuple(torch.randn(m, k, generator=gen, device="cuda") for _ in range(2))


def ref_kernel(data):
    return (data[0] * data[1]).sum(1)
"""
HEADS = """
def generate_input(heads: int, groups: int, width: int, seed: int):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return tuple(torch.randn(n, width, generator=gen, device="cuda") for n in (heads, groups))


def ref_kernel(data):
    query, key = data
    return query * key.repeat_interleave(query.shape[0] // key.shape[0], 0)
"""


PAIR = """
def check_implementation(data, output):
    right = ref_kernel(data)
    good = torch.allclose(output[0], right[0]) and torch.allclose(output[1], right[1]) and output[2:] == right[2:]
    return good, "" if good else "differs"


def generate_input(size: int, seed: int):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(size, 8, generator=gen, device="cuda"), torch.empty(size, 8, device="cuda")


def ref_kernel(data):
    return data[0] * 2, data[0].sum(1), 3.0
"""
TENSORS = PAIR.replace(", 3.0", "")


def folder(place: Path, reference: str, *cases: dict[str, Any]) -> Path:
    """Write a task folder. The last case is its benchmark."""
    listed = [{**case, "seed": 4242 + number} for number, case in enumerate(cases)]
    task = {"description": "", "tests": listed[:-1], "benchmarks": listed[-1:]}
    place.mkdir()
    (place / "task.yml").write_text(yaml.safe_dump(task))
    (place / "reference.py").write_text(CHECK + reference)
    return place


def checked(problem: Problem, body: str, pool: WorkerPool) -> Evaluation:
    source = f"import torch\n\n\ndef custom_kernel(data):\n    {body}\n"
    evaluator, kernel = Evaluator(problem, "auto", pool.harness, pool), Kernel(name="k", language="cpp", source=source)
    return evaluator.check(kernel, evaluator.compile(kernel))


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("data[1][...] = torch.cumsum(data[0].double(), 0); return data[1]", Verdict.OK),
        ("return torch.cumsum(data[0].double(), 0).float()", Verdict.OK),
        ("return torch.cumsum(data[0].double(), 0)", Verdict.OK),
        ("return torch.cumsum(data[0].double(), 0).bfloat16()", Verdict.INCORRECT),
        ("data[1][...] = torch.cumsum(data[0] + 0.1, 0); return data[1]", Verdict.INCORRECT),
        ("data[0][...] = torch.cumsum(data[0].double(), 0); return data[0]", Verdict.INCORRECT),
    ],
)
def test_a_buffer_that_the_reference_ignores_may_be_the_output(
    body: str, verdict: Verdict, tmp_path: Path, pool: WorkerPool
) -> None:
    problem = problems.load(folder(tmp_path / "sum", SUM, {"size": 256}, {"size": 1024}))
    assert (problem.writes, problem.updates) == ((1,), ())
    assert checked(problem, body, pool).verdict is verdict


def test_an_input_without_effect_in_the_smallest_case_is_no_output_buffer(tmp_path: Path) -> None:
    problem = problems.load(folder(tmp_path / "tail", TAIL, {"size": 4}, {"size": 100}, {"size": 1024}))
    assert (problem.writes, problem.updates) == ((1,), ())


VIEW = """
def generate_input(rows: int, seed: int):
    return (torch.randn(rows, 8, generator=torch.Generator().manual_seed(seed)),)


def ref_kernel(data):
    return {view}
"""
VIEWS = ("(data[0] * 2)[:, :3]", "(data[0] * 2)[:, -1]", "(data[0] * 2)[1:]", "data[0].sum(1, True).expand(-1, 8)")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("return {view}", Verdict.OK),
        ("return ({view}).clone(memory_format=torch.contiguous_format)", Verdict.OK),
        ("return ({view}).clone(memory_format=torch.contiguous_format) + 1", Verdict.INCORRECT),
        ("return torch.empty(3, *({view}).shape).copy_({view})[1]", Verdict.INCORRECT),
    ],
    ids=["as the reference", "a tensor of its own", "wrong", "a part of something else"],
)
def test_a_reference_may_return_a_part_of_something_larger(
    view: str, body: str, verdict: Verdict, tmp_path: Path, pool: WorkerPool
) -> None:
    problem = problems.load(folder(tmp_path / "view", VIEW.replace("{view}", view), {"rows": 5}, {"rows": 64}))
    found = checked(problem, body.replace("{view}", view), pool)
    assert found.verdict is verdict, found


@pytest.mark.parametrize(
    ("reference", "body", "verdict"),
    [
        (PAIR, "return data[0] * 2, data[0].sum(1), 3.0", Verdict.OK),
        (PAIR, "return data[0] * 2, data[0].sum(1), 4.0", Verdict.INCORRECT),
        (TENSORS, "data[1][...] = data[0] * 2; return data[1], data[0].sum(1)", Verdict.OK),
        (TENSORS, "data[1][...] = data[0] * 2; return data[1], data[0].sum(1) + 1", Verdict.INCORRECT),
    ],
    ids=["with a number", "a wrong number", "a buffer and a new tensor", "a wrong new tensor"],
)
def test_every_part_of_an_output_is_compared(
    reference: str, body: str, verdict: Verdict, tmp_path: Path, pool: WorkerPool
) -> None:
    problem = problems.load(folder(tmp_path / "pair", reference, {"size": 256}, {"size": 1024}))
    assert checked(problem, body, pool).verdict is verdict


@pytest.mark.parametrize(("policy", "verdict"), [("", Verdict.INCORRECT), ("policy: {aliases: true}", Verdict.OK)])
def test_an_output_may_be_an_inputs_memory_if_the_policy_says_so(
    policy: str, verdict: Verdict, tmp_path: Path, pool: WorkerPool
) -> None:
    place = folder(tmp_path / "same", SORT.replace("torch.sort(data)[0]", "data * 1"), {"size": 256}, {"size": 1024})
    (place / "lab.yml").write_text(f"{problems.assumptions.lab(problems.load(place))}{policy}\n")
    assert checked(problems.load(place), "return data", pool).verdict is verdict


def test_a_static_input_may_be_prepared_once_per_case(tmp_path: Path, pool: WorkerPool) -> None:
    place = folder(tmp_path / "weights", PRODUCT, {"m": 64, "k": 32}, {"m": 128, "k": 32})
    kept = "vars(custom_kernel).setdefault(str(data[1].shape), data[1].clone())"
    body, lab = f"return (data[0] * {kept}).sum(1)", problems.assumptions.lab(problems.load(place))
    for more, verdict in (("", Verdict.INCORRECT), ("policy: {static: [1]}\nstress: [{0: 4.0}]\n", Verdict.OK)):
        (place / "lab.yml").write_text(lab + more)
        assert checked(problems.load(place), body, pool).verdict is verdict


def test_seeds_are_small_enough_for_generators_that_add_them_to_their_values(tmp_path: Path) -> None:
    place = folder(tmp_path / "sort", SORT, {"size": 256}, {"size": 1024})
    assert admission.fault(place) == ""
    lab = problems.assumptions.lab(problems.load(place))
    (place / "lab.yml").write_text(lab)
    assert admission.fault(place) == ""
    (place / "lab.yml").write_text(lab.replace("seed_bits: 14", ""))  # then they have 31 bits
    assert "fails its admission" in admission.fault(place)
    (place / "lab.yml").write_text(lab.replace("seed_bits: 14", "seed_bits: 3"))
    assert "seed_bits: 3 is no number from 14 to 31" in admission.fault(place)


def test_a_listed_case_is_never_a_held_out_one(tmp_path: Path) -> None:
    problem = problems.load(folder(tmp_path / "product", PRODUCT, {"m": 4, "k": 8}, {"m": 8, "k": 8}))
    assert problem.profile("full").held_out == problem.profile("cpu").held_out == ()


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("return torch.max(data, dim=1)", Verdict.OK),
        ("return tuple(torch.max(data, dim=1))", Verdict.OK),
        ("return list(torch.max(data, dim=1))", Verdict.INCORRECT),
        ("return torch.min(data, dim=1)", Verdict.INCORRECT),
    ],
)
def test_a_named_tuple_is_a_tuple(body: str, verdict: Verdict, tmp_path: Path, pool: WorkerPool) -> None:
    problem = problems.load(folder(tmp_path / "largest", LARGEST, {"rows": 64}, {"rows": 256}))
    assert checked(problem, body, pool).verdict is verdict


LAZY = """
    class Later(tuple):
        def __iter__(self):
            return iter(torch.max(data, dim=1))
    return Later((torch.zeros(data.shape[0]), torch.zeros(data.shape[0], dtype=torch.int64)))
"""


def test_a_tuple_does_not_compute_when_it_is_read(tmp_path: Path, pool: WorkerPool) -> None:
    problem = problems.load(folder(tmp_path / "largest", LARGEST, {"rows": 64}, {"rows": 256}))
    assert checked(problem, LAZY.strip(), pool).verdict is Verdict.INCORRECT


def test_sizes_stay_multiples_of_what_all_listed_ones_are_multiples_of(tmp_path: Path) -> None:
    cases = [{"m": m, "k": k} for m, k in ((64, 7168), (96, 1536), (128, 4608), (1024, 7168))]
    problem = problems.load(folder(tmp_path / "product", PRODUCT, *cases))
    cpu = problem.profile("cpu")
    sizes = [case.sizes for case in (*cpu.tests, *cpu.benchmarks, *cpu.held_out)]
    assert all(case["k"] % 256 == 0 and case["m"] % 32 == 0 for case in sizes)
    assert max(case.whole("k") for case in cpu.tests) < 7168


def test_one_value_may_be_halved_as_far_as_the_reference_allows() -> None:
    cases = [Case(sizes={"m": 1024, "k": 512}, seed=1), Case(sizes={"m": 1024, "k": 768}, seed=2)]
    assert shrink.grains(cases, 4) == {"m": 4, "k": 256}


def test_sizes_of_benchmarks_fit_each_other_too(tmp_path: Path) -> None:
    cases = [{"heads": h, "groups": 8, "width": 64} for h in (8, 32)]
    problem = problems.load(folder(tmp_path / "heads", HEADS, *cases))
    assert all(case.whole("heads") >= 8 for case in problem.profile("cpu").benchmarks)


def test_a_full_disk_leaves_no_half_of_what_was_found_out(tmp_path: Path) -> None:
    place = folder(tmp_path / "largest", LARGEST, {"rows": 8}, {"rows": 16})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            problems.load(place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert problems.load(place).profile("cpu").tests


def test_trees_with_other_numbers_of_tensors_differ() -> None:
    one, two = torch.zeros(2), torch.zeros(2)
    assert trees.same((one, two), [two, one]) and not trees.same((one, two), one)
