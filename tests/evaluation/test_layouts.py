"""Inputs that are views: kernels get them as the problem made them, and one that takes them for contiguous is wrong."""

from pathlib import Path

import pytest
import torch
import yaml

from kernel_scientist import problems
from kernel_scientist.campaign import describing
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.problems import admission, counted
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import dedent

REFERENCE_FILE = """
import torch

def base(kind, n, gen):
    if kind == "transposed":
        return torch.rand(n, n + 3, generator=gen).t()
    if kind == "columns":
        return torch.rand(n + 3, 2 * n, generator=gen)[:, ::2]
    if kind == "offset":
        return torch.rand(n + 4, n, generator=gen)[1:]
    return torch.rand(n + 3, 1, generator=gen).expand(n + 3, n)


def generate_input(kind: str, n: int, seed: int):
    gen = torch.Generator().manual_seed(seed)
    if kind == "shared":  # two inputs and the buffer lie in one storage, column beside column
        flat = torch.rand(n + 3, n, 3, generator=gen)
        return flat[:, :, 0], flat[:, :, 1], [flat[:, :, 2]]
    x = base(kind, n, gen)
    return x, x, [torch.empty(n + 3, 2 * n)[:, 1::2]]


def ref_kernel(data):
    x, y, (out,) = data
    return out.copy_(2 * x + y)


def check_implementation(data, output):
    right = ref_kernel(data)
    good = output.shape == right.shape and torch.equal(output, right)
    return good, "" if good else "elements differ"
"""
KINDS = {  # strides and offset of x, those of out
    "transposed": "(1, 23), 0, (40, 2), 1",
    "columns": "(40, 2), 0, (40, 2), 1",
    "offset": "(20, 1), 20, (40, 2), 1",
    "expanded": "(1, 0), 0, (40, 2), 1",
    "shared": "(60, 3), 0, (60, 3), 2",
}
HONEST = """
import torch

KNOWN = %s

def custom_kernel(data):
    x, y, (out,) = data
    owners = [one.untyped_storage().data_ptr() for one in (x, y, out)]
    found = x.stride(), x.storage_offset(), out.stride(), out.storage_offset()
    assert found == KNOWN, found
    assert owners[0] == owners[1] and (owners[0] == owners[2]) == (y.storage_offset() == 1), owners
    %s
    return out
"""
RIGHT = "out.copy_(2 * x + y)"


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory, pool: WorkerPool) -> Evaluator:
    cases = [{"kind": kind, "n": 20} for kind in KINDS]
    return Evaluator(loaded(tmp_path_factory.mktemp("views"), REFERENCE_FILE, cases), "cpu", pool.harness, pool)


def loaded(folder: Path, reference: str, cases: list[dict[str, object]], **lab: object) -> problems.Problem:
    (folder / "reference.py").write_text(reference)
    (folder / "task.yml").write_text(yaml.safe_dump({"description": "Views.", "tests": cases, "benchmarks": cases}))
    (folder / "lab.yml").write_text(yaml.safe_dump({"writes": [2], "profiles": {"cpu": {}}, **lab}))
    return problems.load(folder)


def evaluated(evaluator: Evaluator, kind: str, body: str, is_timed: bool = False) -> Evaluation:
    kernel = Kernel(name="k", language="cpp", source=dedent(HONEST % (KINDS[kind], body)))
    cases = [case for case in evaluator.problem.profile("full").tests if case.sizes["kind"] == kind]
    compiled = evaluator.compile(kernel)
    if is_timed:
        return evaluator.time(kernel, compiled, [evaluator.reference()], cases=cases)
    return evaluator.check(kernel, compiled, cases)


@pytest.mark.parametrize("kind", KINDS)
def test_views_arrive_as_they_are(evaluator: Evaluator, kind: str) -> None:
    """In checks and in timed rows, whose inputs are shifted and edited copies."""
    found = evaluated(evaluator, kind, RIGHT)
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["columns", "shared"])
def test_views_arrive_as_they_are_in_timed_rows(evaluator: Evaluator, kind: str) -> None:
    found = evaluated(evaluator, kind, RIGHT, is_timed=True)
    assert found.verdict is Verdict.OK and found.speedup_over(REFERENCE), (found.reason, found.evidence)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "offset"])
def test_who_takes_a_view_for_contiguous_is_incorrect(evaluator: Evaluator, kind: str) -> None:
    """It reads other elements, among them those of the gaps."""
    dense = "torch.as_strided(x, x.shape, (x.shape[1], 1), x.storage_offset())"
    body = "out[:] = 3 * x[0]" if kind == "expanded" else f"x = {dense}\n    {RIGHT}"
    found = evaluated(evaluator, kind, body)
    assert found.verdict is Verdict.INCORRECT and "elements differ" in found.reason, (found.reason, found.evidence)


def test_who_ignores_an_offset_is_incorrect(evaluator: Evaluator) -> None:
    found = evaluated(evaluator, "offset", f"x = torch.as_strided(x, x.shape, x.stride(), 0)\n    {RIGHT}")
    assert found.verdict is Verdict.INCORRECT and "elements differ" in found.reason, (found.reason, found.evidence)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("columns", "torch.as_strided(out, out.shape, out.stride(), 0).zero_()"),  # the gaps of its buffer
        ("shared", "x.add_(1)"),
        ("shared", "y[3, 3] = -1"),
    ],
)
def test_who_writes_between_the_elements_of_its_buffer_is_noticed(evaluator: Evaluator, kind: str, body: str) -> None:
    """Also where an input that may only be read lies in the same pages as the buffer."""
    found = evaluated(evaluator, kind, f"{RIGHT}\n    {body}")
    assert found.verdict is Verdict.INCORRECT and "outside its buffers" in found.reason, (found.reason, found.evidence)


