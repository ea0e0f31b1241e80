"""The rule-based agent: the C++ catalogue's edits are correct, its choices follow the measurements."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist import problems
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Experiment, Kernel, Verdict, digest
from kernel_scientist.scientist.playbook.agent import RuleBasedAgent
from kernel_scientist.scientist.playbook.amx import AMX, amx_tiles
from kernel_scientist.scientist.playbook.cpp import CATALOGUE
from kernel_scientist.scientist.proposals import ExperimentTask, Lessons, pick
from kernel_scientist.scientist.roles import Assignment, CpuInfo, Step
from tests.conftest import ROOT
from tests.trials import trial

THOROUGH = ["identity", "rmsnorm", "fp8-blockwise-gemm"]
"""Problems of which every variant is tried; of the others one variant of each entry."""
PLAIN = CpuInfo(caches={"L1": 32 << 10, "L2": 256 << 10}, features=frozenset(), vector_bytes=16, cores=1)
MODERN = CpuInfo(
    caches={"L1": 48 << 10, "L2": 2 << 20},
    features=frozenset({"avx512f", "avx512bw", "avx512vl", "avx512_bf16"}),
    vector_bytes=64,
    cores=8,
)
MATRIX = replace(MODERN, features=MODERN.features | AMX)
needs_amx = pytest.mark.skipif(
    not CpuInfo.of_this_machine().features >= AMX, reason=f"this CPU lacks some of {', '.join(sorted(AMX))}"
)
AMX_PROBLEMS = ["bf16-gemm", "fp8-blockwise-gemm"]


def make_agent(problem: str, cpu: CpuInfo | None = None) -> RuleBasedAgent:
    loaded = load(ROOT / "problems" / problem)
    return RuleBasedAgent(Assignment(loaded, loaded.profile("cpu"), "cpp", "cpu", cpu or CpuInfo.of_this_machine()))


def make_task(base: Kernel, reference: Kernel, plan: Experiment) -> ExperimentTask:
    return ExperimentTask(name="k09999", base=base.name, reference=reference.name, experiment=plan)


def seeds(problem: str) -> list[Kernel]:
    files = load(ROOT / "problems" / problem).seeds("cpp")
    return [Kernel(name=f"k{i:05d}", language="cpp", source=f.read_text()) for i, f in enumerate(files, start=1)]


def measured(kernel: Kernel, ratio: float, **over: tuple[float, float]) -> Trial:
    return Trial(kernel=kernel, evaluation=trial(kernel.name, ratio, over).evaluation)


def test_the_catalogue_is_well_formed() -> None:
    assert len(CATALOGUE) >= 15 and len({t.name for t in CATALOGUE}) == len(CATALOGUE)
    assert len({t.name[:10] for t in CATALOGUE}) == len(CATALOGUE)  # MLflow's charts truncate values there
    for entry in CATALOGUE:
        assert entry.hypothesis.endswith(".") and entry.uplift[0] <= entry.uplift[1] and 0 <= entry.innovation <= 100


@pytest.mark.slow
@pytest.mark.parametrize("problem", sorted({*problems.names()} - {"fp8-blockwise-gemm-rowmajor"}))
def test_every_edit_gives_a_correct_kernel(problem: str, evaluator_for: Callable[[str], Evaluator]) -> None:
    evaluator, agent = evaluator_for(problem), make_agent(problem)
    tried = 0
    for kernel in seeds(problem):
        seen = set[str]()
        for transformation, variant in agent.variants(kernel.source, kernel.source):
            if problem not in THOROUGH and transformation.name in seen:
                continue
            seen.add(transformation.name)
            edited = Kernel(name="k00009", language="cpp", source=variant.source.text)
            evaluation = evaluator.check(edited, evaluator.compile(edited))
            assert evaluation.verdict is Verdict.OK, (transformation.name, variant.detail, evaluation.reason)
            assert variant.rubric and edited.digest != kernel.digest
            tried += 1
    assert tried >= 10


def amx_core(problem: str, cpu: CpuInfo = MATRIX) -> Kernel:
    """The blocked seed with the AMX core."""
    (variant,) = amx_tiles(KernelSource(seeds(problem)[1].source), cpu)
    return Kernel(name="k00008", language="cpp", source=variant.source.text)


@needs_amx
@pytest.mark.slow
@pytest.mark.parametrize("problem", AMX_PROBLEMS)
def test_every_edit_of_an_amx_kernel_is_correct(problem: str, evaluator_for: Callable[[str], Evaluator]) -> None:
    evaluator, agent, base = evaluator_for(problem), make_agent(problem), amx_core(problem)
    sources: dict[str, str] = {}
    for transformation, variant in agent.variants(base.source, base.source):
        sources.setdefault(variant.source.text, transformation.name)
        if transformation.name == "overlap-scaling":  # the two changes of structure together
            for other, both in agent.variants(variant.source.text, variant.source.text):
                if other.name == "decode-next":
                    sources[both.source.text] = "overlap-scaling and decode-next"
    for tunable, choices in KernelSource(base.source).choices.items():  # the tuner may take any of them
        for choice in (choices[0], choices[-1]):
            sources.setdefault(KernelSource(base.source).with_tunables({tunable: choice}).text, f"{tunable} = {choice}")
    assert len(sources) >= 15
    for source, title in sources.items():
        edited = Kernel(name="k00009", language="cpp", source=source)
        evaluation = evaluator.check(edited, evaluator.compile(edited))
        assert evaluation.verdict is Verdict.OK, (title, evaluation.reason)


@needs_amx
def test_the_amx_core_decodes_every_fp8_value() -> None:
    import torch

    rows, columns, depth = 256, 64, 128
    data = (
        torch.zeros(depth, rows, dtype=torch.uint8),
        torch.zeros(depth, columns, dtype=torch.uint8),
        torch.ones(depth // 128, rows),
        torch.ones(depth // 128, 1),
    )
    data[0][5] = torch.arange(rows).to(torch.uint8)
    data[1][5] = 0x40  # 1.0
    a, b = (x.view(torch.float8_e4m3fnuz).T for x in data[:2])
    module: dict[str, Callable[..., torch.Tensor]] = {}
    exec(amx_core("fp8-blockwise-gemm").source, module)
    got = module["custom_kernel"]((a, b, data[2].T, data[3].T, torch.zeros(rows, columns, dtype=torch.bfloat16)))
    torch.testing.assert_close(got.float(), a.float()[:, 5:6].expand(rows, columns), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("problem", sorted(problems.names()))
@pytest.mark.parametrize("missing", [None, *sorted(AMX)])
def test_without_one_of_its_features_nothing_uses_amx(problem: str, missing: str | None) -> None:
    agent = make_agent(problem, replace(MATRIX, features=MATRIX.features - {missing}) if missing else MATRIX)
    names = {
        transformation.name
        for kernel in seeds(problem)
        for transformation, variant in agent.variants(kernel.source, kernel.source)
        if "_tile_" in variant.source.text
    }
    assert names == ({"amx-tiles"} if problem in AMX_PROBLEMS and missing is None else set())


@pytest.mark.parametrize("problem", AMX_PROBLEMS)
def test_an_amx_kernel_is_designed_first_and_its_edits_fit_it(problem: str) -> None:
    agent, blocked = make_agent(problem, MATRIX), seeds(problem)[1]
    plans = _plans(agent, Population((measured(blocked, 2.0),)))
    assert "amx-tiles: tdpbf16ps" in {p.title for p in pick(plans[:5])}
    base = amx_core(problem)
    names = {t.name for t, _ in agent.variants(base.source, base.source)}
    assert names >= ({"overlap-scaling", "decode-next"} if problem == "fp8-blockwise-gemm" else {"l2-depth"})
    assert not names & {"amx-tiles", "bf16-dot", "register-tile", "vector-width", "vector-decode", "unroll"}


@pytest.mark.parametrize("cpu", [PLAIN, MODERN], ids=["plain", "modern"])
def test_preconditions_depend_on_the_machine(cpu: CpuInfo) -> None:
    agent = make_agent("fp8-blockwise-gemm", cpu)
    kernel = seeds("fp8-blockwise-gemm")[1]
    names = {t.name for t, _ in agent.variants(kernel.source, kernel.source)}
    assert ("bf16-dot" in names) == (cpu is MODERN) and ("flag-wide-vectors" in names) == (cpu is MODERN)
    widths = [
        KernelSource(v.source.text).tunables["VEC"]
        for t, v in agent.variants(kernel.source, kernel.source)
        if t.name == "vector-width"
    ]
    assert widths == ([16] if cpu is MODERN else [4])


def test_designs_have_five_plans_and_never_repeat_a_source() -> None:
    agent = make_agent("fp8-blockwise-gemm", MODERN)
    naive, blocked = seeds("fp8-blockwise-gemm")
    population = Population((measured(naive, 0.1), measured(blocked, 2.0, k00001=(15.0, 25.0))))
    for number in range(3, 12):
        step = Step.of(number, "test", 1)
        selection = agent.select(population, Lessons(), step)
        design = agent.design(population, selection, Lessons(), step)
        assert 5 <= len(design.avenues) <= 10 and len(design.plans) == 5
        base, reference = population.get(selection.base).kernel, population.get(selection.reference).kernel
        tasks = [make_task(base, reference, plan) for plan in design.plans]
        sources = {digest(agent.write(population, t, Lessons()).source) for t in tasks}
        assert len(sources) == 5 and not any(map(population.has_source, sources))
        plan = pick(design.plans, 1)[0]
        draft = agent.write(population, make_task(base, reference, plan), Lessons())
        name = f"k{number:05d}"
        kernel = Kernel(
            name=name, language="cpp", source=draft.source, base=base.name, reference=reference.name, experiment=plan
        )
        population.add(measured(kernel, 1.9, **{base.name: (0.8, 0.99)}))


def test_predictions_use_earlier_measurements() -> None:
    agent = make_agent("fp8-blockwise-gemm", MODERN)
    _, blocked = seeds("fp8-blockwise-gemm")
    population = Population((measured(blocked, 2.0),))
    plan = next(p for p in _plans(agent, population) if p.title.startswith("vector-width"))
    draft = agent.write(population, make_task(blocked, blocked, plan), Lessons())
    worse = Kernel(name="k00003", language="cpp", source=draft.source, base=blocked.name, experiment=plan)
    before, after = population, Population((*population, measured(worse, 1.0, **{blocked.name: (0.4, 0.6)})))
    lessons = agent.summarise(after, Lessons(), random.Random(0))
    (finding,) = lessons.findings
    expected = "vector-width: -50 % [-60, -40] of speed on average over 1 trials, measured beside their bases"
    assert finding.text == expected and finding.kernels == ("k00003",)
    assert agent.summarise(before, lessons, random.Random(0)).findings[0].retracted
    later = agent._plan(after, next(t for t in CATALOGUE if t.name == "vector-width"), _variant(agent, blocked))
    assert later.uplift[1] < plan.uplift[1] and later.innovation < plan.innovation


def test_noise_is_no_finding() -> None:
    """Speedups over the reference of different runs say +400 %; beside the base nothing was resolved."""
    agent = make_agent("fp8-blockwise-gemm", MODERN)
    _, blocked = seeds("fp8-blockwise-gemm")
    population = Population((measured(blocked, 2.0),))
    plan = next(p for p in _plans(agent, population) if p.title.startswith("vector-width"))
    for number, over in ((3, {blocked.name: (0.3, 3.0)}), (4, {})):
        kernel = Kernel(name=f"k{number:05d}", language="cpp", source=f"# {number}", base=blocked.name, experiment=plan)
        population.add(measured(kernel, 10.0, **over))
    (finding,) = agent.summarise(population, Lessons(), random.Random(0)).findings
    assert finding.text == ("vector-width: no gain or loss was measured in 2 trials: 2 without a resolved gain")
    later = agent._plan(population, next(t for t in CATALOGUE if t.name == "vector-width"), _variant(agent, blocked))
    assert later.uplift == plan.uplift and "not yet measured" in later.description


def test_a_models_plan_is_written_as_the_nearest_entry() -> None:
    agent, kernel = make_agent("identity", MODERN), seeds("identity")[1]
    text = "Bypass the caches with streaming stores: output is not read again"
    plan = Experiment(title="non-temporal output", description=text, rubric=(), uplift=(0, 1), innovation=1)
    draft = agent.write(Population((measured(kernel, 1.0),)), make_task(kernel, kernel, plan), Lessons())
    assert "streaming-store" in draft.report and draft.source != kernel.source


def test_nothing_to_apply_is_an_error() -> None:
    agent, empty = make_agent("identity"), Kernel(name="k1", language="cpp", source="def custom_kernel(d): ...\n")
    plan = Experiment(title="dream: bigger", description="", rubric=(), uplift=(0, 1), innovation=1)
    with pytest.raises(ValueError, match="does not apply"):
        agent.write(Population((measured(empty, 1.0),)), make_task(empty, empty, plan), Lessons())
    with pytest.raises(ValueError, match="nothing to start from"):
        agent.select(Population(), Lessons(), random.Random(0))


plans = st.builds(
    lambda low, width, innovation, n: Experiment(
        title=f"t{n}", description="", rubric=(), uplift=(low, low + width), innovation=innovation
    ),
    st.floats(-50, 50),
    st.floats(0, 100),
    st.integers(0, 100),
    st.integers(0, 10**6),
)


@given(st.lists(plans, min_size=5, max_size=5, unique_by=lambda p: p.title))
def test_three_of_five_plans_are_picked_by_the_papers_rule(five: list[Experiment]) -> None:
    first, second, third = pick(five)
    rest = [p for p in five if p is not first]
    assert first.innovation == max(p.innovation for p in five)
    assert second.uplift[1] == max(p.uplift[1] for p in rest)
    assert third.uplift[0] == max(p.uplift[0] for p in rest if p is not second)


def _plans(agent: RuleBasedAgent, population: Population) -> list[Experiment]:
    plans: list[Experiment] = []
    for seed in range(5):
        step = Step.of(seed, "test", 1)
        plans += agent.design(population, agent.select(population, Lessons(), step), Lessons(), step).plans
    return plans


def _variant(agent: RuleBasedAgent, kernel: Kernel) -> object:
    return next(v for t, v in agent.variants(kernel.source, kernel.source) if t.name == "vector-width")
