"""Prompts: every role's is rendered from its templates; docs/prompts has one example of each."""

import dataclasses
import math
import random
import re

import pytest

from kernel_scientist import problems
from kernel_scientist.hardware import gpus
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.profile import metrics
from kernel_scientist.records.evaluation import CompileReport, Evaluation, PairedTime, Speedup, Timing, Trial
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import REFERENCE, Case, Experiment, Kernel, Verdict
from kernel_scientist.records.params import ROLES
from kernel_scientist.scientist import prompts, showcase
from kernel_scientist.scientist.context import outcomes
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
    for text in (
        "MI300X (gfx942)",
        "v_mfma_f32_32x32x16_fp8_fp8",
        "60 registers",
        "L2 bandwidth",
        "predicts their times",
    ):
        assert text in design
    assert "predicted by a performance model" in design and "are measured here, each" not in design
    assert "out-of-bounds read of a_ptr" in on_gpu_model["repairer"]
    assert "**B.3 (wrong boundary)**" in on_gpu_model["repairer"]


def test_a_gpu_that_no_table_knows_has_no_floors_and_is_not_the_hosts_cpu(problem: Problem) -> None:
    unknown = Machine("a GPU of target cuda", math.inf, {"fp32": math.inf})
    assignment = Assignment(problem, problem.profile("cpu"), "triton", "cuda", CPU, unknown)
    assert not assignment.memory_bound
    for text in showcase.prompts(assignment, cpp_population(problem)).values():
        assert "server processor" not in text and "| roofline floor" not in text and "no correct kernel is" not in text


def test_a_floor_of_the_references_work_is_no_bound(problem: Problem) -> None:
    counted = dataclasses.replace(problem, work_expressions={})
    assignment = Assignment(counted, problem.profile("cpu"), "cpp", "cpu", CPU, PEAKS)
    text = showcase.prompts(assignment, cpp_population(problem))["designer"]
    assert "no correct kernel is faster" not in text and "a kernel that needs less may be faster" in text


def test_the_selector_gets_times_but_no_code(on_cpu: dict[str, str]) -> None:
    text = on_cpu["selector"]
    assert "| k00003 | k00002 |" in text and "m64-n576-k512" in text
    assert "custom_kernel" not in text and "#include" not in text


def test_designer_writer_and_repairer_get_what_the_papers_give_them(on_cpu: dict[str, str]) -> None:
    design, write, repair = (on_cpu[role] for role in ("designer", "writer", "repairer"))
    for text in ("10 avenues", "5 experiment plans", "innovation", "TUNABLES", "roofline floor us", "k00004", "g++"):
        assert text in design
    for text in (
        "deeper panels",
        "| k00002 us | k00003 us |",
        "decode fp8 in registers",
        "site=name",
        "REPORT:",
        "ref_kernel",
        "f001",
    ):
        assert text in write
    for text in ("A.3", "hip_fp8.h", "CRITIQUE:", "What it changes in k00003, which is correct"):
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
    trials[:4] = [t.model_copy(update={"evaluation": measured}) for t in trials[:4]]
    texts = showcase.prompts(assignment, Population(tuple(trials)))
    heading = "Hardware counters of the GPU"
    assert all(heading in texts[role] for role in ("selector", "designer", "writer"))
    assert "- k00002: " in texts["selector"] and "read from memory" in texts["designer"]
    assert not any(heading in text for text in on_cpu.values())


@pytest.mark.parametrize("role", ["designer", "writer"])
def test_the_notes_on_mi300_reach_the_prompts_of_its_model(role: str, on_gpu_model: dict[str, str]) -> None:
    text = on_gpu_model[role]
    for title in ("### Triton on MI300X", "### What fast fp8 GEMM kernels on MI300X did", "### CDNA3 (MI300X, gfx942)"):
        assert title in text
    assert "TRITON_HIP_USE_IN_THREAD_TRANSPOSE" in text


def test_the_notes_headings_lie_below_those_of_the_prompt(on_gpu_model: dict[str, str]) -> None:
    _, notes = on_gpu_model["designer"].split("## Background for this kind of kernel and machine")
    assert re.findall(r"^## .*", notes, re.MULTILINE) == ["## Your task"]


def test_a_prompt_in_triton_is_about_triton_and_its_problem(on_gpu_model: dict[str, str]) -> None:
    for text in on_gpu_model.values():
        for foreign in ("cpp", "g++", 'extern "C"', "__builtin", "rmsnorm", "OpenMP"):
            assert foreign not in text


@pytest.mark.parametrize(("name", "backend"), [("mi300x", "rocm"), ("h200", "cuda")])
def test_a_modelled_gpu_counts_as_the_gpu_that_it_stands_for(problem: Problem, name: str, backend: str) -> None:
    assignment = dataclasses.replace(showcase.assignment(problem), target=f"model-{name}", gpu=gpus.named(name))
    assert assignment.backend == backend
    assert dataclasses.replace(assignment, target="cpu", gpu=None).backend == "cpu"


@pytest.mark.parametrize("role", ["designer", "writer"])
def test_the_loops_instructions_come_with_cycles(role: str, on_gpu_model: dict[str, str]) -> None:
    text = on_gpu_model[role]
    assert "vector 272 cycles (64 valu, 4 valu_packed); matrix 256 cycles (8 v_mfma_f32_32x32x16_fp8_fp8)" in text
    assert (
        "outside of loops: vector 1792 cycles" in text
        and "8 warps, 60 registers per lane, 16384 B LDS; workgroups per compute unit: 4" in text
    )


