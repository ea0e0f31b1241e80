"""Renders example prompts of every role into docs/prompts, a folder per example (`make prompts`).

This module has that of a model target: fp8 GEMM in Triton, predicted for MI300X. Problem, seeds and machine are real;
registers, times and the failure are made up.
"""

import contextlib
import sys
import threading
from pathlib import Path
from typing import TypeVar

from kernel_scientist import problems
from kernel_scientist.compile.source import KernelSource
from kernel_scientist.evaluate.predicted import merged
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.occupancy import occupancy
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import ModelError
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Evaluation, Launch, Prediction, Trial
from kernel_scientist.records.kernel import Experiment, Kernel, LlmCall, Verdict
from kernel_scientist.records.params import Budget, Coding, Knowledge, Llm
from kernel_scientist.records.source_line import SourceLine
from kernel_scientist.scientist import knowledge, showcase_examples
from kernel_scientist.scientist.llm.agent import LlmAgent
from kernel_scientist.scientist.llm.client import CallSpec, LlmClient, Parser
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.response_cache import ResponseCache
from kernel_scientist.scientist.prompts import Prompt
from kernel_scientist.scientist.proposals import (
    DesignInProgress,
    Draft,
    ExperimentTask,
    InFlight,
    Lesson,
    Lessons,
    Selection,
    missing,
)
from kernel_scientist.scientist.roles import FOCUSES, Assignment, CpuInfo, Step

T = TypeVar("T")
PROBLEM = "fp8-blockwise-gemm"
LDS_BYTES = 16384
NOTE = "<!-- Rendered by kernel_scientist.scientist.showcase; registers, times and the failure are made up. -->"
MORE_WARPS = Experiment(
    title="more warps",
    description="8 warps instead of 4 halve the registers per lane of a tile, so twice the waves fit.",
    rubric=("set num_warps to 8",),
    uplift=(5, 15),
    innovation=15,
)
TRANSPOSED = Experiment(
    title="transpose in registers",
    description="The operands are written to LDS 2 bytes at a time; transposing 4 x 4 bytes in registers needs half.",
    rubric=("ask the compiler for the in-thread transpose",),
    uplift=(5, 30),
    innovation=50,
)
LARGER = Experiment(
    title="larger tiles",
    description="Tiles of 128 x 64 read every line of B half as often: L2 is the limit of the large cases.",
    rubric=("set BLOCK_M to 128", "keep the masks of the last row of tiles"),
    uplift=(10, 25),
    innovation=20,
)
FINDINGS = {
    "fp8-cpu": "KC 256 instead of 128 gained in all cases: fewer loads and stores of C.",
    "fp8-mi300x": "8 warps instead of 4 gained alike in all cases (predicted); registers fell from 98 to 60.",
    "hip-mi300x": "Eight columns per workgroup instead of four gained alike in all cases: A is read half as often.",
}
"""A campaign's finding by example; that of the KernelBench file has none yet."""
UNDER_WAY = {
    "fp8-cpu": "register tile of 14 x 32 in AVX-512",
    "kernelbench-cpu": "linear layer in C++, the rest by torch",
}
"""What another writer does meanwhile, by example; of those that are not named: `PACKED`."""
PACKED = "both operands packed beforehand"
LOOP = {"valu": 128, "valu_packed": 8, "lds_write 16": 32, "vmem_load 128": 4, "vmem_load 32": 2}
"""Instructions per iteration that 8 warps share: with 4 warps as Triton compiles the seed, with 8 half as many."""
OWN = {"v_mfma_f32_32x32x16_fp8_fp8": 8, "lds_read 64": 16, "salu": 12, "wait": 12, "barrier": 2, "branch": 1}
"""Those of every wave: each has one 32 x 32 part of the tile, with 8 warps two waves the same one."""
OUTSIDE = {"valu": 448, "salu": 137, "vmem_load 128": 4, "lds_write 16": 32, "lds_read 64": 16, "vmem_store 64": 4}
LIMITS = {
    "l2": "L2 bandwidth: larger tiles read each line fewer times; partly used lines cost as much as whole ones",
    "latency": "latency: more waves per SIMD, more stages, more independent work per program",
}
CLOCK_US = 2.1e3
"""Cycles of the MI300X in a microsecond."""
HOT = (
    ("a = tl.load(a_ptrs", {"lds": 0.2, "vector": 0.13, "l1": 0.07}),
    ("b = tl.load(b_ptrs", {"lds": 0.2, "vector": 0.12, "l1": 0.07}),
    ("partial = tl.dot(a, b", {"matrix": 0.14}),
    ("scale = tl.load(a_scale_ptrs", {"l1": 0.02}),
    ("acc += partial * scale", {"vector": 0.02}),
)
"""Lines of the tiled kernel, as the machine counts them for m1024-n512-k7168, and their shares of a program's time."""
FAULT = (
    "memory: out-of-bounds read of a_ptr in gemm_kernel, line 94 (a = tl.load(a_ptrs)): reads element 8192 of a_ptr, "
    "which has 8192; program (0, 0, 0) element 8192"
)


