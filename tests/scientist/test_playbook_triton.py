"""The Triton catalogue: every edit gives a correct kernel that compiles for gfx942.

Triton decides at import whether it interprets or compiles, so kernels run in separate processes: this module, run as a
program.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Evaluation, Prediction, Trial
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.scientist.playbook import edits_triton_loops, edits_triton_order
from kernel_scientist.scientist.playbook.agent import RuleBasedAgent, limits
from kernel_scientist.scientist.playbook.catalogue_triton import CATALOGUE
from kernel_scientist.scientist.playbook.transformation import Transformation
from kernel_scientist.scientist.playbook.triton_file import structural
from kernel_scientist.scientist.proposals import ExperimentTask, Lessons
from kernel_scientist.scientist.roles import Assignment, CpuInfo, Step
from tests.interpreter import numerics
from tests.trials import trial

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CASES = {  # ragged and dividing
    "fp8-blockwise-gemm": [{"m": 80, "n": 192, "k": 256}, {"m": 128, "n": 128, "k": 128}],
    "identity": [{"size": 9001}, {"size": 8192}],
    "rmsnorm": [{"rows": 9, "cols": 577}, {"rows": 12, "cols": 1024}],
    "softmax": [{"rows": 9, "cols": 577}, {"rows": 12, "cols": 1024}],
    "layernorm-gelu": [{"rows": 9, "cols": 577}, {"rows": 12, "cols": 1024}],
    "bf16-gemm": [{"m": 80, "n": 144, "k": 192}, {"m": 128, "n": 128, "k": 128}],
    "attention-prefill": [{"batch": 1, "kvheads": 1, "length": 100}, {"batch": 1, "kvheads": 1, "length": 128}],
    "moe": [{"tokens": 9, "hidden": 128, "inner": 64, "experts": 5}],
    "mla-decode": [{"batch": 2, "heads": 16, "length": 70}],
}
CASES["fp8-blockwise-gemm-rowmajor"] = CASES["fp8-blockwise-gemm"]
LARGE = {  # sizes of a GPU campaign, for compilation
    "fp8-blockwise-gemm": {"m": 1024, "n": 1536, "k": 512},
    "identity": {"size": 65536},
    "rmsnorm": {"rows": 16, "cols": 4096},
    "softmax": {"rows": 16, "cols": 4096},
    "layernorm-gelu": {"rows": 16, "cols": 4096},
    "bf16-gemm": {"m": 1024, "n": 1536, "k": 512},
    "attention-prefill": {"batch": 1, "kvheads": 1, "length": 1024},
    "moe": {"tokens": 128, "hidden": 1024, "inner": 256, "experts": 8},
    "mla-decode": {"batch": 2, "heads": 16, "length": 1024},
}
LARGE["fp8-blockwise-gemm-rowmajor"] = LARGE["fp8-blockwise-gemm"]
RESOURCES = ("hbm", "cache", "l2", "l1", "lds", "matrix", "vector", "latency", "launch")
LDS_BYTES = 64 << 10
CPU = CpuInfo(caches={}, features=frozenset(), vector_bytes=64, cores=1)
SEEDS = sorted((ROOT / "problems").glob("*/seeds/triton_*.py"))


@dataclass(frozen=True)
class Job:
    """A kernel to run, and the edits that made it."""

    problem: str
    steps: tuple[str, ...]
    text: str


def applied(job: Job, entry: Transformation) -> list[Job]:
    """Return the variants of a kernel by one catalogue entry."""
    variants = entry.apply(KernelSource(job.text), CPU)
    assert all(v.rubric and v.source.text != job.text for v in variants)
    return [Job(job.problem, (*job.steps, f"{entry.name}: {v.detail}"), v.source.text) for v in variants]


def variants(job: Job) -> list[Job]:
    return [v for entry in CATALOGUE for v in applied(job, entry)]


def seeds() -> list[Job]:
    return [Job(path.parts[-3], (path.stem,), path.read_text()) for path in SEEDS]


@cache
def single_edits() -> tuple[Job, ...]:
    """Return every variant of every seed."""
    return tuple(v for job in seeds() for v in variants(job))


@cache
def chains(count: int, most: int = 4) -> tuple[Job, ...]:
    """Return seeds with two to `most` random edits."""
    jobs: list[Job] = []
    editable = [s for s in seeds() if variants(s)]  # naive files with several launches declare nothing
    for number in range(count):
        rng = random.Random(number)
        job = rng.choice([*editable, *(s for s in editable if "fp8" in s.problem)])
        for _ in range(rng.randint(2, most)):
            choices = (options for e in rng.sample(CATALOGUE, len(CATALOGUE)) if (options := applied(job, e)))
            job = rng.choice(next(choices))
        jobs.append(job)
    return tuple(jobs)


def one_unit(jobs: list[Job]) -> list[Job]:
    """Return the persistent kernels for a GPU with one compute unit, where each program has several tiles."""
    return [
        Job(j.problem, (*j.steps, "one unit"), j.text.replace("UNITS = 304", "UNITS = 1"))
        for j in jobs
        if "all_tiles" in j.text
    ]


def run_all(jobs: list[Job], how: str, folder: Path) -> dict[int, str]:
    """Run kernels in a separate process; return the errors by the kernels' numbers.

    `how`: `interpret` without a GPU, `pretend` with a simulated MI300X, `compile` for gfx942.
    """
    (folder / "jobs.json").write_text(json.dumps([[j.problem, j.text] for j in jobs]))
    environ = {
        **os.environ,
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TRITON_INTERPRET": str(int(how != "compile")),
    }
    process = subprocess.run(
        [sys.executable, "-m", "tests.scientist.test_playbook_triton", how, str(folder)],
        cwd=ROOT, env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-2000:]
    return {int(number): error for number, error in json.loads((folder / "errors.json").read_text()).items()}


def failures(jobs: list[Job], how: str, folder: Path) -> list[str]:
    errors = run_all(jobs, how, folder)
    return [f"{jobs[n].problem} {' | '.join(jobs[n].steps)}: {error}" for n, error in errors.items()]


def main(how: str, folder: Path) -> None:
    jobs = json.loads((folder / "jobs.json").read_text())
    problems = {name: load(ROOT / "problems" / name) for name in CASES}
    numerics.install()  # as a campaign's workers do: Triton's own interpreter multiplies bf16's bit patterns
    if how != "interpret":
        pretend()
    run: Callable[[Problem, ModuleType], str] = compiler() if how == "compile" else interpret
    errors: dict[int, str] = {}
    for number, (problem, text) in enumerate(jobs):
        try:
            message = run(problems[problem], imported(folder / f"kernel{number}.py", text))
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        if message:
            errors[number] = message[-600:]
    (folder / "errors.json").write_text(json.dumps(errors))


def pretend() -> None:
    """Make torch report HIP and a gfx942."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget

    torch.version.hip = "6.4"  # type: ignore[assignment]
    torch.cuda.get_device_properties = lambda _: SimpleNamespace(gcnArchName="gfx942:sramecc+")  # type: ignore[assignment]
    driver = {
        "get_current_target": lambda: GPUTarget("hip", "gfx942", 64),
        "get_current_device": lambda: 0,
        "get_current_stream": lambda _: 0,
        "get_active_torch_device": lambda: torch.device("cpu"),
    }
    triton.runtime.driver.set_active(SimpleNamespace(**driver))  # type: ignore[arg-type]