def test_the_designer_gets_the_reference_kernels_limits_and_code_beside_the_bases(on_gpu_model: dict[str, str]) -> None:
    base, reference = on_gpu_model["designer"].split("## For comparison: k00002")
    assert "k00002 us | k00003 us" in base and "latency in 9 cases" in base
    assert "latency in 9 cases" in reference and "vector 544 cycles (128 valu, 8 valu_packed)" in reference


def test_what_was_tried_in_the_lineage_is_told_with_what_came_of_it(on_gpu_model: dict[str, str]) -> None:
    rows = [line for line in on_gpu_model["designer"].splitlines() if line.startswith("| k0")]
    assert [row.split(" |")[0] for row in rows] == ["| k00003", "| k00004", "| k00005"]
    assert "5 to 15 | correct, +11.1 % (predicted)" in rows[0]
    assert "+0.0 % (predicted); registers, instruction counts and launches are those of k00002" in rows[1]
    assert "incorrect: memory: out-of-bounds" in rows[2]
    assert "1 of 2 gains within the range, 1 below it" in on_gpu_model["designer"]


@pytest.mark.parametrize("role", ["selector", "designer", "distiller"])
def test_kernels_in_progress_are_named(role: str, on_gpu_model: dict[str, str]) -> None:
    assert "k00006 (split-K where m is 1024, on k00003)" in on_gpu_model[role]


def test_published_times_stand_beside_ours_with_their_source(problem: Problem) -> None:
    first, *others = [c.name for c in problem.profile("full").benchmarks]
    origin = {"source": "a contest's winner", "revision": "1", "device": "MI300X", "includes": "the launch"}
    published = {first: PublishedTime(sizes={}, us=66.0, **origin)}
    assignment = dataclasses.replace(showcase.assignment(problem), published=published)
    texts = showcase.prompts(assignment, showcase.population(problem))
    for role in ("designer", "writer"):
        assert re.search(rf"\| {first} \| .* \| 66 \|", texts[role]) and "a contest's winner" in texts[role]
        assert re.search(rf"\| {others[0]} \| .* \| - \|", texts[role])
    assert "| best published |" in texts["selector"]
    assert "best published" not in showcase.rendered()["designer"]


def test_the_distiller_gets_the_best_and_the_most_surprising(problem: Problem) -> None:
    """Of twelve experiments: one was expected to gain little and gained most, one failed to gain what was expected."""
    shown = showcase.population(problem)
    seeds = list(shown)[:2]
    factors = {10: 0.5, 15: 0.99} | dict.fromkeys((11, 12, 13, 14, 16, 17, 18, 19, 20, 21), 0.9)
    trials = [experiment(number, factor, shown) for number, factor in sorted(factors.items())]
    chosen = outcomes.for_distilling(Population((*seeds, *trials)), random.Random(0))
    names = [t.kernel.name for t in chosen]
    assert {"k00010", "k00015"} <= {*names} and "k00001" not in names and len(names) <= 8


def test_a_tuned_kernel_has_no_designers_bet(problem: Problem) -> None:
    shown = showcase.population(problem)
    tuned = experiment(10, 0.9, shown)
    kernel = tuned.kernel.model_copy(update={"tuned_from": "k00002", "report": "kpack 2: 1.111x"})
    population = Population((*list(shown)[:2], tuned.model_copy(update={"kernel": kernel})))
    rows, _ = outcomes.tried(population, "k00002")
    assert [row["expected"] for row in rows] == ["-"] and outcomes.record(population) == "not known yet"


def test_prompts_stay_bounded_as_the_population_grows(problem: Problem) -> None:
    shown = showcase.population(problem)
    seeds, failed = list(shown)[:2], shown.get("k00005")
    lengths: list[dict[str, int]] = []
    for count in (150, 450):
        trials = [experiment(n, 1 - n / 1000, shown) for n in range(10, 10 + count)]
        best = trials[-1].kernel.model_copy(update={"name": "k00003"})
        last = failed.model_copy(update={"kernel": failed.kernel.model_copy(update={"name": "k00999"})})
        population = Population((*seeds, trials[-1].model_copy(update={"kernel": best}), *trials, last))
        texts = showcase.prompts(showcase.assignment(problem), population)
        lengths.append({role: len(text) for role, text in texts.items()})
    for role in ROLES:
        assert lengths[1][role] <= 1.03 * lengths[0][role], role


def experiment(number: int, factor: float, shown: Population) -> Trial:
    """Return an experiment on k00002 that takes `factor` of its time; its designer expected 5 to 15 %."""
    second, warps = list(shown)[1:3]
    kernel = warps.kernel.model_copy(update={"name": f"k{number:05d}", "source": f"{warps.kernel.source}# {number}\n"})
    predictions = tuple(p.model_copy(update={"time_us": factor * p.time_us}) for p in second.evaluation.predictions)
    return Trial(kernel=kernel, evaluation=warps.evaluation.model_copy(update={"predictions": predictions}))


def test_a_prompts_digest_depends_on_its_templates() -> None:
    assert len({prompts.version(role) for role in ROLES}) == len(ROLES)


def test_no_prompt_has_missing_values_or_gaps(on_cpu: dict[str, str], on_gpu_model: dict[str, str]) -> None:
    for text in (*on_cpu.values(), *on_gpu_model.values()):
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        assert "None" not in re.sub(r"NoneType|\[:, None\]", "", prose) and "{{" not in text and "\n\n\n\n" not in text
