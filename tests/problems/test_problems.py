"""Task folders: ours load, theirs load, wrong ones say what is wrong."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist import problems
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.problems import load
from kernel_scientist.problems.expression import evaluate
from kernel_scientist.records.errors import SetupError
from tests.conftest import ROOT, dedent

NAMES = problems.names()


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_satisfies_its_own_check_and_rubbish_does_not(name: str) -> None:
    problem = load(ROOT / "problems" / name)
    for case in problem.profile("cpu").tests:
        data = problem.generate(case)
        right = problem.reference(problem.generate(case))
        assert problem.check(data, right)[0]
        good, why = problem.check(data, torch.full_like(right, float("nan")))
        assert not good and "differ" in why
        wrong = right.clone()
        wrong.view(-1)[-1] += 3
        assert not problem.check(data, wrong)[0]
        assert not problem.check(data, torch.cat([right.reshape(-1), right.reshape(-1)]))[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_has_tests_benchmarks_and_held_out_cases_nobody_times(name: str) -> None:
    problem = load(ROOT / "problems" / name)
    assert set(problem.profiles) == {"full", "cpu"}
    for profile in problem.profiles.values():
        assert profile.tests and profile.benchmarks and profile.held_out
        assert not {c.name for c in profile.held_out} & {c.name for c in (*profile.tests, *profile.benchmarks)}
        for case in profile.benchmarks:
            assert problem.work(case).bytes > 0


def test_the_fp8_gemm_is_the_challenge_s() -> None:
    problem = load(ROOT / "problems" / "fp8-blockwise-gemm")
    full = problem.profile("full")
    assert (len(full.tests), len(full.benchmarks)) == (11, 18)
    shapes = {(c.sizes["m"], c.sizes["n"], c.sizes["k"]): c for c in full.benchmarks}
    # the organisers' speed of light in us, from their task text
    light = {(1024, 1536, 7168): 8.63, (1024, 4608, 7168): 25.89, (6144, 1536, 7168): 51.78}
    light |= {(6144, 4608, 7168): 155.30, (1024, 7168, 256): 3.17, (6144, 7168, 256): 17.27}
    for shape, us in light.items():
        assert roofline_us(problem.work(shapes[shape]), MI300X) == pytest.approx(us, rel=0.005)
    a, b, a_scale, b_scale, c = problem.generate(problem.profile("cpu").tests[1])
    assert a.dtype == b.dtype == torch.float8_e4m3fnuz and c.dtype == torch.bfloat16
    assert a.stride() == (1, 64) and b.stride() == (1, 576) and b_scale.shape == (5, 2) and a_scale.stride() == (1, 64)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_depend_on_the_seed_alone(name: str) -> None:
    problem = load(ROOT / "problems" / name)
    case = problem.profile("cpu").tests[-1]
    first, again, other = problem.generate(case, 7), problem.generate(case, 7), problem.generate(case, 8)
    assert all(torch.equal(x.float(), y.float()) for x, y in zip(first, again, strict=True))
    assert not torch.equal(first[0].float(), other[0].float())


def test_a_folder_in_gpu_modes_own_style_loads(tmp_path: Path) -> None:
    folder = tmp_path / "set" / "vector"
    folder.mkdir(parents=True)
    (folder.parent / "utils.py").write_text("def same(a, b):\n    return '' if bool((a == b).all()) else 'differs'\n")
    (folder / "task.py").write_text("input_t = object\n")
    (folder / "task.yml").write_text(
        "files: []\nlang: py\nconfig: {main: eval.py}\ndescription: add one\n"
        "tests: [{size: 4, seed: 1}]\nbenchmarks: [{size: 8, seed: 2}]\n"
    )
    (folder / "reference.py").write_text(
        dedent(
            """
            import torch
            from task import input_t
            from utils import same
            def generate_input(size: int, seed: int) -> input_t:
                gen = torch.Generator(device="cuda")
                gen.manual_seed(seed)
                return (torch.rand(size, device="cuda:0", generator=gen),)
            def ref_kernel(data): return data[0] + 1
            def check_implementation(data, output): return same(ref_kernel(data), output)
            """
        )
    )
    problem = load(folder)
    data = problem.generate(problem.profile("full").tests[0])
    assert data[0].device.type == "cpu"
    assert problem.check(data, data[0] + 1) == (True, "")
    assert problem.check(data, data[0]) == (False, "differs")


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("task.yml", "tests: [{size: {a: 1}}]", "no number, text, boolean or list"),
        ("task.yml", "[", "not YAML"),
        ("reference.py", "def generate_input(", "reference.py:1"),
        ("reference.py", "import nowhere_to_be_found", "nowhere_to_be_found"),
        ("reference.py", "x = 1", "defines no generate_input"),
        ("lab.yml", "work: {flops: __import__('os'), bytes: 1}", "not arithmetic"),
    ],
)
def test_a_broken_folder_says_what_is_broken(file: str, text: str, words: str, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "identity"
    shutil.copytree(ROOT / "problems" / "identity", folder)
    (folder / file).write_text(text)
    with pytest.raises(SetupError) as error:
        problem = load(folder)
        problem.work(problem.profile("full").tests[0])
        problem.generate(problem.profile("full").tests[0])
    assert words in str(error.value)


def test_an_unknown_problem_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SetupError, match="fp8-blockwise-gemm, fp8-blockwise-gemm-rowmajor, identity"):
        problems.find("no-such-problem")
    with pytest.raises(SetupError, match="it has: full, cpu"):
        problems.find("identity").profile("gpu")


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**4))
def test_work_expressions_are_arithmetic(m: int, n: int, k: int) -> None:
    sizes = {"m": m, "n": n, "k": k}
    assert evaluate("2*m*n*k", sizes) == 2 * m * n * k
    assert evaluate("ceil_div(n, 128) * max(m, k) + min(m, n) // 3", sizes) == -(-n // 128) * max(m, k) + min(m, n) // 3


@pytest.mark.parametrize("text", ["q", "m.real", "(lambda: 1)()", "m if n else k", "m / 0", "m +", "max(m, key=n)"])
def test_anything_else_in_a_work_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        evaluate(text, {"m": 1, "n": 2, "k": 3})
