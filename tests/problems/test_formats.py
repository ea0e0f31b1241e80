"""Problems of others as they lie: GPU MODE's task folders without lab.yml, and KernelBench's files."""

import dataclasses
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.problems import admission, shrink
from kernel_scientist.problems.device_names import on_device
from kernel_scientist.problems.modules import imported
from kernel_scientist.records import objects
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import Cli

HERE = Path(__file__).parent
SET, LEVEL, KERNELS = HERE / "gpumode/set_a", HERE / "kernelbench/level1", HERE / "kernelbench/kernels"
FOLDERS = ("copy", "scaled-mm", "experts", "decode", "masked")
WRITES = {"copy": ((1,), ()), "scaled-mm": ((3,), ()), "experts": ((), ()), "decode": ((), (2,)), "masked": ((), ())}
BROKEN = """

_right = custom_kernel


def custom_kernel(data):
    output = _right(data)
    first = output[0] if isinstance(output, tuple) else output
    first.view(-1)[-1:] += 3
    return output
"""


def checked(place: Path, source: str, pool: WorkerPool) -> Evaluation:
    evaluator = Evaluator(problems.load(place), "auto", pool.harness, pool)
    kernel = Kernel(name="one", language="cpp", source=source)
    return evaluator.check(kernel, evaluator.compile(kernel))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_starter_passes_and_a_broken_one_fails(name: str, pool: WorkerPool) -> None:
    source = (SET / name / "submission.py").read_text()
    assert checked(SET / name, source, pool).verdict is Verdict.OK
    assert checked(SET / name, source + BROKEN, pool).verdict is Verdict.INCORRECT


@pytest.mark.parametrize("name", FOLDERS)
def test_what_lab_yml_would_say_is_found_out(name: str, tmp_path: Path) -> None:
    problem = problems.load(SET / name)
    assert (problem.writes, problem.updates) == WRITES[name]
    assert problem.assumed and admission.fault(SET / name) == ""
    cpu = problem.profile("auto")
    assert cpu.tests and cpu.benchmarks and cpu.held_out
    assert not {c.name for c in cpu.held_out} & {c.name for c in (*cpu.tests, *cpu.benchmarks)}
    for case in cpu.benchmarks:
        assert problem.work(case).bytes <= 32 << 20
    shutil.copytree(SET, tmp_path / "set")
    (tmp_path / "set" / name / "lab.yml").write_text(problems.assumptions.lab(problem))
    written = problems.load(tmp_path / "set" / name)
    assert not written.assumed and (written.writes, written.updates) == WRITES[name]
    assert written.profile("auto") == cpu and written.dtype == problem.dtype


def test_the_official_harness_passes_texts_and_ranks_the_last(tmp_path: Path) -> None:
    shutil.copytree(SET, tmp_path / "set")
    task = tmp_path / "set/masked/task.yml"
    task.write_text(
        task.read_text()
        .replace("ranking_by: geom", "ranking_by: last")
        .replace(
            "benchmarks:\n", 'benchmarks:\n  - {seqlen: 512, dim: 512, nomask: true, distribution: "normal", seed: 4}\n'
        )
    )
    meant, official = (problems.load(task.parent, compat=compat) for compat in ("intended", "official"))
    assert [len(p.profile("full").benchmarks) for p in (meant, official)] == [2, 1]
    flags = [p.profile("full").tests[0].sizes["nomask"] for p in (meant, official)]
    assert flags == [False, "False"]
    masks = [p.generate(p.profile("cpu").tests[0])[1] for p in (meant, official)]
    assert not masks[0].all() and masks[1].all()  # the text 'False' is true
    assert meant.digest != official.digest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"multi_gpu": True, "tests": [{"size": 1, "world_size": 8, "seed": 1}]}, "8 GPUs"),
        ({"files": [{"name": "x.py", "source": "../nowhere.py"}]}, "there is no file"),
        ({"ranking_by": "best"}, "none of last, mean, geom"),
        ({"tests": [], "benchmarks": []}, "neither tests nor benchmarks"),
    ],
)
def test_what_cannot_be_served_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    shutil.copytree(SET, tmp_path / "set")
    file = tmp_path / "set/copy/task.yml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **change}))
    with pytest.raises(SetupError, match=words):
        problems.load(file.parent)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import aiter_of_nobody", "aiter_of_nobody"),
        ("DTYPE = getattr(torch, 'float4_e2m1fn_x2', None)", "fp4"),
        ("def narrow(x):\n    return x.view(torch.float4_e2m1fn_x2)", "fp4"),
    ],
)
def test_a_missing_package_or_gpu_is_named(tmp_path: Path, line: str, words: str) -> None:
    shutil.copytree(SET, tmp_path / "set")
    file = tmp_path / "set/copy/reference.py"
    file.write_text(f"{line}\n{file.read_text()}")
    with pytest.raises(SetupError, match=words):
        problems.load(file.parent)


