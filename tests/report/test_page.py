"""`report`: the page and the tables of a recorded campaign, and why its champion is the champion."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_scientist.campaign import results
from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.population import standings
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load, published
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Confirmation, Evaluation, PairedTime, Prediction, Speedup, Trial
from kernel_scientist.records.factors import UNRESOLVED
from kernel_scientist.records.kernel import REFERENCE, Experiment, Verdict
from kernel_scientist.records.source_line import SourceLine
from kernel_scientist.report import tables
from kernel_scientist.report.pages import campaign, kernels
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.tracking.access import RecordedCampaign
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT, Cli
from tests.trials import speedup, trial

PROBLEM = load(ROOT / "problems" / "identity")
TRIALS = (
    trial("k00001", 1.0),
    trial("k00004", 1.94, {"k00001": (1.8, 2.0)}),
    trial("k00012", 2.23, {"k00004": (0.95, 1.2)}, base="k00004"),
)
OVER = {
    name: speedup(REFERENCE, 100 / us, us, (95 / us, 105 / us)) for name, us in (("k00004", 48.0), ("k00012", 50.0))
}
FINAL = Final(
    incumbent="k00004",
    times_us={"k00004": {"c": 48.0}, "k00012": {"c": 50.0}, REFERENCE: {"c": 100.0}},
    speedups=OVER,
    busy="measured on a busy machine: other processes used 63 % of its CPU time",
)


@pytest.fixture
def recorded(lab: Path) -> tuple[MlflowStore, CampaignRun]:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    run = store.start("a-campaign", {"search": {"seed": 1}}, PROBLEM)
    population = Population()
    for made in TRIALS:
        store.log(run, made, population, PROBLEM)
        population.add(made)
    return store, run


def test_the_winner_of_the_final_is_the_champion(
    recorded: tuple[MlflowStore, CampaignRun], cli_here: Cli, lab: Path
) -> None:
    store, run = recorded
    store.log_final(run, FINAL)
    done = cli_here("report", "--set", "problem=identity")
    assert done.returncode == 0, done.stderr
    printed, page = " ".join(done.stdout.split()), (lab / "reports/a-campaign.html").read_text()
    reason = (
        "k00004 is the fastest of 2 finalists timed in one run: 48 us, 2.083x [1.979, 2.188] the reference's speed."
    )
    busy = "The final was measured on a busy machine: other processes used 63 % of its CPU time."
    assert busy in printed.partition("final: all")[0] and busy in page.partition("<h2")[0]
    assert reason in printed and reason.replace("'", "&#39;") in page
    ranks = re.findall(r'<td class="n">(\d)</td><td>(k\d+)</td>', page)
    assert ranks == [("1", "k00004"), ("2", "k00012")]
    assert "k00004 computes identity at 2.083x the reference" in page and "not validated" in page
    assert '<a xlink:href="#k00012"' in page and '<div class="card" id="k00012">' in page, "a dot links to its kernel"
    assert re.search(r"<text[^>]*>k00004</text>", page.partition("<svg")[2]), "the champion's dot has its name"
    columns = re.findall(r"<th[^>]*>([^<]*)</th>", page.partition('id="tree"')[2])
    assert columns[:2] == ["kernel", "speedup"], "a phone shows what decides"
    refused = cli_here("report", "--set", "problem=identity", "--out", "/proc/nope/report.html")
    assert refused.returncode == 2 and "cannot write /proc/nope/report.html" in refused.stderr


def test_a_slower_challenger_or_a_faster_one(recorded: tuple[MlflowStore, CampaignRun]) -> None:
    population = Population(TRIALS)
    faster = FINAL.model_copy(update={"times_us": {**FINAL.times_us, "k00012": {"c": 40.0}}})
    assert standings.reason(population, faster).startswith("k00012 is the fastest of 2 finalists")
    without = standings.reason(population, None)
    assert "The incumbent of the search, k00004, took 48 us" in standings.reason(population, faster)
    assert without.startswith("A test found k00004 faster than k00001, the incumbent before it: 1.9x [1.8, 2]")
    assert without.endswith("no test told it from k00012.")
    assert standings.reason(Population(TRIALS[:2]), None).endswith(
        "Every other kernel was found slower, or is estimated to be."
    )
    assert standings.reason(Population(TRIALS[:1]), None).endswith("was timed first. No other kernel was timed.")
    store, run = recorded
    assert store.final(run, population) is None


def test_a_final_is_of_the_kernels_that_there_were(recorded: tuple[MlflowStore, CampaignRun]) -> None:
    store, run = recorded
    store.log_final(run, FINAL.model_copy(update={"kernels": len(TRIALS)}))
    assert store.final(run, Population(TRIALS)) is not None
    assert store.final(run, Population(TRIALS[:-1])) is None, "other kernels"
    store.log_final(run, FINAL)
    assert store.final(run, Population(TRIALS)) is not None, "an older record"
    assert store.final(run, Population(TRIALS[:1])) is None, "another incumbent"


def test_a_campaign_without_experiments_claims_none(recorded: tuple[MlflowStore, CampaignRun]) -> None:
    store, run = recorded
    why = {"dropped": "dropped after 2 blocks: too slow"}
    slow = speedup(REFERENCE, 0.4, 250.0, UNRESOLVED).model_copy(update=why)
    evaluation = TRIALS[0].evaluation.model_copy(update={"speedups": (slow,)})
    first = TRIALS[0].model_copy(update={"evaluation": evaluation})
    page = campaign.render(RecordedCampaign(store, run, Population([first]), None, "identity", "cpu", (), ()), None)
    assert "no experiment was recorded" in page and "which no experiment beat" not in page
    assert re.search(r'<td class="long">not resolved \(no interval: dropped after 2 blocks', page), "a readable width"


def test_a_validation_of_the_champion_is_shown(
    recorded: tuple[MlflowStore, CampaignRun], cli_here: Cli, lab: Path
) -> None:
    pair = PairedTime(time_us=50.0, against_us=100.0)
    over = Speedup(against="reference", ratio=2.0, interval=(1.9, 2.1), cases={"c": pair})
    evaluation = Evaluation(verdict=Verdict.OK, speedups=(over,))
    confirmation = Confirmation(
        confirmed=True, reason="faster", evaluation=evaluation, held_out_speedups=(over,), baseline="k00001"
    )
    context = SimpleNamespace(
        problem=SimpleNamespace(name="identity", published=()), address=SimpleNamespace(name="cpu")
    )
    made = results.of_confirmation(cast(EvaluationContext, context), TRIALS[1].kernel, confirmation)
    validation = made.model_dump(mode="json")
    (lab / "reports").mkdir()
    (lab / "reports/validate.json").write_text(json.dumps(validation))
    printed = cli_here("report", "--set", "problem=identity").stdout
    assert "confirmed: faster" in printed and "PyTorch" in printed
    of_others = ({"digest": "of another kernel"}, {"target": "cuda"}, {"problem": "softmax"})
    for text in (*(json.dumps({**validation, **other}) for other in of_others), json.dumps(validation)[:-9]):
        (lab / "reports/validate.json").write_text(text)
        assert "confirmed" not in cli_here("report", "--set", "problem=identity").stdout


def test_the_best_published_time_stands_beside_the_champion_s() -> None:
    source = {"source": "a library", "device": "MI300X", "includes": "no launch"}
    sections = [{**source, "times": [{"m": 64, "us": us, "revision": "1"}]} for us in (70.0, 66.0)]
    times = published.read(sections, Path("lab.yml"))
    with pytest.raises(SetupError, match=r"lab\.yml: published: .* list of sources"):
        published.read(cast(Any, sections[0]), Path("lab.yml"))
    known = (Prediction(case="m64", machine="MI300X", time_us=71.0, floor_us=1.0, limited_by="hbm"),)
    champion = trial("k00001", 1.0)
    champion = champion.model_copy(
        update={"evaluation": champion.evaluation.model_copy(update={"by_model": True, "predictions": known})}
    )
    recorded = SimpleNamespace(champion=lambda: champion, published=times)
    table = tables.published_table(cast(RecordedCampaign, recorded))
    assert table is not None and table.rows == [{"case": "m64", "us": 71.0, "published_us": 66.0}]
    assert "predicted" in table.columns["us"] and table.title == "published: a library; MI300X; no launch"
    (row,) = results.predicted_cases(known, times)
    assert row.published_us == 66.0 and results.predicted_cases(known, ())[0].published_us is None
    (row,) = results.predicted_cases([known[0].model_copy(update={"machine": "H200"})], times)
    assert row.published_us is None, "a time on another GPU is not shown beside it"


def test_the_page_of_a_thousand_kernels_is_small_and_leaves_none_out() -> None:
    source = "\n".join(f"line {n}" for n in range(400))
    population = Population()
    for number in range(1, 1001):
        base = f"k{number // 2:05d}" if number > 1 else None
        made = trial(f"k{number:05d}", 1 + number % 7 / 10 if number % 5 else None, base=base)
        experiment = Experiment(title="wider", description="d" * 500, rubric=("r",), uplift=(1, 9), innovation=1)
        kernel = made.kernel.model_copy(update={"source": f"{source}\n# {number}", "experiment": experiment})
        population.add(made.model_copy(update={"kernel": kernel}))
    page = campaign.render(_recorded(population), None)
    assert len(page) < 2_000_000
    assert all(f'id="k{number:05d}"' in page for number in range(1, 1001))
    assert page.count('<div class="card"') == kernels.MOST_FULL and "120 of 1000 kernels can be opened" in page
    assert "wrong logic" in page and '<td class="n">200</td>' in page, "failures are counted by kind of bug"


def test_a_champion_without_a_resolved_speedup_is_drawn_by_case() -> None:
    made = trial("k00001", 1.0)
    vague = made.evaluation.speedups[0].model_copy(update={"interval": (0.0, 99.0)})
    made = made.model_copy(update={"evaluation": made.evaluation.model_copy(update={"speedups": (vague,)})})
    assert not vague.resolved
    page = _page(made)
    assert page.count("<svg") == 1 and "The champion by case" in page
    assert "No champion&#39;s speedup over the reference is resolved" in page.replace("'", "&#39;")
    assert "nothing to draw" in _page(trial("k00001", None))


def test_a_kernel_s_card_shows_the_lines_that_take_its_predicted_time() -> None:
    hot = SourceLine(kernel="gemm", line=7, text="a = tl.load(p)", share=0.4, cycles=900, causes={"lds": 0.4})
    slow, fast = (
        Prediction(case=case, machine="MI300X", time_us=us, floor_us=1.0, limited_by="lds", lines=(line,))
        for case, us, line in (
            ("m64", 70.0, hot),
            ("m1", 2.0, hot.model_copy(update={"text": "elsewhere"})),
        )
    )
    made = trial("k00001", None)
    known = made.evaluation.model_copy(update={"by_model": True, "predictions": (fast, slow)})
    page = _page(made.model_copy(update={"evaluation": known}))
    assert "m64: gemm by source line (predicted, not measured)" in page and "elsewhere" not in page
    assert "   7    40%     900  lds 40%                   a = tl.load(p)" in page
    assert "by source line" not in _page(made)


def _page(*trials: Trial) -> str:
    population = Population()
    for made in trials:
        population.add(made)
    return campaign.render(_recorded(population), None)


def _recorded(population: Population) -> RecordedCampaign:
    store = SimpleNamespace(
        lessons=lambda _: Lessons(), text=lambda *_: None, texts=lambda *_: [], experiment="identity-cpu"
    )
    run = SimpleNamespace(campaign="a-campaign", run_id="1", params={}, tags={}, metrics={})
    recorded = SimpleNamespace(population=population, final=None, store=store, run=run, problem="identity", bars=[])
    recorded = SimpleNamespace(**vars(recorded), target="cpu", published=(), champion=population.best)
    return cast(RecordedCampaign, recorded)
