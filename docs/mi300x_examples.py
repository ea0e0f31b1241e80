"""Examples for the prompts in docs/prompts: fp8 GEMM in Triton and in HIP for an MI300X that is not there.

Kernels are evaluated by the model target, once: docs/prompts/evaluations keeps what it found. Plans and reports are
made up.
"""

from pathlib import Path

from docs.cpu_examples import CPU, FP8, kernel, population
from kernel_scientist import problems
from kernel_scientist.campaign import single
from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.evaluation.predicted import merged
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Experiment, Kernel, Language
from kernel_scientist.records.params import Knowledge, load
from kernel_scientist.scientist import knowledge, symptoms
from kernel_scientist.scientist.roles import Assignment

A_LOAD = "tl.load(a_ptrs, mask=in_m[:, None])"
EVALUATIONS = environment.root() / "docs" / "prompts" / "evaluations"
COMPILERS = {"triton": "Triton 3.7.1", "hip": "hipcc, HIP 6.4.43483"}
LARGER = Experiment(
    title="tiles of 128 x 128",
    description="Tiles of 128 x 128 read every byte of A and B half as often as tiles of 64 x 64, and L2 is the limit "
    "of the large cases. With 8 waves accumulator and partial sum take 32 registers per lane each, not 64.",
    rubric=("set BLOCK_M and BLOCK_N to 128", "set num_warps to 8"),
    uplift=(10, 40),
    innovation=20,
)
DEEPER = Experiment(
    title="three pipeline stages",
    description="One more tile of A and B is loaded ahead, so that more of the latency of memory is hidden.",
    rubric=("set num_stages to 3",),
    uplift=(5, 20),
    innovation=15,
)
UNMASKED = Experiment(
    title="A is loaded without a mask",
    description="Every load of A selects an offset per lane by its mask, in the loop over k. Rows that are clamped to "
    "the last one need no mask: what they add to the accumulator is not stored.",
    rubric=("clamp the rows in A's addresses to m - 1 before the loop", "drop the mask of A's load, keep the store's"),
    uplift=(3, 15),
    innovation=30,
)
WIDER = Experiment(
    title="eight columns per workgroup",
    description="Its waves read the same bytes of A, which then come from L1 for 8 columns instead of 4: half as many "
    "reads of A from L2.",
    rubric=("set TILE_N to 8",),
    uplift=(20, 60),
    innovation=20,
)
SHARED = Experiment(
    title="columns of B in LDS",
    description="All lanes of a wave load the same byte of B: from LDS one of the two byte loads per product no longer "
    "goes through L1, which limits every case.",
    rubric=("copy 128 k of the workgroup's 8 columns to __shared__ memory", "read B from there in the loop over kk"),
    uplift=(10, 40),
    innovation=40,
)


def triton() -> tuple[Assignment, Population]:
    """Return fp8 GEMM in Triton: two seeds, an experiment that gained, one that did not, and one that failed."""
    return assignment("triton"), population([(one, evaluation(one)) for one in triton_kernels()])


def hip() -> tuple[Assignment, Population]:
    """Return fp8 GEMM in HIP: the seed, an experiment that gained, and one that failed."""
    return assignment("hip"), population([(one, evaluation(one)) for one in hip_kernels()])