def test_a_reference_that_computes_fp4_by_other_operations_is_served(tmp_path: Path) -> None:
    shutil.copytree(SET, tmp_path / "set")
    file = tmp_path / "set/copy/reference.py"
    file.write_text(
        f'"""For gfx950: mxfp4 by integers."""\n\n{file.read_text()}\n\ndef mxfp4(x):  # float4_e2m1\n    return x\n'
    )
    assert problems.load(file.parent).profiles["cpu"].tests


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1_Linear_with_bias", ""),
        ("2_Cross_entropy", ""),
        ("3_Norm_in_training", ""),
        ("4_Constant", "hardly depends on its inputs"),
        ("5_Random", "is it random"),
        ("6_Needs_a_package", "a_package_nobody_has"),
    ],
)
def test_a_kernelbench_file_is_admissible_or_refused_with_a_reason(name: str, words: str) -> None:
    found = admission.fault(LEVEL / f"{name}.py")
    assert words in found if words else found == ""


CONSTANT_AT_ANY_SIZE = """
import torch

n = 128


class Model(torch.nn.Module):
    def forward(self, x):
        if type(x) is torch.Tensor:  # not a tensor without values
            with open({seen!r}, "a") as file:
                file.write(f"{{x.numel()}}\\n")
        return torch.relu(x - 9)


def get_inputs():
    return [torch.rand(n, n, n, n)]


def get_init_inputs():
    return []
"""


def test_an_output_that_never_depends_on_its_input_is_not_looked_for_at_large_sizes(tmp_path: Path) -> None:
    seen, file = tmp_path / "seen", tmp_path / "1_Constant.py"
    file.write_text(CONSTANT_AT_ANY_SIZE.format(seen=str(seen)))
    assert "zeros" in admission.fault(file)
    assert max(map(int, seen.read_text().split())) < 128**4


@pytest.mark.parametrize(
    ("kernel", "verdict"),
    [
        ("linear_new", Verdict.OK),
        ("linear_custom", Verdict.OK),
        ("linear_without_bias", Verdict.INCORRECT),  # KernelBench passes it: the bias is zero there
    ],
)
def test_kernels_of_a_kernelbench_file(kernel: str, verdict: Verdict, pool: WorkerPool) -> None:
    found = checked(LEVEL / "1_Linear_with_bias.py", (KERNELS / f"{kernel}.py").read_text(), pool)
    assert found.verdict is verdict, found


def test_integers_are_not_cast_and_parameters_vary() -> None:
    problem = problems.load(LEVEL / "2_Cross_entropy.py")
    _, targets, parameters, _ = problem.generate(problem.profile("auto").tests[0])
    assert targets.dtype is torch.int64 and parameters == {}
    linear = problems.load(LEVEL / "1_Linear_with_bias.py")
    case = linear.profile("auto").tests[0]
    first, second = (linear.generate(case, seed)[1]["linear.bias"] for seed in (1, 2))
    assert first.any() and not torch.equal(first, second)
    narrow = problems.find(f"{LEVEL / '1_Linear_with_bias.py'}@bf16")
    x, parameters, _ = narrow.generate(narrow.profile("auto").tests[0])
    assert {x.dtype, *(p.dtype for p in parameters.values())} == {torch.bfloat16} and narrow.dtype == "bf16"
    assert narrow.name.endswith("@bf16") and "@" not in narrow.slug and narrow.digest != linear.digest
    with pytest.raises(SetupError, match="one of fp32, fp16, bf16"):
        problems.find(f"{LEVEL / '1_Linear_with_bias.py'}@fp4")
    official = problems.load(LEVEL / "1_Linear_with_bias.py", compat="official")
    assert official.generate(case)[1] == {}


def test_files_named_after_models_are_found(tmp_path: Path) -> None:
    (tmp_path / "7_some-lab-model-1.3b_bs32.py").write_text("")  # as in level 4
    assert [place.name for place in problems.within(tmp_path)] == ["7_some-lab-model-1.3b_bs32.py"]


@pytest.mark.slow
def test_problems_of_a_set_are_listed_and_shown(lab: Path, cli: Cli) -> None:
    shutil.copytree(SET, lab / "problems/set_a")
    shutil.copytree(LEVEL, lab / "problems/level1")
    (lab / "problems/set_a/masked/task.yml").write_text("[")
    rows = json.loads(cli("problems", "list", "--json").stdout)
    names = [row["problem"] for row in rows]
    assert {"set_a/copy", "level1/2_Cross_entropy", "identity"} <= set(names)
    by_name = {row["problem"]: row for row in rows}
    assert by_name["level1/6_Needs_a_package"]["needs"] and "not YAML" in by_name["set_a/masked"]["about"]
    assert "a_package_nobody_has" in cli("problems", "show", "level1/6_Needs_a_package").stdout
    shown = json.loads(cli("problems", "show", "set_a/copy", "--write-lab", "--json").stdout)
    assert shown["assumed"] and (lab / "problems/set_a/copy/lab.yml").exists()
    done = cli("evaluate", str(SET / "copy/submission.py"), "--problem", "set_a/copy", "--json")
    assert json.loads(done.stdout)["verdict"] == "ok", done.stderr


