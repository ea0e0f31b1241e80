"""Prompts as a campaign on a GPU's model gives them: code objects, predicted limits, what the memory checker found.

Problem, seeds and machine are the laboratory's own; registers, times and the defect are an example's, made up.
"""

from collections.abc import Callable

from kernel_scientist.compile.source import KernelSource
from kernel_scientist.evaluate.predicted import merged
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.hardware.peaks import floor_us
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Evaluation, Launch, Prediction, Trial
from kernel_scientist.records.kernel import Experiment, Kernel, Verdict
from kernel_scientist.scientist.context.knowledge import Digest
from kernel_scientist.scientist.roles import Assignment, Commission, Facts, Lessons, Mind, Selection, Turn

LARGER = Experiment(
    title="larger tiles",
    description="Tiles of 128 x 64 read every line of A half as often: L2 is the limit of the large cases.",
    rubric=("set BLOCK_M to 128", "keep the masks of the last row of tiles"),
    uplift=(10, 25),
    innovation=20,
)
LIMITS = {
    "l2": "L2's bandwidth: larger tiles read each line fewer times; half-used lines cost whole ones",
    "latency": "latency: more waves per SIMD, more stages, more independent work per program",
}


def assignment(problem: Problem, facts: Facts, digests: tuple[Digest, ...], tokens: int, findings: int) -> Assignment:
    """Return what a mind works on when fp8 GEMMs in Triton are predicted for MI300X."""
    profile = merged(problem, "auto")
    machine = {"target": "model-mi300x", "facts": facts, "peaks": MI300X, "gpu": MI300X}
    rules = {"knowledge": digests, "knowledge_tokens": tokens, "most_findings": findings}
    return Assignment(problem=problem, profile=profile, language="triton", **machine, **rules)  # pyright: ignore


def plays(mind: Mind, problem: Problem) -> dict[str, Callable[[], object]]:
    """Return the calls that render one prompt each, by the role that is asked."""
    kernels = population(problem)
    selection = Selection(base="k00002", reference="k00001", rationale="k00002 is the best; k00001 is the other seed.")
    order = Commission(name="k00003", base="k00002", reference="k00001", experiment=LARGER)
    failed = kernels.get("k00003")
    without = Population(tuple(t for t in kernels if t is not failed))
    turn = Turn.of(0, "showcase", 1)
    return {
        "designer": lambda: mind.design(kernels, selection, Lessons(), turn),
        "repairer": lambda: mind.repair(without, order, failed, Lessons()),
    }


def population(problem: Problem) -> Population:
    """Return two seeds that were predicted, and an experiment that failed."""
    naive, tiled = (file.read_text() for file in problem.seeds("triton"))
    larger = KernelSource(tiled).with_tunables({"BLOCK_M": 128}).text.replace(", mask=in_m[:, None])", ")", 1)
    kernels = (
        Kernel(name="k00001", language="triton", source=naive),
        Kernel(name="k00002", language="triton", source=tiled),
        Kernel(
            name="k00003",
            language="triton",
            source=larger,
            base="k00002",
            reference="k00001",
            experiment=LARGER,
            generation=1,
        ),
    )
    words = (
        "memory: out-of-bounds read of a_ptr in gemm_kernel, line 94 (a = tl.load(a_ptrs)): reads outside the tensor; "
        "1 of 3 programs do: a mask is missing or wrong at the edge; program (2, 0, 0) element 24640"
    )
    wrong = Evaluation(verdict=Verdict.INCORRECT, reason=words, evidence=(words,), by_model=True)
    evaluations = (_predicted(problem, 5.0, 148), _predicted(problem, 1.0, 98), wrong)
    return Population(tuple(Trial(kernel=k, evaluation=e) for k, e in zip(kernels, evaluations, strict=True)))


def _predicted(problem: Problem, slower: float, registers: int) -> Evaluation:
    cases = problem.profile("full").benchmarks
    code = CodeObject(
        kernel="gemm_kernel",
        arch="gfx942",
        digest="",
        num_warps=4,
        vgpr=registers,
        sgpr=52,
        lds_bytes=16384,
        code_bytes=5640,
        occupancy=512 // registers,
        limited_by="registers",
        mfma={"v_mfma_f32_32x32x16_fp8_fp8": 16},
        accesses={"buffer_load 128": 8, "ds_write 16": 64, "ds_read 64": 32, "buffer_store 64": 4},
        waits=25,
        barriers=3,
    )
    launches = tuple(
        Launch(case=c.name, kernel="gemm_kernel", grid=(c.sizes["m"] * c.sizes["n"] // 4096, 1, 1), num_warps=4, code=0)
        for c in cases
    )
    finding = "gemm_kernel: 32 lds_write instructions of 16 bits per lane in its loops; 128 are possible"
    report = CompileReport(ok=True, compiler="triton", objects=(code,), launches=launches, findings=(finding,))
    predictions: list[Prediction] = []
    for case in cases:
        floor = floor_us(problem.work(case), MI300X)
        limit = "l2" if case.sizes["m"] > 1024 else "latency"
        parts = {"l2": 4.0 * floor, "latency": 40.0, "vector": 2.8 * floor, "matrix": 1.5 * floor, "launch": 5.0}
        predictions.append(
            Prediction(
                case=case.name,
                machine="MI300X",
                time_us=slower * (4.5 * floor + 10),
                floor_us=floor,
                limited_by=limit,
                breakdown_us={name: slower * us for name, us in parts.items()},
                words=(f"limited by {LIMITS[limit]}",),
            )
        )
    return Evaluation(verdict=Verdict.OK, compile=report, predictions=tuple(predictions), by_model=True)
