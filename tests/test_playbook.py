"""The playbook: its catalogue edits correctly, its choices follow the measurements."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compile.source import KernelSource
from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import load
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Experiment, Kernel, Verdict, digest
from kernel_scientist.scientist.playbook.catalogue_cpp import CATALOGUE
from kernel_scientist.scientist.playbook.mind import Playbook
from kernel_scientist.scientist.roles import Assignment, Commission, Facts, Lessons, Turn, pick
from tests.conftest import ROOT
from tests.test_population import trial

PROBLEMS = ["identity", "rmsnorm", "fp8-blockwise-gemm"]
PLAIN = Facts(caches={"L1": 32 << 10, "L2": 256 << 10}, features=frozenset(), vector_bytes=16, cores=1)
MODERN = Facts(
    caches={"L1": 48 << 10, "L2": 2 << 20},
    features=frozenset({"avx512f", "avx512bw", "avx512vl", "avx512_bf16"}),
    vector_bytes=64,
    cores=8,
)


def playbook(problem: str, facts: Facts | None = None) -> Playbook:
    it = load(ROOT / "problems" / problem)
    return Playbook(Assignment(it, it.profile("cpu"), "cpp", "cpu", facts or Facts.here()))


def order(base: Kernel, reference: Kernel, plan: Experiment) -> Commission:
    return Commission(name="k09999", base=base.name, reference=reference.name, experiment=plan)


def seeds(problem: str) -> list[Kernel]:
    files = load(ROOT / "problems" / problem).seeds("cpp")
    return [Kernel(name=f"k{i:05d}", language="cpp", source=f.read_text()) for i, f in enumerate(files, start=1)]


def measured(kernel: Kernel, ratio: float, **over: tuple[float, float]) -> Trial:
    return Trial(kernel=kernel, evaluation=trial(kernel.name, ratio, over).evaluation)


def test_the_catalogue_is_what_it_promises() -> None:
    assert len(CATALOGUE) >= 15 and len({t.name for t in CATALOGUE}) == len(CATALOGUE)
    assert len({t.name[:10] for t in CATALOGUE}) == len(CATALOGUE)  # MLflow's charts cut values there, and merge them
    for entry in CATALOGUE:
        assert entry.hypothesis.endswith(".") and entry.uplift[0] <= entry.uplift[1] and 0 <= entry.innovation <= 100


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_edit_the_catalogue_can_make_here_gives_a_right_kernel(
    problem: str, judge: Callable[[str], Evaluator]
) -> None:
    evaluator, mind = judge(problem), playbook(problem)
    tried = 0
    for kernel in seeds(problem):
        for transformation, variant in mind._variants(kernel, kernel):
            edited = Kernel(name="k00009", language="cpp", source=variant.source.text)
            evaluation = evaluator.check(edited, evaluator.compile(edited))
            assert evaluation.verdict is Verdict.OK, (transformation.name, variant.detail, evaluation.reason)
            assert variant.rubric and edited.digest != kernel.digest
            tried += 1
    assert tried >= 10


@pytest.mark.parametrize("facts", [PLAIN, MODERN], ids=["plain", "modern"])
def test_preconditions_follow_the_machine(facts: Facts) -> None:
    mind = playbook("fp8-blockwise-gemm", facts)
    kernel = seeds("fp8-blockwise-gemm")[1]
    names = {t.name for t, _ in mind._variants(kernel, kernel)}
    assert ("bf16-dot" in names) == (facts is MODERN) and ("flag-wide-vectors" in names) == (facts is MODERN)
    widths = [
        KernelSource(v.source.text).tunables["VEC"]
        for t, v in mind._variants(kernel, kernel)
        if t.name == "vector-width"
    ]
    assert widths == ([16] if facts is MODERN else [4])


def test_a_design_is_full_written_as_planned_and_never_repeats() -> None:
    mind = playbook("fp8-blockwise-gemm", MODERN)
    naive, blocked = seeds("fp8-blockwise-gemm")
    population = Population((measured(naive, 0.1), measured(blocked, 2.0, k00001=(15.0, 25.0))))
    for number in range(3, 12):
        turn = Turn.of(number, "test", 1)
        selection = mind.select(population, Lessons(), turn)
        design = mind.design(population, selection, Lessons(), turn)
        assert 5 <= len(design.avenues) <= 10 and len(design.plans) == 5
        base, reference = population.get(selection.base).kernel, population.get(selection.reference).kernel
        orders = [order(base, reference, plan) for plan in design.plans]
        sources = {digest(mind.write(population, o, Lessons()).source) for o in orders}
        assert len(sources) == 5 and not sources & population.digests()
        plan = pick(design.plans, 1)[0]
        draft = mind.write(population, order(base, reference, plan), Lessons())
        name = f"k{number:05d}"
        kernel = Kernel(
            name=name, language="cpp", source=draft.source, base=base.name, reference=reference.name, experiment=plan
        )
        population = population.add(measured(kernel, 1.9, **{base.name: (0.8, 0.99)}))


def test_predictions_learn_from_measurements() -> None:
    mind = playbook("fp8-blockwise-gemm", MODERN)
    _, blocked = seeds("fp8-blockwise-gemm")
    population = Population((measured(blocked, 2.0),))
    plan = next(p for p in _plans(mind, population) if p.title.startswith("vector-width"))
    draft = mind.write(population, order(blocked, blocked, plan), Lessons())
    worse = Kernel(name="k00003", language="cpp", source=draft.source, base=blocked.name, experiment=plan)
    after = population.add(measured(worse, 1.0, **{blocked.name: (0.4, 0.6)}))
    lessons = mind.distil(after, Lessons(), random.Random(0))
    (found,) = lessons.findings
    assert found.text == "vector-width: -50.0 % of speed on average over 1 trials" and found.kernels == ("k00003",)
    assert mind.distil(population, lessons, random.Random(0)).findings[0].struck  # what is no longer so
    learnt = mind._plan(after, next(t for t in CATALOGUE if t.name == "vector-width"), _variant(mind, blocked))
    assert learnt.uplift[1] < plan.uplift[1] and learnt.innovation < plan.innovation


def test_of_another_minds_plan_it_does_what_is_nearest() -> None:
    mind, kernel = playbook("identity"), seeds("identity")[1]
    words = "Bypass the caches with streaming stores: output is not read again"
    plan = Experiment(title="non-temporal output", description=words, rubric=(), uplift=(0, 1), innovation=1)
    draft = mind.write(Population((measured(kernel, 1.0),)), order(kernel, kernel, plan), Lessons())
    assert "streaming-store" in draft.report and draft.source != kernel.source


def test_what_cannot_be_done_is_said() -> None:
    mind, empty = playbook("identity"), Kernel(name="k1", language="cpp", source="def custom_kernel(d): ...\n")
    plan = Experiment(title="dream: bigger", description="", rubric=(), uplift=(0, 1), innovation=1)
    with pytest.raises(ValueError, match="does not apply"):
        mind.write(Population((measured(empty, 1.0),)), order(empty, empty, plan), Lessons())
    with pytest.raises(ValueError, match="nothing to start from"):
        mind.select(Population(), Lessons(), random.Random(0))


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
def test_three_of_five_are_taken_by_the_papers_rule(five: list[Experiment]) -> None:
    first, second, third = pick(five)
    rest = [p for p in five if p is not first]
    assert first.innovation == max(p.innovation for p in five)
    assert second.uplift[1] == max(p.uplift[1] for p in rest)
    assert third.uplift[0] == max(p.uplift[0] for p in rest if p is not second)


def _plans(mind: Playbook, population: Population) -> list[Experiment]:
    seen: list[Experiment] = []
    for seed in range(5):
        turn = Turn.of(seed, "test", 1)
        seen += mind.design(population, mind.select(population, Lessons(), turn), Lessons(), turn).plans
    return seen


def _variant(mind: Playbook, kernel: Kernel) -> object:
    return next(v for t, v in mind._variants(kernel, kernel) if t.name == "vector-width")