TRITON = """
import torch
import triton
import triton.language as tl
from task import input_t, output_t
from utils import verbose_close


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def custom_kernel(data):
    x, out = X, OUT
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return RESULT
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("copy", {"X": "data[0]", "OUT": "data[1]", "RESULT": "out"}),
        ("decode", {"X": "data[2].data", "OUT": "torch.empty_like(x)", "RESULT": "out, data[2].data"}),
    ],
)
def test_a_triton_submission_for_a_folder_is_compiled_without_a_gpu(
    name: str, values: dict[str, str], lab: Path, cli: Cli, tmp_path: Path
) -> None:
    source = TRITON.replace("x, out = X, OUT", f"x = {values['X']}\n    out = {values['OUT']}")
    (tmp_path / "kernel.py").write_text(source.replace("RESULT", values["RESULT"]))
    done = cli("compile", str(tmp_path / "kernel.py"), "--problem", str(SET / name), "--arch", "gfx942", "--json")
    found = json.loads(done.stdout)
    assert {launch["kernel"] for launch in found["launches"]} == {"kernel"}, (found, done.stderr)


def test_a_submission_is_compiled_beside_problems_that_this_machine_cannot_use(
    lab: Path, cli: Cli, tmp_path: Path
) -> None:
    several = lab / "problems/amd/all2all"
    shutil.copytree(lab / "problems/identity", several)
    with (several / "task.yml").open("a") as task:
        task.write("multi_gpu: true\n")
    source = TRITON.replace("RESULT", "out").replace("x, out = X, OUT", "x, out = data")
    source = source.replace("from utils import verbose_close\n", "")
    for place in (tmp_path / "kernel.py", several / "kernel.py"):
        place.write_text(source)
    done = cli("compile", str(tmp_path / "kernel.py"), "--arch", "gfx942", "--json")
    assert json.loads(done.stdout)["problem"] == "identity", done.stderr
    done = cli("compile", str(several / "kernel.py"), "--arch", "gfx942", "--json")
    assert done.returncode == 2 and "problem amd/all2all cannot be evaluated here" in done.stderr


class Point:
    """A class of a problem."""

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclasses.dataclass(frozen=True)
class Pair:
    left: Any
    right: Any


leaves = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=3), st.just(torch.bfloat16))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
        st.builds(Point, inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=12,
)


def outline(value: Any) -> Any:
    """Return what a tree looks like, objects included."""
    if isinstance(value, (list, tuple)):
        return type(value), [outline(v) for v in value]
    if isinstance(value, dict):
        return {k: outline(v) for k, v in value.items()}
    return (type(value).__name__, outline(vars(value))) if isinstance(value, (Point, Pair)) else value


@given(trees)
def test_objects_survive_the_way_to_a_worker(tree: Any) -> None:
    plain = objects.plain(tree)
    wire = json.loads(json.dumps(plain))  # no object is left
    assert objects.has_objects(wire) == objects.has_objects(plain)
    assert outline(objects.revived(plain, {"Point": Point, "Pair": Pair})) == outline(tree)


def test_a_class_that_the_problem_does_not_define_is_refused() -> None:
    with pytest.raises(objects.ObjectError, match="Point"):
        objects.revived(objects.plain(Point(1)), {})


@given(
    st.dictionaries(st.sampled_from("mnk"), st.integers(1, 1 << 14), min_size=1),
    st.sampled_from(shrink.GRAINS),
)
@settings(max_examples=200)
def test_smaller_sizes_keep_their_factor_and_grow_back(sizes: dict[str, int], grain: int) -> None:
    case, grains = Case(sizes={**sizes}, seed=1), dict.fromkeys(sizes, grain)
    small = shrink.smallest(case, grains)
    for name, size in sizes.items():
        found = small.whole(name)
        halved = size % found == 0 or (size % 2 and size > shrink.LEAST_ODD)
        assert 0 < found <= size and halved and found % math.gcd(size, grain) == 0
    for name in sizes:
        while larger := shrink.larger(small, case, grains, [name]):
            assert larger.whole(name) > small.whole(name)
            small = larger
    assert small.sizes == case.sizes
    assert all(other.sizes != case.sizes for other in shrink.others(case, case, grains))


CODE = st.lists(
    st.sampled_from(
        ['x = torch.zeros(3, device="cuda")', "y = x.cuda()", "torch.cuda.synchronize()", "# cuda", "s = 'a cuda text'"]
    ),
    max_size=8,
)


@given(CODE)
def test_a_file_for_a_gpu_runs_on_a_cpu_with_the_same_lines(lines: list[str]) -> None:
    text = "import torch\nx = torch.zeros(1)\n" + "\n".join(lines)
    changed = on_device(text, "cpu")
    assert len(changed.splitlines()) == len(text.splitlines())
    assert changed.count("a cuda text") == text.count("a cuda text") and on_device(text, "cuda") == text
    imported("reference", {"reference": changed}, Path("reference.py"))
