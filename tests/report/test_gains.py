"""A gain is a measured pair: whatever shows one, it is the quotient of two times of one run, beside its interval.

Campaigns are drawn whose runs differ in load by a factor of a hundred, so a quotient of two runs would be far off. All
that is said about them is rendered, and every factor and every gain in it must be one of the pairs.
"""

import math
import re
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docs import write_prompts
from kernel_scientist import problems
from kernel_scientist.campaign import conclusion
from kernel_scientist.population import prediction_accuracy, standings
from kernel_scientist.population.entry import over_base
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors
from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup, Timing, Trial, geomean
from kernel_scientist.records.factors import UNRESOLVED
from kernel_scientist.records.kernel import REFERENCE, Experiment, Kernel, Verdict
from kernel_scientist.report import tables
from kernel_scientist.report.output import Table
from kernel_scientist.report.pages import campaign as page
from kernel_scientist.scientist.context import outcomes
from kernel_scientist.scientist.playbook.agent import RuleBasedAgent
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.scientist.roles import Assignment, Step
from kernel_scientist.tracking import pages, run_content
from kernel_scientist.tracking.access import RecordedCampaign
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.scientist.test_prompts import CPU, PEAKS

PROBLEM = problems.find("fp8-blockwise-gemm")
CASES = [case.name for case in PROBLEM.profile("cpu").benchmarks]
SOURCE = PROBLEM.seeds("cpp")[-1].read_text()
ASSIGNMENT = Assignment(PROBLEM, PROBLEM.profile("cpu"), "cpp", "cpu", CPU, PEAKS, most_findings=12)
EXPECTED = (11.0, 77.0)
"""What every designer expects, in percent."""
FACTOR = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?x(?![\w(])(?: \[[^\]]*\])?")
PERCENT = re.compile(r"(?<![\w.])[+-]\d+(?:\.\d+)? %(?: \[[^\]]*\])?")
widths = st.sampled_from([1.02, 1.1, 1.4, 4.0, None])
"""How far an interval reaches, as a factor; None: too few blocks for one."""


def compared(times: dict[str, dict[str, float]], name: str, against: str, width: float | None) -> Speedup:
    """What one run says of two sources. `times`: in us, by source and case."""
    quotients = {case: times[against][case] / us for case, us in times[name].items()}
    pairs = {
        case: PairedTime(time_us=times[name][case], against_us=times[against][case], interval=around(q, width))
        for case, q in quotients.items()
    }
    ratio = geomean([*quotients.values()])
    return Speedup(against=against, ratio=ratio, interval=around(ratio, width) or UNRESOLVED, cases=pairs)


def around(ratio: float, width: float | None) -> tuple[float, float] | None:
    return (ratio / width, ratio * width) if width else None


@st.composite
def campaigns(draw: st.DrawFn) -> Population:
    """Draw a campaign as one is recorded: two seeds, experiments on any kernel, and one at the end that failed."""
    population, speeds = Population(), {REFERENCE: 1.0}
    for number in range(1, draw(st.integers(5, 9))):
        name, incumbent = f"k{number:05d}", population.incumbent()
        base = draw(st.sampled_from([e.name for e in population.entries()])) if number > 2 else None
        speeds[name] = draw(st.floats(0.3, 6))
        beside = [REFERENCE, *([base] if base and base != incumbent and draw(st.booleans()) else [])]
        beside += [incumbent] if incumbent else []
        load = draw(st.floats(0.2, 20))  # of this run: it slows all of its sources
        times = {
            source: {case: 100 * load / speeds[source] * draw(st.floats(0.8, 1.25)) for case in CASES}
            for source in (name, *beside)
        }
        own = tuple(Timing(case=c, time_us=us, interval_us=(us / 1.1, us * 1.1)) for c, us in times[name].items())
        speedups = tuple(compared(times, name, other, draw(widths)) for other in beside)
        busy = {"others_percent": draw(st.sampled_from(["0.5", "63.0"])), "cores": "2", "load": "8.10"}
        evaluation = Evaluation(
            verdict=Verdict.OK, timings=own, speedups=speedups, baseline=beside[-1], environment=busy
        )
        population.add(Trial(kernel=kernel(name, base), evaluation=evaluation))
    wrong = Evaluation(verdict=Verdict.INCORRECT, reason="a value is wrong")
    population.add(Trial(kernel=kernel("k00099", "k00003"), evaluation=wrong))
    return population