def imported(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpret(problem: Problem, module: ModuleType) -> str:
    for sizes in CASES[problem.name]:
        case = Case(sizes=sizes, seed=1)
        out = module.custom_kernel(problem.generate(case))
        correct, message = problem.check(problem.generate(case), out)
        if not correct:
            return f"{sizes}: {message}"
    return ""


def compiler() -> Callable[[Problem, ModuleType], str]:
    """Make Triton compile launched kernels for gfx942 without launching them."""
    from triton.runtime.jit import JITFunction

    run, shared = JITFunction.run, list[int]()

    def only_compile(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = run(self, *args, **{**kwargs, "warmup": True})
        shared.append(compiled.metadata.shared)
        return compiled

    JITFunction.run = only_compile  # type: ignore[method-assign]

    def compile_one(problem: Problem, module: ModuleType) -> str:
        shared.clear()
        module.custom_kernel(problem.generate(Case(sizes=LARGE[problem.name], seed=1)))
        return "" if shared and max(shared) <= LDS_BYTES else f"{shared} bytes of LDS"

    return compile_one


def test_the_triton_catalogue_is_well_formed() -> None:
    assert len(CATALOGUE) >= 30 and len({t.name for t in CATALOGUE}) == len(CATALOGUE)
    assert len({t.name[:10] for t in CATALOGUE}) == len(CATALOGUE)  # MLflow's charts truncate values there
    for entry in CATALOGUE:
        assert entry.hypothesis.endswith(".") and entry.uplift[0] <= entry.uplift[1] and 0 <= entry.innovation <= 100
        assert entry.helps <= {*RESOURCES, "registers", "capacity"}, entry.name


def test_every_entry_applies_to_a_seed_or_to_a_changed_seed() -> None:
    rest = {t.name for t in CATALOGUE} - {v.steps[-1].split(":")[0] for v in single_edits()}
    assert rest == {"deeper-step", "fewer-rows", "fewer-chunks", "hoisted-loads"}
    changed = [
        j for j in single_edits() if j.steps[-1].endswith(("BLOCK_K 128 -> 64", "BLOCK_ROWS 1 -> 2", "CHUNKS 1 -> 2"))
    ]
    twice = {v.steps[-1].split(":")[0] for job in changed for v in variants(job)}
    assert rest - twice == {"hoisted-loads"}  # no seed has a loop-invariant load


@pytest.mark.parametrize("problem", CASES)
def test_every_triton_edit_gives_a_correct_kernel(problem: str, tmp_path: Path) -> None:
    jobs = [j for j in (*seeds(), *single_edits(), *chains(60)[:30]) if j.problem == problem]
    assert failures([*jobs, *one_unit(jobs)], "interpret", tmp_path) == []


def test_every_edit_of_fp8_gives_a_correct_kernel_on_its_gpu(tmp_path: Path) -> None:
    jobs = [j for j in (*single_edits(), *chains(60)[30:]) if "fp8" in j.problem]
    assert failures([*jobs, *one_unit(jobs)], "pretend", tmp_path) == []


@pytest.mark.soak  # many minutes of compiling; campaigns on model targets compile edits as well
@pytest.mark.parametrize("problem", CASES)
def test_edits_compile_for_gfx942_within_its_local_memory(problem: str, tmp_path: Path) -> None:
    # numbers are tried in chains: one of each other entry for each seed; all numbers where nothing else applies
    edits = [j for j in single_edits() if j.problem == problem]
    first = {(j.steps[0], j.steps[1].split(":")[0]): j for j in edits}
    jobs = [j for j in first.values() if "->" not in j.steps[1]] or edits
    jobs += [j for j in chains(60) if j.problem == problem][:4]
    assert len(jobs) > 5
    assert failures(jobs, "compile", tmp_path) == []


def test_a_wrong_kernel_is_detected(tmp_path: Path) -> None:
    (seed,) = (s for s in seeds() if s.problem == "rmsnorm" and s.steps == ("triton_naive",))
    wrong = Job(seed.problem, seed.steps, seed.text.replace("offsets < cols", "offsets < cols - 1"))
    assert set(run_all([seed, wrong], "interpret", tmp_path)) == {1}
    broken = Job(seed.problem, seed.steps, seed.text.replace("tl.rsqrt", "tl.no_such_function"))
    assert set(run_all([seed, broken], "compile", tmp_path)) == {1}


@given(st.integers(1, 500))
def test_the_xcd_order_is_a_permutation_with_contiguous_tiles_per_die(programs: int) -> None:
    space: dict[str, Any] = {}
    lines = "\n    ".join(edits_triton_order.SWIZZLED.splitlines())
    exec(f"def positions(tl):\n    {lines}\n    return position", space)
    positions = [space["positions"](_Program(i, programs)) for i in range(programs)]
    assert sorted(positions) == list(range(programs))
    for die in range(8):
        tiles = positions[die::8]
        assert tiles == list(range(tiles[0], tiles[0] + len(tiles))) if tiles else True


@dataclass(frozen=True)
class _Program:
    number: int
    programs: int

    def program_id(self, axis: int) -> int:
        return self.number

    def num_programs(self, axis: int) -> int:
        return self.programs

    def minimum(self, x: int, y: int) -> int:
        return min(x, y)


LOOP = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, s_ptr, c_ptr, k, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for block in range(k // 128):
        for step in tl.static_range(128 // BLOCK):
            a = tl.load(a_ptr + block * 128 + step * BLOCK + tl.arange(0, BLOCK)[:, None] * k)
            scale = tl.load(s_ptr + block)
            acc += tl.dot(a, a) * scale
    tl.store(c_ptr + tl.arange(0, BLOCK), acc)


def custom_kernel(data):
    kernel[(1,)](*data, 128, BLOCK=32)
    return data[2]
"""
TILED = LOOP.replace("    acc = tl.zeros", "    tile = tl.program_id(0)\n    acc = tl.zeros")


def test_loop_invariant_loads_are_hoisted() -> None:
    (hoisted,) = structural(edits_triton_loops.hoisted_loads)(KernelSource(LOOP), CPU)
    lines = [line.strip() for line in hoisted.source.text.splitlines()]
    at = lines.index("scale = tl.load(s_ptr + block)")
    assert (
        lines.count(lines[at]) == 1 and lines[at + 1].startswith("for step") and lines[at - 1].startswith("for block")
    )


@pytest.mark.parametrize(
    "text",
    [
        "def custom_kernel(data): ...\n",
        LOOP.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit"),
        LOOP.replace("    return data", "    kernel[(1,)](*data, 128, BLOCK=32)\n    return data"),
        LOOP.replace("kernel[(1,)](*data, 128, BLOCK=32)", "kernel[lambda meta: (1,)](**data)"),
        LOOP.replace("tl.load(s_ptr + block)", "tl.load(pointer=s_ptr + block, mask=data)"),
        TILED.replace("tl.load(s_ptr + block)", "tl.load(s_ptr + block, mask=(block < k))"),
        TILED.replace("k, BLOCK: tl.constexpr", "k: int = 1, BLOCK: tl.constexpr = (2)"),
        TILED.replace("BLOCK=32)", "BLOCK=(32))"),
        TILED.replace("    ", "\t"),
    ],
)
def test_edits_of_other_file_structures_are_valid_python(text: str) -> None:
    for job in variants(Job("", (), text)):
        compile(job.text, "kernel", "exec")


def test_a_parameter_is_added_after_those_with_defaults() -> None:
    text = TILED.replace("k, BLOCK: tl.constexpr", "k: int = 1, BLOCK: tl.constexpr = 2")
    found = structural(edits_triton_order.persistent)(KernelSource(text), CPU)
    assert [v.detail for v in found] == ["1 per unit", "2 per unit"]
    assert all("BLOCK: tl.constexpr = 2, all_tiles=0" in v.source.text for v in found)


def test_amd_options_are_passed_on_amd_only() -> None:
    naive = next(s for s in seeds() if "fp8" in s.problem and s.steps == ("triton_naive",))
    first = next(v for v in variants(naive) if "waves_per_eu 0 -> 2" in v.steps[-1])
    assert '**({"waves_per_eu": 2} if torch.version.hip else {})' in first.text
    second = next(v for v in variants(first) if "waves_per_eu 2 -> 3" in v.steps[-1])
    assert '{"waves_per_eu": 3}' in second.text


def planned(evaluation: Evaluation) -> list[str]:
    """Return the entries that the agent plans for the tiled GEMM with this evaluation."""
    problem = load(ROOT / "problems" / "fp8-blockwise-gemm")
    agent = RuleBasedAgent(Assignment(problem, problem.profile("cpu"), "triton", "model:mi300x", CPU))
    text = (problem.folder / "seeds" / "triton_tiled.py").read_text()
    kernel = Kernel(name="k00001", language="triton", source=text)
    evaluated = trial("k00001", 1.0).evaluation.model_copy(
        update={"predictions": evaluation.predictions, "compile": evaluation.compile}
    )
    population = Population((Trial(kernel=kernel, evaluation=evaluated),))
    step = Step.of(1, "test", 1)
    selection = agent.select(population, Lessons(), step)
    design = agent.design(population, selection, Lessons(), step)
    task = ExperimentTask(name="k00002", base="k00001", reference="k00001", experiment=design.plans[0])
    assert agent.write(population, task, Lessons()).source != text
    return [p.title.split(":")[0] for p in design.plans]


def prediction(limit: str, number: int) -> Prediction:
    return Prediction(case=f"c{number}", machine="m", time_us=2, floor_us=1, limited_by=limit)


def test_entries_that_relieve_the_predicted_limit_come_first() -> None:
    helps = {t.name: t.helps for t in CATALOGUE}
    plain = planned(Evaluation(verdict=Verdict.OK))
    for resource in ("lds", "cache", "latency"):
        predictions = tuple(prediction(r, i) for i, r in enumerate([resource, "matrix", resource]))
        plans = planned(Evaluation(verdict=Verdict.OK, predictions=predictions))
        helping = [resource in helps[name] for name in plans]
        assert helping[0] and helping == sorted(helping, reverse=True) and plans != plain


def test_entries_that_relieve_registers_come_first_if_they_spill_or_limit_occupancy() -> None:
    helps = {t.name: t.helps for t in CATALOGUE}
    about: dict[str, Any] = {"kernel": "k", "arch": "gfx942", "digest": "", "num_warps": 4, "vgpr": 256}
    for more, wanted in [
        ({"spills": 3}, "registers"),
        ({"occupancy": 1, "limited_by": "registers"}, "registers"),
        ({"occupancy": 1, "limited_by": "lds"}, "capacity"),
    ]:
        report = CompileReport(ok=True, compiler="triton", objects=(CodeObject(**about, **more),))
        plans = planned(Evaluation(verdict=Verdict.OK, compile=report))
        assert wanted in helps[plans[0]] and wanted in helps[plans[1]]
    assert limits(Evaluation(verdict=Verdict.OK)) == frozenset()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
