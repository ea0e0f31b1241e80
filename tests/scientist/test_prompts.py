"""Prompts: every role's is rendered from its templates; docs/prompts has one example of each."""

import dataclasses
import math
import random
import re

import pytest

from docs import cpu_examples, mi300x_examples, write_prompts
from kernel_scientist import problems
from kernel_scientist.hardware import counter_figures, gpus
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import operators
from kernel_scientist.problems.problem import Problem
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup, Timing, Trial
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import REFERENCE, Case, Verdict
from kernel_scientist.records.params import ROLES
from kernel_scientist.scientist import prompts
from kernel_scientist.scientist.context import facts, outcomes
from kernel_scientist.scientist.roles import FOCUSES, Assignment, CpuInfo
from kernel_scientist.workers.shared_memory import SharedMemory
from tests.conftest import ROOT

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
    return write_prompts.rendered("fp8-mi300x")


@pytest.fixture(scope="module")
def on_cpu() -> dict[str, str]:
    """The prompts of a campaign in C++ on a CPU."""
    return write_prompts.rendered("fp8-cpu")


@pytest.fixture(scope="module")
def of_file() -> dict[str, str]:
    """The prompts of a campaign on a KernelBench file in C++ on a CPU."""
    return write_prompts.rendered("kernelbench-cpu")


@pytest.fixture(scope="module")
def hip() -> dict[str, str]:
    """The prompts of a campaign in HIP on MI300X."""
    return write_prompts.rendered("hip-mi300x")


def timed(cases: tuple[Case, ...], ratio: float) -> Evaluation:
    us = 1000 / ratio
    timings = tuple(Timing(case=c.name, time_us=us, interval_us=(us, us)) for c in cases)
    times = {c.name: PairedTime(time_us=us, against_us=1000) for c in cases}
    speedup = Speedup(against=REFERENCE, ratio=ratio, interval=(ratio * 0.97, ratio * 1.03), cases=times)
    return Evaluation(verdict=Verdict.OK, timings=timings, speedups=(speedup,))