def kernel(name: str, base: str | None) -> Kernel:
    plan = Experiment(title=f"unroll: {name}", description="why", rubric=("do",), uplift=EXPECTED, innovation=5)
    source = f"{SOURCE}\n# {name}\n"
    return Kernel(name=name, language="cpp", source=source, base=base, experiment=plan if base else None, generation=1)


def pairs(population: Population) -> list[Speedup | PairedTime]:
    """All pairs of times that were measured in one run."""
    found = [s for trial in population for s in trial.evaluation.speedups]
    return [*found, *(pair for s in found for pair in s.cases.values())]


def require(population: Population, text: str, *more: str) -> None:
    """Require that each factor and each gain in a text is a pair of one run with its interval, or one of `more`."""
    known = pairs(population)
    stated = {factors.factor(one.ratio, one.interval) for one in known}
    gains = {factors.percent(one.ratio, one.interval) for one in known}
    expectations = {f"{value:+.0f} %" for value in (*EXPECTED, sum(EXPECTED) / 2)}
    assert {*FACTOR.findall(text)} <= stated | {*more}
    assert {*PERCENT.findall(text)} <= gains | expectations | {*more}


def mean_gain(trials: list[Trial]) -> str:
    """The mean of the resolved gains over the bases."""
    found = [pair for t in trials if (pair := over_base(t)) and pair.resolved]
    return factors.percent(*factors.mean([(pair.ratio, pair.interval) for pair in found])) if found else ""


def final_of(population: Population) -> Final:
    """A final of the four best kernels, in one run."""
    names = [entry.name for entry in population.ranking(4)]
    times = {name: dict.fromkeys(CASES, 50.0 + 7 * n) for n, name in enumerate((*names, REFERENCE))}
    over = {name: compared(times, name, REFERENCE, 1.05) for name in names}
    return Final(incumbent=population.incumbent() or "", times_us=times, speedups=over)


bounded = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@bounded
@given(campaigns())
def test_in_prompts(population: Population) -> None:
    texts = write_prompts.prompts(ASSIGNMENT, population)
    mean = mean_gain(population.latest(outcomes.MOST_BETS))
    for role, text in texts.items():
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        shown = prose.partition("## Background")[0]
        require(population, shown, mean)
        if role in ("selector", "designer", "writer"):
            assert ("busy machine" in shown) == bool(outcomes.conditions(population))
    best = population.best()
    assert best is not None and f"{best.kernel.name} is the incumbent: " in texts["selector"]
    for row in re.findall(r"^\| k\d+ .*", texts["selector"], re.M):
        name, base, *_, over, _, _ = [cell.strip() for cell in row.strip("|").split("|")][: 9 - 0]
        pair = over_base(population.get(name))
        if pair is None and base != "seed" and name != "k00099":
            assert outcomes.NOT_PAIRED in row and over != "-"


@bounded
@given(campaigns())
def test_in_the_playbooks_findings_and_plans(population: Population) -> None:
    agent, step = RuleBasedAgent(ASSIGNMENT), Step.of(0, "test", 1)
    unroll = [t for t in population if t.kernel.experiment]
    for finding in agent.summarise(population, Lessons(), step).findings:
        require(population, finding.text, mean_gain(unroll))
    require(population, agent.select(population, Lessons(), step).rationale)