def triton_kernels() -> tuple[Kernel, ...]:
    """Return the kernels of the example in Triton."""
    naive, tiled = (file.read_text() for file in problems.find(FP8).seeds("triton"))
    larger = KernelSource(tiled).with_tunables({"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8}).text
    deeper = KernelSource(tiled).with_tunables({"num_stages": 3}).text
    unmasked = _edited(larger, (A_LOAD, "tl.load(a_ptrs)"))
    return (
        kernel("triton", 1, naive),
        kernel("triton", 2, tiled),
        kernel("triton", 3, larger, 2, LARGER, "The tiles are 128 x 128, with 8 waves; nothing else was changed."),
        kernel("triton", 4, deeper, 2, DEEPER, "num_stages is 3; nothing else was changed."),
        kernel("triton", 5, unmasked, 3, UNMASKED),
    )


def triton_drafts() -> list[str]:
    """Return two drafts of the experiment that failed: that one, and one that clamps the rows as planned."""
    wrong, rows = triton_kernels()[-1].source, "offs_k[None, :] * m + {}[:, None]"
    return [wrong, _edited(wrong, (rows.format("offs_m"), rows.format("tl.minimum(offs_m, m - 1)")))]


def hip_drafts() -> list[str]:
    """Return two drafts of the experiment that failed: that one, and one with the barrier that it lacks."""
    wrong, after = hip_kernels()[-1].source, "        for (int kk = block * SCALED;"
    return [wrong, _edited(wrong, (after, f"        __syncthreads();  // before it is read\n{after}"))]


def hip_kernels() -> tuple[Kernel, ...]:
    """Return the kernels of the example in HIP."""
    (naive,) = (file.read_text() for file in problems.find(FP8).seeds("hip") if file.stem == "hip_naive")
    wider = KernelSource(naive).with_tunables({"TILE_N": 8}).text
    return (
        kernel("hip", 1, naive),
        kernel("hip", 2, wider, 1, WIDER, "TILE_N is 8; nothing else was changed."),
        kernel("hip", 3, _with_columns_in_lds(wider), 2, SHARED),
    )


def evaluation(one: Kernel) -> Evaluation:
    """Return what the MI300X's model target found for a kernel. Raises FileNotFoundError before `evaluate` has run."""
    return Evaluation.model_validate_json(_recorded(one).read_text())


def evaluate(again: bool) -> None:
    """Evaluate the MI300X's kernels on its model target: those that were not evaluated yet, or all."""
    params = load(None, ["target=model:mi300x", f"problem={FP8}"])
    for one in (*triton_kernels(), *hip_kernels()):
        if again or not _recorded(one).exists():
            with evaluation_context(params.model_copy(update={"language": one.language})) as context:
                found = single.evaluated(context, one, [context.target.reference()])
            unneeded = {"environment": {}, "sandbox": (), "seconds": {}}
            _recorded(one).write_text(found.model_copy(update=unneeded).model_dump_json(exclude_defaults=True))


def _recorded(one: Kernel) -> Path:
    return EVALUATIONS / f"{one.language}-{one.name}-{one.digest[:12]}.json"


def assignment(language: Language) -> Assignment:
    """Return the assignment: kernels predicted for MI300X."""
    problem = problems.find(FP8)
    return Assignment(
        problem=problem,
        profile=merged(problem, "auto"),
        language=language,
        target="model-mi300x",
        by_model=True,
        cpu=CPU,
        peaks=MI300X,
        gpu=MI300X,
        knowledge=(documents := knowledge.load(folders := [environment.root() / path for path in Knowledge().paths])),
        knowledge_tokens=Knowledge().tokens,
        symptoms=symptoms.load(folders, documents),
        most_findings=Knowledge().findings,
        compiler=COMPILERS[language],
    )


def _with_columns_in_lds(source: str) -> str:
    """Return the kernel with the workgroup's columns of B in LDS, but without the barrier before they are read."""
    return _edited(
        source,
        (
            "    if (i >= m || j >= n) return;\n",
            "    __shared__ unsigned char tile[SCALED][TILE_N];  // of B\n"
            "    int lane = threadIdx.y * TILE_M + threadIdx.x, first = blockIdx.y * TILE_N;\n"
            "    bool inside = i < m;  // n is a multiple of TILE_N\n",
        ),
        (
            "        float part = 0;\n",
            "        float part = 0;\n"
            "        for (int at = lane; at < SCALED * TILE_N; at += TILE_M * TILE_N)\n"
            "            tile[at / TILE_N][at % TILE_N] =\n"
            "                b[(long)(block * SCALED + at / TILE_N) * n + first + at % TILE_N];\n",
        ),
        (
            "            part += from_fp8(a[(long)kk * m + i]) * from_fp8(b[(long)kk * n + j]);\n        sum +=",
            "            part += from_fp8(inside ? a[(long)kk * m + i] : 0) *"
            " from_fp8(tile[kk - block * SCALED][threadIdx.y]);\n"
            "        __syncthreads();  // before it is written again\n        if (inside) sum +=",
        ),
        ("    c[(long)i * n + j] =", "    if (inside) c[(long)i * n + j] ="),
    )


def _edited(source: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in source, before
        source = source.replace(before, after, 1)
    return source