class PromptRecorder(LlmClient):
    """A client that records prompts and calls no model."""

    def __init__(self) -> None:
        cache = ResponseCache(environment.cache_folder() / "showcase")
        llm = Llm(judge=Coding(model="none"))
        super().__init__(llm, cache, LlmBudget(Budget()), "showcase", threading.Event())
        self.prompts: dict[str, Prompt] = {}

    def ask(self, spec: CallSpec, prompt: Prompt, parse: Parser[T]) -> tuple[T, tuple[LlmCall, ...]]:
        """Record the prompt and raise ModelError."""
        self.prompts[spec.role] = prompt
        raise ModelError("no model is called")


def rendered(name: str) -> dict[str, str]:
    """Return an example's prompt per role."""
    return prompts(*EXAMPLES[name](), FINDINGS.get(name, ""), UNDER_WAY.get(name, PACKED))


def predicted() -> tuple[Assignment, Population]:
    """Return fp8 GEMM in Triton, predicted for MI300X."""
    problem = problems.find(PROBLEM)
    return assignment(problem), population(problem)


def assignment(problem: Problem) -> Assignment:
    """Return the assignment: Triton kernels predicted for MI300X."""
    return Assignment(
        problem=problem,
        profile=merged(problem, "auto"),
        language="triton",
        target="model-mi300x",
        cpu=CpuInfo(caches={}, features=frozenset(), vector_bytes=64, cores=1),
        peaks=MI300X,
        gpu=MI300X,
        knowledge=knowledge.load([environment.root() / path for path in Knowledge().paths]),
        knowledge_tokens=Knowledge().tokens,
        most_findings=Knowledge().findings,
        compiler="Triton 3.7.1",
    )


def prompts(
    assignment: Assignment, population: Population, finding: str = "", under_way: str = PACKED
) -> dict[str, str]:
    """Return every role's prompt for a population whose last kernel failed, on that kernel's base and reference.

    finding: the only one of the campaign; under_way: the title of another writer's experiment.
    """
    recorder = PromptRecorder()
    agent = LlmAgent(assignment, recorder)
    *others, failed = population
    kernel = failed.kernel
    assert kernel.experiment is not None and kernel.base is not None
    earlier, base = Population(tuple(others)), kernel.base
    reference = kernel.reference or population.get(base).kernel.base or base
    others_work = (InFlight(f"k{len(population) + 1:05d}", base, under_way, "writing"),)
    step = Step.of(0, "showcase", 2, others_work, (DesignInProgress(3, base, FOCUSES[1]),), FOCUSES[0])
    selection = Selection(
        base=base,
        reference=reference,
        rationale=f"{base} is the fastest kernel; its parent shows its gain.",
    )
    task = ExperimentTask(
        name=kernel.name, base=base, reference=reference, experiment=kernel.experiment, in_flight=others_work
    )
    found = (Lesson(name="f001", text=finding, kernels=(base,), date="2026-01-01"),) if finding else ()
    lessons = Lessons(findings=found)
    for call in (
        lambda: agent.select(population, lessons, step),
        lambda: agent.design(population, selection, lessons, step),
        lambda: agent.write(earlier, task, lessons),
        lambda: agent.repair(earlier, task, failed, lessons),
        lambda: agent.summarise(population, lessons, step),
        lambda: agent.judge(earlier, task, _drafts(earlier.get(base).kernel.source, kernel.source)),
    ):
        with contextlib.suppress(ModelError):
            call()
    return {role: _markdown(prompt) for role, prompt in recorder.prompts.items()}


def population(problem: Problem) -> Population:
    """Return two seeds, an experiment that succeeded, one that changed nothing and one that failed."""
    naive, tiled = (file.read_text() for file in problem.seeds("triton"))
    warps = KernelSource(tiled).with_tunables({"num_warps": 8}).text
    larger = KernelSource(warps).with_tunables({"BLOCK_M": 128}).text.replace(", mask=in_m[:, None])", ")", 1)
    wrong = Evaluation(verdict=Verdict.INCORRECT, reason=FAULT, evidence=(FAULT,), by_model=True)
    report = "num_warps is 8; nothing else was changed."
    trials = (
        (_kernel(1, naive), _predicted(problem, 5.0, 4, 148)),
        (_kernel(2, tiled), _predicted(problem, 1.0, 4, 98, tiled)),
        (_kernel(3, warps, base=2, experiment=MORE_WARPS, report=report), _predicted(problem, 0.9, 8, 60, warps)),
        (_kernel(4, tiled + "# transposed\n", base=2, experiment=TRANSPOSED), _predicted(problem, 1.0, 4, 98)),
        (_kernel(5, larger, base=3, experiment=LARGER), wrong),
    )
    return Population(tuple(Trial(kernel=kernel, evaluation=evaluation) for kernel, evaluation in trials))