@bounded
@given(campaigns())
def test_on_the_page_and_in_tables(population: Population) -> None:
    final = final_of(population)
    store = SimpleNamespace(lessons=lambda _: Lessons(), text=lambda *_: "", texts=lambda *_: [], experiment="gemm-cpu")
    run = SimpleNamespace(campaign="a-campaign", run_id="1", params={}, tags={}, metrics={})
    told = RecordedCampaign(
        store=cast(MlflowStore, store),
        run=cast(CampaignRun, run),
        population=population,
        final=final,
        problem=PROBLEM.name,
        target="cpu",
        published=(),
        bars=(),
    )
    finals = [factors.factor(s.ratio, s.interval) for s in final.speedups.values()]
    accuracy = prediction_accuracy.by_designer(prediction_accuracy.predictions(population))
    medians = [row.measured for row in accuracy if row.measured]
    html = re.sub(r"<svg.*?</svg>|<style.*?</style>|<pre.*?</pre>", "", page.render(told, None), flags=re.S)
    require(population, html, *finals, *medians, *(text.partition(" [")[0] for text in finals))
    assert ("busy machine" in html.partition("<h2")[0]) == any(t.evaluation.busy for t in population)
    for part in (tables.final_table(standings.final_rows(population, final)), standings.reason(population, final)):
        texts = [" | ".join(row.values()) for row in part.cells] if isinstance(part, Table) else [part]
        for text in texts:
            require(population, text, *finals)
    require(population, standings.reason(population, None))
    rows = conclusion.curve(population)
    for trial, row in zip(population, rows, strict=True):
        own = trial.evaluation.speedup_over(REFERENCE)
        if own and own.resolved:
            assert row.speedup == pytest.approx(own.ratio, rel=1e-5) and row.speedup_low < row.speedup_high
        else:
            assert row.speedup is None


@bounded
@given(campaigns())
def test_in_metrics_and_descriptions(population: Population) -> None:
    for trial in population:
        metrics, pair = run_content.metrics(trial, population), over_base(trial)
        assert ("measured_uplift" in metrics) == (pair is not None and pair.resolved)
        if pair and pair.resolved:
            low, high = (100 * (bound - 1) for bound in pair.interval)
            quotient = geomean([times.against_us / times.time_us for times in pair.cases.values()])
            assert metrics["measured_uplift"] == pytest.approx(100 * (quotient - 1), abs=0.05 * (high - low))
            assert metrics["measured_uplift_low"] < metrics["measured_uplift"] < metrics["measured_uplift_high"]
        own = trial.evaluation.speedup_over(REFERENCE)
        assert ("speedup" in metrics) == (own is not None and own.resolved)
        if own and own.resolved:
            ratio = metrics["reference_geomean_us"] / metrics["geomean_us"]
            low, high = own.interval
            assert metrics["speedup"] == pytest.approx(ratio, rel=0.05, abs=0.05 * (high - low))
            assert metrics["speedup_low"] <= metrics["speedup"] <= metrics["speedup_high"]
        if trial.evaluation.timings:
            assert metrics["order_estimate"] == pytest.approx(population.estimate(trial.kernel.name), abs=1e-4)
        require(population, pages.description(trial, population, "", ""))
        assert all(math.isfinite(value) for value in metrics.values())


@given(st.floats(0.1, 50), widths, st.sampled_from([1.0, 10.0]))
def test_a_factor_is_stated_if_its_interval_supports_it(ratio: float, width: float | None, shift: float) -> None:
    interval = around(ratio, width)
    text, gain = factors.factor(ratio, interval), factors.percent(ratio, interval)
    supported = interval is not None and (interval[0] > 1 or interval[1] < 1 or (width or 9) <= factors.NARROW)
    assert factors.is_resolved(interval) == supported
    assert text.startswith("not resolved") != supported and gain.startswith("not resolved") != supported
    assert ("[" in text) == (interval is not None)


def test_a_busy_machine_is_named() -> None:
    assert factors.busy({"others_percent": "63.2", "load": "8.10", "cores": "2"}) == (
        "measured on a busy machine: other processes used 63 % of its CPU time, load 8.10 on 2 cores"
    )
    assert "its host took 4 % away" in factors.busy({"steal_percent": "4.00"})
    assert not factors.busy({"load": "8.10", "busy_percent": "100.0"}) and not factors.busy({"others_percent": ""})