def test_a_read_only_input_beside_the_buffer_is_not_returned(tmp_path: Path, pool: WorkerPool) -> None:
    """Its values are right, and it lies in the storage of the buffer."""
    copying = REFERENCE_FILE.replace("2 * x + y", "x")
    evaluator = Evaluator(loaded(tmp_path, copying, [{"kind": "shared", "n": 20}]), "cpu", pool.harness, pool)
    assert evaluated(evaluator, "shared", "out.copy_(x)").verdict is Verdict.OK
    found = evaluated(evaluator, "shared", "out.copy_(x)\n    out = x")
    assert found.verdict is Verdict.INCORRECT and "the memory of its output is that of input 0" in found.reason


def test_read_only_views_stay_protected(evaluator: Evaluator) -> None:
    found = evaluated(evaluator, "transposed", f"{RIGHT}\n    x[0, 0] += 1")
    assert found.verdict is Verdict.INCORRECT and "inputs 0 and 1, which are read-only" in found.reason, found.reason


def test_memory_that_inputs_share_is_counted_once(evaluator: Evaluator) -> None:
    """x twice, and the output; of an expanded input one column."""
    for case in evaluator.problem.profile("full").tests:
        inputs = {"expanded": 23, "shared": 2 * 23 * 20}.get(str(case.sizes["kind"]), 23 * 20)
        assert counted.run(evaluator.problem, case)[1] == 4 * (inputs + 23 * 20), case.name


LISTED = """
import torch

def generate_input(n: int, seed: int):
    x = torch.rand(n, generator=torch.Generator().manual_seed(seed))
    return [x, torch.empty(n)]


def ref_kernel(data):
    return data[1].copy_(2 * data[0])


def check_implementation(data, output):
    return torch.equal(output, 2 * data[0]), "elements differ"
"""


def test_inputs_in_a_list_have_positions_as_those_in_a_tuple(tmp_path: Path, pool: WorkerPool) -> None:
    evaluator = Evaluator(loaded(tmp_path, LISTED, [{"n": 100}], writes=[1]), "cpu", pool.harness, pool)
    for line, verdict in (("", Verdict.OK), ("data[0][0] += 1", Verdict.INCORRECT)):
        source = f"def custom_kernel(data):\n    data[1].copy_(2 * data[0])\n    {line}\n    return data[1]\n"
        kernel = Kernel(name="k", language="cpp", source=source)
        found = evaluator.check(kernel, evaluator.compile(kernel))
        assert found.verdict is verdict, (found.reason, found.evidence)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("torch.empty(n)", "torch.eye(n).to_sparse()"), "input 1: a tensor of layout sparse_coo cannot be sent"),
        (("[x, torch", "[{1: x}, torch"), "input 0: a dictionary with the key 1, which is no text"),
        (("[x, torch", "[{0: x}, torch"), "input 0: a dictionary with the key 0, which is no text"),
        (("torch.empty(n)", "torch.empty(1).expand(n)"), "input 1 may be written, and several of its elements share"),
        (("[x, torch", "[x.to(torch.complex64).conj(), torch"), "input 0: a lazily conjugated tensor"),
        (("[x, torch", "[x.requires_grad_(), torch"), "input 0: a tensor that requires a gradient"),
        (("torch.empty(n)", "torch.empty(n, device='cuda')"), "input 0: a tensor on cpu, while kernels get all on the"),
        (("generator=", "device='cuda', generator="), "input 1: a tensor on cpu, while kernels get all on the GPU"),
    ],
)
def test_inputs_that_cannot_be_sent_are_refused_before_any_kernel_runs(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    problem = loaded(tmp_path, LISTED.replace(*change), [{"n": 10}], writes=[1])
    with pytest.raises(SetupError, match=f"^problem .* cannot be evaluated: {words}"):
        admission.require(problem, "full")
    assert words in describing.described(str(tmp_path)).unusable, "`problems show` says it"


def test_inputs_on_a_gpu_are_sent_where_there_is_none(tmp_path: Path) -> None:
    there = LISTED.replace("generator=torch.Generator()", "device='cuda', generator=torch.Generator(device='cuda')")
    asks = LISTED.replace("torch.empty(n)", "torch.empty(n, device='cuda' if torch.cuda.is_available() else 'cpu')")
    fails = LISTED.replace("import torch", "import torch\ntorch.ones(2, device='cuda').tolist()", 1)
    default = LISTED.replace("import torch", "import torch\ntorch.set_default_device('cuda')", 1)
    for number, text in enumerate((there, asks, fails, default)):
        folder = tmp_path / str(number)
        folder.mkdir()
        problem = loaded(folder, text.replace("torch.empty(n)", "torch.empty_like(x)"), [{"n": 10}], writes=[1])
        admission.require_sent(problem)
        assert torch.empty(0).device.type == "cpu" and torch.Generator.__name__ == "Generator"
