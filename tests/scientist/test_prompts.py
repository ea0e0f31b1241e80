"""Prompts: every role's is rendered from its templates; docs/prompts has one example of each."""

import dataclasses
import re

import pytest

from kernel_scientist import problems
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.profile import metrics
from kernel_scientist.records.evaluation import CompileReport, Evaluation, PairedTime, Speedup, Timing, Trial
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import REFERENCE, Case, Experiment, Kernel, Verdict
from kernel_scientist.records.params import ROLES
from kernel_scientist.scientist import prompts, showcase
from kernel_scientist.scientist.roles import Assignment, CpuInfo
from tests.conftest import ROOT

DEEPER = Experiment(
    title="deeper panels",
    description="KC 256 halves the passes over C.",
    rubric=("set KC to 256",),
    uplift=(5, 15),
    innovation=25,
)
DECODE = Experiment(
    title="decode fp8 in registers", description="2 loads fewer.", rubric=("shift",), uplift=(10, 40), innovation=70
)
CPU = CpuInfo(
    caches={"L1": 48 << 10}, features=frozenset({"avx512f"}), vector_bytes=64, cores=2, model="a server processor"
)
PEAKS = Machine("example", 600, {"fp32": 704, "bf16": 1408, "fp8": 1408})
TOOL = "rocprofv3"
READS, WRITES = ("TCC_BUBBLE_sum", "TCC_EA0_RDREQ_sum"), ("TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum")
COUNTS = dict.fromkeys((*READS, *WRITES), 1000000.0) | {"TCC_EA0_RDREQ_32B_sum": 0.0}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return problems.find("fp8-blockwise-gemm")


@pytest.fixture(scope="module")
def on_gpu_model() -> dict[str, str]:
    """The prompts of a campaign in Triton for an MI300X model."""
    return showcase.rendered()


@pytest.fixture(scope="module")
def on_cpu(problem: Problem) -> dict[str, str]:
    """The prompts of a campaign in C++ on a CPU."""
    assignment = Assignment(problem, problem.profile("cpu"), "cpp", "cpu", CPU, PEAKS, most_findings=12)
    return showcase.prompts(assignment, cpp_population(problem))


def cpp_population(problem: Problem) -> Population:
    naive, blocked = (file.read_text() for file in problem.seeds("cpp"))
    cases = problem.profile("cpu").benchmarks
    deeper, broken = blocked + "# KC 256\n", blocked.replace("<cstdint>", "<hip_fp8.h>", 1)
    log = "kernel.cpp:3:10: fatal error: hip_fp8.h: No such file or directory"
    refused = Evaluation(
        verdict=Verdict.COMPILE_ERROR,
        reason="the C++ compiler rejects it",
        compile=CompileReport(ok=False, compiler="g++", log=log),
    )
    trials = (
        (kernel(1, naive), timed(cases, 0.1)),
        (kernel(2, blocked), timed(cases, 3.9)),
        (kernel(3, deeper, DEEPER), timed(cases, 4.3)),
        (kernel(4, broken, DECODE), refused),
    )
    return Population(tuple(Trial(kernel=k, evaluation=e) for k, e in trials))


def kernel(number: int, source: str, experiment: Experiment | None = None) -> Kernel:
    base = f"k{number - 1:05d}" if experiment else None
    return Kernel(name=f"k{number:05d}", language="cpp", source=source, base=base, experiment=experiment)


def timed(cases: tuple[Case, ...], ratio: float) -> Evaluation:
    us = 1000 / ratio
    timings = tuple(Timing(case=c.name, time_us=us, interval_us=(us, us)) for c in cases)
    times = {c.name: PairedTime(time_us=us, against_us=1000) for c in cases}
    speedup = Speedup(against=REFERENCE, ratio=ratio, interval=(ratio * 0.97, ratio * 1.03), cases=times)
    return Evaluation(verdict=Verdict.OK, timings=timings, speedups=(speedup,))


def test_the_examples_in_the_documentation_are_up_to_date(on_gpu_model: dict[str, str]) -> None:
    files = {file.stem: file.read_text() for file in (ROOT / "docs" / "prompts").glob("*.md")}
    assert files == on_gpu_model, "run: make prompts"
    assert set(files) == set(ROLES)


def test_prompts_for_a_gpu_model_contain_code_objects_limits_and_memory_errors(on_gpu_model: dict[str, str]) -> None:
    design = on_gpu_model["designer"]
    for text in ("MI300X (gfx942)", "v_mfma_f32_32x32x16_fp8_fp8", "60 vector", "L2 bandwidth", "predicts their times"):
        assert text in design
    assert "| predicted us |" in design and "measured us" not in design and "g++" not in design
    assert "out-of-bounds read of a_ptr" in on_gpu_model["repairer"]
    assert "**B.3 (wrong boundary)**" in on_gpu_model["repairer"]


def test_the_selector_gets_times_but_no_code(on_cpu: dict[str, str]) -> None:
    text = on_cpu["selector"]
    assert "| k00003 | k00002 |" in text and "m64-n576-k512" in text
    assert "custom_kernel" not in text and "#include" not in text


def test_designer_writer_and_repairer_get_what_the_papers_give_them(on_cpu: dict[str, str]) -> None:
    design, write, repair = (on_cpu[role] for role in ("designer", "writer", "repairer"))
    for text in ("10 avenues", "5 experiment plans", "innovation", "TUNABLES", "roofline floor us", "k00004", "g++"):
        assert text in design
    for text in ("deeper panels", "before us", "decode fp8 in registers", "site=name", "REPORT:", "ref_kernel", "f001"):
        assert text in write
    for text in ("A.3", "hip_fp8.h", "CRITIQUE:", "The base, which is correct"):
        assert text in repair


def test_counters_are_in_the_prompts_if_there_are_any(problem: Problem, on_cpu: dict[str, str]) -> None:
    assignment = dataclasses.replace(showcase.assignment(problem), target="rocm", profile=problem.profile("full"))
    cases, trials = problem.profile("full").benchmarks, list(showcase.population(problem))
    counters = tuple(
        Counters(
            case=c.name,
            kernel="gemm",
            tool="rocprofv3",
            dispatches=1,
            counts=COUNTS,
            figures=metrics.derive("rocprofv3", COUNTS),
        )
        for c in cases
    )
    measured = timed(cases, 2.0).model_copy(update={"counters": counters})
    trials[:3] = [t.model_copy(update={"evaluation": measured}) for t in trials[:3]]
    texts = showcase.prompts(assignment, Population(tuple(trials)))
    heading = "Hardware counters of the GPU"
    assert all(heading in texts[role] for role in ("selector", "designer", "writer"))
    assert "- k00002: " in texts["selector"] and "read from memory" in texts["designer"]
    assert not any(heading in text for text in on_cpu.values())


def test_a_prompts_digest_depends_on_its_templates() -> None:
    assert len({prompts.version(role) for role in ROLES}) == len(ROLES)


def test_no_prompt_has_missing_values_or_gaps(on_cpu: dict[str, str], on_gpu_model: dict[str, str]) -> None:
    for text in (*on_cpu.values(), *on_gpu_model.values()):
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        assert "None" not in re.sub(r"NoneType|\[:, None\]", "", prose) and "{{" not in text and "\n\n\n\n" not in text