@pytest.fixture(params=write_prompts.EXAMPLES)
def example(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """Each example's name and prompts."""
    fixtures = {
        "fp8-cpu": "on_cpu",
        "fp8-mi300x": "on_gpu_model",
        "hip-mi300x": "hip",
        "kernelbench-cpu": "of_file",
    }
    return request.param, request.getfixturevalue(fixtures[request.param])


def test_the_examples_in_the_documentation_are_up_to_date(example: tuple[str, dict[str, str]]) -> None:
    name, texts = example
    files = {file.stem: file.read_text() for file in (ROOT / "docs" / "prompts" / name).glob("*.md")}
    assert files == texts, "run: make prompts"
    assert set(files) == set(ROLES)


def test_at_most_a_third_of_a_prompt_is_background(example: tuple[str, dict[str, str]]) -> None:
    for role, text in example[1].items():
        notes = re.split(r"^## (?:Background|Further documents|What its report shows).*$", text, flags=re.MULTILINE)[1:]
        background = sum(len(re.split(r"^## ", part, flags=re.MULTILINE)[0]) for part in notes)
        assert background <= len(text) / 3, role
        writes = role in ("designer", "writer") or "write the kernel" in text
        assert bool(background) == (writes or "#### What bites" in text), role


def test_designer_and_writer_know_data_rules_contract_and_hidden_cases(example: tuple[str, dict[str, str]]) -> None:
    for role in ("designer", "writer", "repairer"):
        text = example[1][role]
        for fact in (
            "data[0]",
            "returned: ",
            "contiguous",
            "olerance",
            "cases that are not shown",
            "custom_kernel(data)",
        ):
            assert fact in text, (role, fact)
        assert "A kernel is one Python file" in text and re.search("may (do parts of the work|compute anything)", text)


def test_the_prompts_of_a_file_say_what_the_file_does_not(of_file: dict[str, str]) -> None:
    for role in ("designer", "writer", "repairer"):
        text = of_file[role]
        for fact in (
            "data[1]['norm.weight']: float32 [384], contiguous",
            "t = 1e-4 for float32",
            "batch_size 256 -> 128, features 768 -> 384",
            "other values of batch_size, features",
            "Operators of PyTorch may do parts of the work",
            "from kernel_scientist import load",
            "This is the reference itself in the form of a kernel",
        ):
            assert fact in text, (role, fact)
        assert "seed kernel, written by people" not in text and text.count("class Model(") == 1
    assert "small enough to be implemented" not in of_file["designer"] and "a first one" in of_file["designer"]
    assert "Leave everything else unchanged" not in of_file["writer"]


def test_background_is_about_the_problem_its_types_and_its_target(of_file: dict[str, str]) -> None:
    for text in of_file.values():
        assert "MI300" not in text and "fp8" not in text and "Triton" not in text and "causal" not in text


def test_the_repairer_of_a_missing_kernel_writes_it(of_file: dict[str, str]) -> None:
    text = of_file["repairer"]
    assert "the writer sent no kernel" in text and "raise SyntaxError" not in text and "write the kernel" in text


def test_a_failures_evidence_appears_once(on_cpu: dict[str, str]) -> None:
    assert on_cpu["repairer"].count("error: '__m128i' was not declared") == 1


def test_a_declined_experiment_is_listed_with_its_reason(on_cpu: dict[str, str]) -> None:
    row = "| k00004 | k00002 | bf16 dot products | 30 to 90 | declined: scales that are folded into bf16"
    assert row in on_cpu["designer"] and "was not carried out" in on_cpu["designer"]
    assert "\nPlanned on k00002: vdpbf16ps" in on_cpu["distiller"] and "was not carried out" in on_cpu["distiller"]
    assert "raise SyntaxError" not in "".join(on_cpu.values())


def test_no_example_of_a_reply_names_a_kernel(example: tuple[str, dict[str, str]]) -> None:
    for role in ("selector", "designer", "distiller", "judge"):
        reply = example[1][role].rpartition("```json\n")[2]
        assert not re.search(r"k0\d+|f0\d+|: \d", reply), role


def test_prompts_for_a_gpu_model_contain_code_objects_limits_and_memory_errors(on_gpu_model: dict[str, str]) -> None:
    design = on_gpu_model["designer"]
    for text in (
        "MI300X (gfx942)",
        "v_mfma_f32_32x32x16_fp8_fp8",
        "162 registers",
        "latency in 18 cases",
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
    for text in write_prompts.prompts(assignment, cpu_examples.fp8()[1]).values():
        assert "server processor" not in text and "| roofline floor" not in text and "no correct kernel is" not in text


def test_a_floor_of_the_references_work_is_no_bound(problem: Problem) -> None:
    counted = dataclasses.replace(problem, work_expressions={})
    assignment = Assignment(counted, problem.profile("cpu"), "cpp", "cpu", CPU, PEAKS)
    text = write_prompts.prompts(assignment, cpu_examples.fp8()[1])["designer"]
    assert "no correct kernel is faster" not in text and "one that needs less work may be faster" in text


def test_the_selector_gets_times_but_no_code(on_cpu: dict[str, str]) -> None:
    text = on_cpu["selector"]
    assert "| k00003 | k00002 |" in text and "m64-n576-k512" in text
    assert "custom_kernel" not in text and "#include" not in text


def test_designer_writer_and_repairer_get_what_the_papers_give_them(on_cpu: dict[str, str]) -> None:
    design, write, repair = (on_cpu[role] for role in ("designer", "writer", "repairer"))
    for text in ("10 avenues", "5 experiment plans", "innovation", "TUNABLES", "roofline floor us", "k00004", "g++"):
        assert text in design
    for text in (
        "six rows per register tile",
        "| k00002 us | k00003 us |",
        "decode fp8 by way of fp16",
        "site=name",
        "REPORT:",
        "ref_kernel",
        "f001",
    ):
        assert text in write
    for text in ("B.2", "__m128i", "CRITIQUE:", "DECLINE:", "Its changes to the base (k00003, a correct kernel)"):
        assert text in repair


def test_counters_are_in_the_prompts_if_there_are_any(problem: Problem, on_cpu: dict[str, str]) -> None:
    assignment = dataclasses.replace(
        mi300x_examples.assignment("triton"), target="rocm", profile=problem.profile("full")
    )
    cases, trials = problem.profile("full").benchmarks, list(mi300x_examples.triton()[1])
    counters = tuple(
        Counters(
            case=c.name,
            kernel="gemm",
            tool="rocprofv3",
            dispatches=1,
            counts=COUNTS,
            figures=counter_figures.derive("rocprofv3", COUNTS),
        )
        for c in cases
    )
    measured = timed(cases, 2.0).model_copy(update={"counters": counters})
    trials[:4] = [t.model_copy(update={"evaluation": measured}) for t in trials[:4]]
    texts = write_prompts.prompts(assignment, Population(tuple(trials)))
    heading = "Hardware counters of the GPU"
    assert all(heading in texts[role] for role in ("selector", "designer", "writer"))
    assert "- k00002: " in texts["selector"] and "read from memory" in texts["designer"]
    assert not any(heading in text for text in on_cpu.values())


@pytest.mark.parametrize("role", ["designer", "writer"])
def test_the_notes_on_mi300_reach_the_prompts_of_its_model(role: str, on_gpu_model: dict[str, str]) -> None:
    text = on_gpu_model[role]
    assert "### Triton on MI300X" in text and "TRITON_HIP_USE_IN_THREAD_TRANSPOSE" in text
    for title in ("- What fast fp8 GEMM kernels on MI300X did", "- CDNA3 (MI300X, gfx942)"):
        assert (title in text) == (role == "designer"), "the designer may ask for them"


def test_a_designer_reads_what_the_bases_report_usually_means(
    on_gpu_model: dict[str, str], hip: dict[str, str]
) -> None:
    for texts, seen in ((on_gpu_model, "fewer workgroups than the 304 compute units"), (hip, "no matrix instruction")):
        _, cards = texts["designer"].split("## What its report shows, and what that usually means")
        cards = cards.split("\n## ")[0]
        assert seen in cards and 1 <= cards.count("\n- **") <= 3
        assert not any("What its report shows" in text for role, text in texts.items() if role != "designer")


def test_the_notes_headings_lie_below_those_of_the_prompt(on_gpu_model: dict[str, str]) -> None:
    _, notes = on_gpu_model["designer"].split("## Background for this kind of kernel and machine")
    assert re.findall(r"^## .*", notes, re.MULTILINE) == ["## Further documents", "## Your task"]


def test_a_prompt_in_triton_is_about_triton_and_its_problem(on_gpu_model: dict[str, str]) -> None:
    for text in on_gpu_model.values():
        for foreign in ("cpp", "g++", 'extern "C"', "__builtin", "rmsnorm", "OpenMP"):
            assert foreign not in text


@pytest.mark.parametrize(("name", "backend"), [("mi300x", "rocm"), ("h200", "cuda")])
def test_a_modelled_gpu_counts_as_the_gpu_that_it_stands_for(problem: Problem, name: str, backend: str) -> None:
    assignment = dataclasses.replace(mi300x_examples.assignment("triton"), target=f"model-{name}", gpu=gpus.named(name))
    assert assignment.backend == backend
    assert dataclasses.replace(assignment, target="cpu", gpu=None).backend == "cpu"


@pytest.mark.parametrize("role", ["designer", "writer"])
def test_the_loops_instructions_come_with_cycles(role: str, on_gpu_model: dict[str, str]) -> None:
    text = on_gpu_model[role]
    assert "vector 588 cycles (131 valu, 16 valu_packed); matrix 512 cycles (16 v_mfma_f32_32x32x16_fp8_fp8)" in text
    assert (
        "outside of loops: vector 2576 cycles" in text
        and "8 waves, 162 registers per lane, 32768 B LDS; workgroups per compute unit: 1" in text
    )


def test_the_designer_gets_the_reference_kernels_limits_and_code_beside_the_bases(on_gpu_model: dict[str, str]) -> None:
    base, reference = on_gpu_model["designer"].split("## For comparison: k00002")
    assert "k00002 us | k00003 us" in base and "latency in 18 cases" in base
    assert "l2 in 16 cases" in reference and "vector 544 cycles (128 valu, 8 valu_packed)" in reference


def test_what_was_tried_in_the_lineage_is_told_with_what_came_of_it(on_gpu_model: dict[str, str]) -> None:
    rows = [line for line in on_gpu_model["designer"].splitlines() if line.startswith("| k0")]
    assert [row.split(" |")[0] for row in rows] == ["| k00003", "| k00004", "| k00005"]
    assert "10 to 40 | correct, +27.5 % (predicted)" in rows[0] and "5 to 20 | correct, -7.6 % (predicted)" in rows[1]
    assert "incorrect: memory: out-of-bounds" in rows[2]
    assert "1 of 2 gains within the range, 1 below it" in on_gpu_model["designer"]


def test_a_kernel_whose_code_is_that_of_its_base_is_told_so() -> None:
    assignment, population = mi300x_examples.triton()
    trials = list(population)
    commented = trials[3].kernel.model_copy(update={"source": f"{trials[1].kernel.source}# the same\n"})
    trials[3] = Trial(kernel=commented, evaluation=trials[1].evaluation)
    text = write_prompts.prompts(assignment, Population(tuple(trials)))["designer"]
    (row,) = (line for line in text.splitlines() if line.startswith("| k00004"))
    assert "+0.0 % (predicted); registers, instruction counts and launches are those of k00002" in row


@pytest.mark.parametrize("role", ["designer", "judge", "distiller"])
def test_who_reads_of_gains_knows_what_a_percent_is(role: str, example: tuple[str, dict[str, str]]) -> None:
    assert example[1][role].count("A gain in percent is the base's time divided by the kernel's, minus 1") == 1


def test_the_distiller_gets_the_bases_times_and_the_whole_description(on_gpu_model: dict[str, str]) -> None:
    text = on_gpu_model["distiller"]
    assert "| case | k00002 us | k00003 us | k00004 us |" in text and "Tolerance: rtol 2e-2" in text
    assert text.count("tiles of 128 x 128") == 2, "once as a heading, once as k00005's base"


def test_advice_has_the_numbers_of_the_cases_at_its_ends(on_gpu_model: dict[str, str]) -> None:
    for text in (
        "all 18 cases, from m1024-n4096-k512 to m6144-n4608-k7168: limited by what a program does one after the other",
        "8 of 18 cases, from m1024-n4608-k7168 to m1024-n512-k7168: 288 to 32 programs leave 16 to 272 of 304 CUs idle",
        "1 program each, 448 programs: round 2",
        "a gain of 13 to 38 % at best",
    ):
        assert text in on_gpu_model["designer"]


def test_the_cpus_cores_caches_rates_and_alignment_are_told(on_cpu: dict[str, str]) -> None:
    for text in (
        "2 logical CPUs may be used, hyperthreads of 1 core: those of one core share",
        "L2 2048 KiB per core, L3 32768 KiB for several cores",
        "bf16 3.58 TFLOP/s (AMX tdpbf16ps), int8 7.15 TFLOP/s (AMX tdpbssd); memory 13.9 GB/s read",
        "OpenMP with 2 threads by default",
        f"begins at a multiple of {SharedMemory.LINE} bytes",
    ):
        assert text in on_cpu["writer"]


def test_rates_of_a_cpu_without_measured_peaks_are_computed() -> None:
    problem = problems.find("fp8-blockwise-gemm")
    cpu = dataclasses.replace(cpu_examples.CPU, measured=None, model="a processor of which nothing was measured")
    lines = "\n".join(facts.machine(Assignment(problem, problem.profile("cpu"), "cpp", "cpu", cpu)))
    assert "peaks and bandwidths of this machine: not measured" in lines and "state a gain from fewer bytes" in lines
    assert "computed for one core at 3.8 GHz, in GFLOP/s at most: fp64 122, fp32 243, bf16 3891, fp16 486" in lines


def test_another_way_to_the_same_end_is_allowed(example: tuple[str, dict[str, str]]) -> None:
    for role in ("writer", "repairer"):
        assert "Another way to the same end" in example[1][role]
    assert "in another way" in example[1]["judge"]


def test_a_designer_without_a_kernel_knows_which_operators_take_the_time(of_file: dict[str, str]) -> None:
    assert "addmm 69 %, gelu 15 %" in of_file["designer"]
    problem = problems.find(str(ROOT / cpu_examples.FILE))
    shares = operators.shares(problem, problem.profile("cpu"), "cpp")
    assert {"addmm", "gelu", "native_layer_norm"} <= shares.keys()
    assert 0.9 < sum(shares.values()) <= 1.0001 and max(shares, key=lambda name: shares[name]) == "addmm"
    seeded = problems.find("fp8-blockwise-gemm")
    assert not operators.shares(seeded, seeded.profile("cpu"), "cpp"), "it has kernels to start from"


def test_a_judge_knows_the_bases_limits_and_what_bites(on_gpu_model: dict[str, str], hip: dict[str, str]) -> None:
    for text in (on_gpu_model["judge"], hip["judge"]):
        assert "### Predicted limits of" in text and "### Compiled code of" in text
        assert text.count("#### What bites") >= 1 and "#### Writing it" not in text and "## Shape of" not in text


def test_operations_of_torch_count_as_launches_on_a_gpu_model(on_gpu_model: dict[str, str]) -> None:
    for text in ("count as one launch each", "one for each of torch's operations too"):
        assert text in on_gpu_model["writer"]


@pytest.mark.parametrize("role", ["selector", "designer", "writer", "distiller"])
def test_kernels_in_progress_are_named(role: str, on_gpu_model: dict[str, str]) -> None:
    assert "- k00006, on k00003: split along k where tiles are few (writing)" in on_gpu_model[role]


@pytest.mark.parametrize("role", ["selector", "designer"])
def test_what_others_design_at_the_moment_is_told(role: str, on_gpu_model: dict[str, str]) -> None:
    assert f"Others design experiments at this moment: on k00003 ({FOCUSES[1]})" in on_gpu_model[role]
    assert (f"Yours is **{FOCUSES[0]}**" in on_gpu_model[role]) == (role == "designer")


def test_published_times_stand_beside_ours_with_their_source(problem: Problem) -> None:
    first, *others = [c.name for c in problem.profile("full").benchmarks]
    origin = {"source": "a contest's winner", "revision": "1", "device": "MI300X", "includes": "the launch"}
    published = {first: PublishedTime(sizes={}, us=66.0, **origin)}
    assignment = dataclasses.replace(mi300x_examples.assignment("triton"), published=published)
    texts = write_prompts.prompts(assignment, mi300x_examples.triton()[1])
    for role in ("designer", "writer"):
        assert re.search(rf"\| {first} \| .* \| 66 \|", texts[role]) and "a contest's winner" in texts[role]
        assert re.search(rf"\| {others[0]} \| .* \| - \|", texts[role])
    assert "| best published |" in texts["selector"]
    assert "best published" not in write_prompts.rendered("fp8-mi300x")["designer"]


def test_the_distiller_gets_the_best_and_the_most_surprising(problem: Problem) -> None:
    """Of twelve experiments: one was expected to gain little and gained most, one failed to gain what was expected."""
    shown = mi300x_examples.triton()[1]
    seeds = list(shown)[:2]
    factors = {10: 0.5, 15: 0.99} | dict.fromkeys((11, 12, 13, 14, 16, 17, 18, 19, 20, 21), 0.9)
    trials = [experiment(number, factor, shown) for number, factor in sorted(factors.items())]
    chosen = outcomes.for_distilling(Population((*seeds, *trials)), random.Random(0))
    names = [t.kernel.name for t in chosen]
    assert {"k00010", "k00015"} <= {*names} and "k00001" not in names and len(names) <= 8


def test_a_tuned_kernel_has_no_designers_bet(problem: Problem) -> None:
    shown = mi300x_examples.triton()[1]
    tuned = experiment(10, 0.9, shown)
    kernel = tuned.kernel.model_copy(update={"tuned_from": "k00002", "report": "kpack 2: 1.111x"})
    population = Population((*list(shown)[:2], tuned.model_copy(update={"kernel": kernel})))
    rows, _ = outcomes.tried(population, "k00002")
    assert [row["expected"] for row in rows] == ["-"] and outcomes.record(population) == "not known yet"


def test_prompts_stay_bounded_as_the_population_grows(problem: Problem) -> None:
    shown = mi300x_examples.triton()[1]
    seeds, failed = list(shown)[:2], shown.get("k00005")
    lengths: list[dict[str, int]] = []
    for count in (150, 450):
        trials = [experiment(n, 1 - n / 1000, shown) for n in range(10, 10 + count)]
        best = trials[-1].kernel.model_copy(update={"name": "k00003"})
        last = failed.model_copy(update={"kernel": failed.kernel.model_copy(update={"name": "k00999"})})
        population = Population((*seeds, trials[-1].model_copy(update={"kernel": best}), *trials, last))
        texts = write_prompts.prompts(mi300x_examples.assignment("triton"), population)
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