def _kernel(
    number: int, source: str, base: int | None = None, experiment: Experiment | None = None, report: str = ""
) -> Kernel:
    return Kernel(
        name=f"k{number:05d}",
        language="triton",
        source=source,
        base=f"k{base:05d}" if base else None,
        reference=f"k{base - 1:05d}" if base else None,
        experiment=experiment,
        generation=base - 1 if base else 0,
        report=report,
    )


def _predicted(problem: Problem, factor: float, warps: int, registers: int, lined: str = "") -> Evaluation:
    """Return an evaluation with predictions of `factor` times the tiled seed's time. `lined`: the file whose lines are
    named in the case that is furthest from its floor."""
    cases = problem.profile("full").benchmarks
    fits = occupancy("gfx942", warps, registers, LDS_BYTES)
    code = CodeObject(
        kernel="gemm_kernel",
        arch="gfx942",
        digest="",
        num_warps=warps,
        vgpr=registers,
        sgpr=52,
        lds_bytes=LDS_BYTES,
        code_bytes=5640,
        occupancy=fits.waves,
        limited_by=fits.limited_by,
        mix=(OUTSIDE, {name: count * 4 // warps for name, count in LOOP.items()} | OWN),
    )
    grids = [(c.name, c.whole("m") * c.whole("n") // 4096) for c in cases]
    launches = tuple(Launch(case=c, kernel=code.kernel, grid=(n, 1, 1), num_warps=warps, code=0) for c, n in grids)
    writes = LOOP["lds_write 16"] * 4 // warps
    finding = (
        f"gemm_kernel: {writes} lds_write instructions of 16 bits per lane in its loops; 128 bits per lane are possible"
    )
    report = CompileReport(ok=True, compiler="triton", objects=(code,), launches=launches, findings=(finding,))
    predictions: list[Prediction] = []
    for case in cases:
        floor = roofline_us(problem.work(case), MI300X)
        limit = "l2" if case.whole("m") > 1024 else "latency"
        latency = 4.2 * floor + 6 if limit == "latency" else 2.0 * floor
        parts = {"l2": 4.0 * floor, "latency": latency, "vector": 2.8 * floor, "matrix": 1.5 * floor, "launch": 5.0}
        predictions.append(
            Prediction(
                case=case.name,
                machine="MI300X",
                time_us=factor * (4.5 * floor + 10),
                floor_us=floor,
                limited_by=limit,
                breakdown_us={name: factor * us for name, us in parts.items()},
                words=(f"limited by {LIMITS[limit]}",),
            )
        )
    worst = min(range(len(cases)), key=lambda n: predictions[n].floor_us / predictions[n].time_us)
    predictions[worst] = predictions[worst].model_copy(update={"lines": _lines(lined, predictions[worst])})
    return Evaluation(verdict=Verdict.OK, compile=report, predictions=tuple(predictions), by_model=True)


def _lines(source: str, prediction: Prediction) -> tuple[SourceLine, ...]:
    """Return the hot lines of a file on a case."""
    texts, found = source.splitlines(), list[SourceLine]()
    cycles = prediction.breakdown_us["latency"] * CLOCK_US
    for beginning, causes in HOT:
        for number, text in enumerate(map(str.strip, texts), 1):
            if text.startswith(beginning):
                share = sum(causes.values())
                found.append(
                    SourceLine(
                        kernel="gemm_kernel",
                        line=number,
                        text=text,
                        share=share,
                        cycles=share * cycles,
                        causes=causes,
                        limit=prediction.limited_by,
                        of_limit=share,
                    )
                )
    return tuple(found)


def _drafts(base: str, other: str) -> list[Draft]:
    """Return two drafts: the base with a comment, and another kernel."""
    changed = other if not missing(other) else f"{base}# as planned\n"
    return [
        Draft(source=f"{base}# done\n", report="Implemented as planned."),
        Draft(source=changed, report="As planned; nothing else was changed."),
    ]


def _markdown(prompt: Prompt) -> str:
    return "\n".join([NOTE, *(f"\n<!-- {m.role} -->\n\n{m.content.strip()}\n" for m in prompt.messages)])


EXAMPLES = {
    "fp8-cpu": showcase_examples.fp8_on_cpu,
    "fp8-mi300x": predicted,
    "hip-mi300x": showcase_examples.hip,
    "kernelbench-cpu": showcase_examples.kernelbench_on_cpu,
}


def main(folder: Path) -> None:
    """Write the examples."""
    for name in EXAMPLES:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for role, markdown in rendered(name).items():
            (folder / name / f"{role}.md").write_text(markdown)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else environment.root() / "docs" / "prompts")
