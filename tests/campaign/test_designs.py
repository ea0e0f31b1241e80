"""Designs survive a kill; strategy `hypotheses` goes on with what was planned; refutations reach later campaigns."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist import problems
from kernel_scientist.campaign import beginning, designs
from kernel_scientist.campaign.beginning import Beginning, Start
from kernel_scientist.campaign.designs import Designs
from kernel_scientist.campaign.ledger import Ledger
from kernel_scientist.campaign.plan import Plan
from kernel_scientist.hardware import addresses
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Experiment
from kernel_scientist.records.params import Params
from kernel_scientist.scientist import prompts
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.proposals import Design, Lessons, Refutation, Selection
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject
from tests.conftest import Cli
from tests.planned import failed, measured, plan
from tests.trials import trial, undescribed

SEED = trial("k00001", 1.0)
ON_SEED = Selection(base="k00001", reference="k00001", rationale="")
QUICK = ["problem=identity", "search.generations=2", "search.experiments=2", "harness.blocks=4", "validate.processes=1"]
QUICK += ["validate.blocks=3", "harness.warmup_calls=1", "search.strategy=hypotheses"]
SETTINGS = [x for setting in QUICK for x in ("--set", setting)]
BOLD, WIDE, DEEP = (plan("", title, (20, 20 * n), mechanism=title) for n, title in enumerate(("a", "b", "c"), 2))


def store_of(lab: Path) -> MlflowStore:
    return MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")


def started(store: MlflowStore, name: str = "identity-cpu-20260101-000000-aaaa") -> CampaignRun:
    run = store.start(name, {"language": "cpp"}, problems.find("identity", "cpu", "intended"))
    time.sleep(0.01)  # MLflow's start times are in milliseconds
    return run


def designed(*plans: Experiment) -> Design:
    return Design(avenues=(), plans=plans)


def planning(known: Designs, population: Population, writer: str = "playbook", **search: Any) -> Plan:
    """What a process plans that goes on with these designs."""
    values = {"search": {"strategy": "hypotheses", "experiments": 2, **search}, "llm": {"writer": {"model": writer}}}
    params = Params.model_validate(values)
    rest = Ledger(population), LlmBudget(params.budget), 0.0, known.hypotheses
    return Plan(params, Beginning((), Start()), population, *rest)


def test_plans_that_were_not_picked_survive_a_kill_and_are_tried_without_a_designer(lab: Path) -> None:
    store, population = store_of(lab), Population((SEED,))
    run = started(store)
    selection, design = Designs(store, run, population).add(1, ON_SEED, designed(BOLD, WIDE, DEEP))
    assert [p.hypothesis for p in design.plans] == ["h1.1", "h1.2", "h1.3"]

    def resumed(population: Population) -> tuple[Designs, Plan]:  # another process: only what is recorded is known
        known = Designs(store_of(lab), run, population)
        return known, planning(known, population)

    known, work = resumed(population)
    assert known.get(1) == (selection, design) and known.get(2) is None
    first = work.standing_jobs()
    assert [job.title for job in first] == ["c", "b"] and {job.generation for job in first} == {1}
    assert not work.standing_jobs()  # one mechanism is left, and two experiments belong to a generation

    done = measured("k00002", first[0].experiment or BOLD, (1.1, 1.2), ratio=1.1)
    _, work = resumed(Population((SEED, done)))
    (left,) = work.standing_jobs()  # the generation has one experiment already
    assert (left.title, left.generation, left.base) == ("b", 1, "k00001")


def test_a_plan_that_a_kill_left_half_written_is_left_out(lab: Path) -> None:
    store, population = store_of(lab), Population((SEED,))
    run = started(store)
    Designs(store, run, population).add(1, ON_SEED, designed(BOLD))
    store.log_text(run, f"{designs.FOLDER}/000002.json", '{"generation": 2, "sel')
    assert [one.generation for one in designs.recorded(store, run)] == [1]


def test_a_plan_that_is_repeated_on_its_base_is_the_same_hypothesis(lab: Path) -> None:
    store, population = store_of(lab), Population((SEED, trial("k00002", 1.1, base="k00001")))
    known = Designs(store, started(store), population)
    known.add(1, ON_SEED, designed(BOLD))
    again = known.add(2, ON_SEED, designed(BOLD.model_copy(update={"title": " A"}), WIDE))
    elsewhere = known.add(3, ON_SEED.model_copy(update={"base": "k00002"}), designed(BOLD))
    assert [p.hypothesis for p in (*again[1].plans, *elsewhere[1].plans)] == ["h1.1", "h2.2", "h3.1"]
    assert known.planned() == ("a (on k00001)", "b (on k00001)", "a (on k00002)"), "the first stays"


@pytest.mark.parametrize(("writer", "tried"), [("playbook", []), ("some/model", ["k00002"])])
def test_a_blocked_plan_is_tried_again_by_a_model_which_is_told_of_the_failure(
    lab: Path, writer: str, tried: list[str]
) -> None:
    store = store_of(lab)
    run = started(store)
    _, design = Designs(store, run, Population((SEED,))).add(1, ON_SEED, designed(BOLD))
    population = Population((SEED, failed("k00002", design.plans[0])))
    jobs = planning(Designs(store, run, population), population, writer, experiments=1).jobs(ON_SEED, design, 2)
    assert [name for job in jobs for name in job.experiment_task().failed] == tried
    if jobs:
        again = jobs[0].experiment_task()
        first = again.model_copy(update={"failed": ()})
        assert again.call_key != first.call_key  # the reply that failed is not taken from the cache


def campaign(store: MlflowStore, name: str, *trials: Trial) -> None:
    population = Population((SEED, *trials))
    known = Designs(store, started(store, name), population)
    known.add(1, ON_SEED, designed(BOLD, WIDE, DEEP))


def test_refutations_reach_later_campaigns_until_they_are_contradicted(lab: Path) -> None:
    store = store_of(lab)
    lost, gained, unclear = (0.98, 1.01), (1.3, 1.4), (0.5, 2.0)
    a, b, c = (p.model_copy(update={"hypothesis": f"h1.{n}"}) for n, p in enumerate((BOLD, WIDE, DEEP), 1))
    oldest, later = "identity-cpu-20260101-000000-aaaa", "identity-cpu-20260102-000000-bbbb"
    campaign(store, oldest, *(measured(f"k0000{n}", p, lost) for n, p in ((2, a), (3, b))))
    campaign(store, later, measured("k00002", a, gained, ratio=1.3), measured("k00003", c, unclear))
    campaign(store, "identity-cpu-fast-20260102-000000-cccc", measured("k00002", c, lost))
    found = designs.refuted(store, store.campaigns(Subject("identity", "cpp", "cpu"), beginning.MOST_CAMPAIGNS))
    assert found == (
        Refutation(statement="b", mechanism="b", gains=("-0.5 % [-2.0, +1.0] over k00001",), campaign=oldest),
    )
    started(store, "identity-cpu-20260103-000000-dddd")  # one without a design
    start = beginning.new(
        Params(problem="identity"), problems.find("identity", "cpu", "intended"), addresses.resolve("cpu", "cpp"), store
    ).start
    assert start.refuted == found and "1 refutation of earlier campaigns" in start.words

    lessons = Beginning((), start).lessons(Lessons())
    assert lessons.updated([("new", ["k00001"])], []).refuted == found
    shared: Any = prompts._environment().get_template("_shared.md.j2").module
    assert f"- b (b): -0.5 % [-2.0, +1.0] over k00001, in campaign {oldest}" in shared.refuted_text(lessons.refuted)
    own = Population((SEED, measured("k00002", b, gained, ratio=1.3)))
    known = Designs(store, started(store, "identity-cpu-20260104-000000-eeee"), own)
    assert known.uncontradicted(lessons) == lessons
    known.add(1, ON_SEED, designed(BOLD, WIDE))
    assert not known.uncontradicted(lessons).refuted


@pytest.mark.slow
def test_a_campaign_without_a_model_selects_among_its_hypotheses(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    done = cli_here("optimize", "--json", *SETTINGS, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    found, store = json.loads(done.stdout), store_of(lab)
    run = store.latest()
    assert run is not None and found["kernels"] == 6 and undescribed(store, run) == set()
    population = store.population(run)
    made = [t.kernel for t in population if t.kernel.experiment]
    named = [k.experiment.hypothesis for k in made if k.experiment]
    assert len(made) == len(set(named)) == 4
    for generation in (1, 2):
        titles = [k.title.partition(":")[0] for k in made if k.generation == generation]
        assert len(titles) == len(set(titles)) == 2  # no mechanism twice in one generation
    known = designs.RECORDS.validate_json(store.text(run, designs.HYPOTHESES) or "")
    assert {test.kernel for one in known for test in one.tests} == {k.name for k in made}
    assert len(known) > len(made)  # also those that were not picked
    told = cli_here("report", "--set", "problem=identity", "--out", str(lab / "report.html")).stdout
    page = (lab / "report.html").read_text()
    for text in (told, page):
        assert "hypotheses: " in text and all(name in text for name in named)


def test_a_hypothesis_whose_outcome_is_not_known_yet_is_not_tried_again(lab: Path) -> None:
    store, population = store_of(lab), Population((SEED,))
    known = Designs(store, started(store), population)
    known.add(1, ON_SEED, designed(BOLD, WIDE, DEEP))
    work = planning(known, population)
    first, _ = work.standing_jobs()
    known._again_s = time.monotonic() + 3600  # finding out took long
    population.add(measured(first.name, first.experiment or BOLD, (1.1, 1.2), ratio=1.1))
    work.ledger.close(first.name)
    titles = {one.experiment.title for one in known.hypotheses() if one.is_untried}
    assert titles == {"a", "b", "c"}, "the list lags"
    assert [one.hypothesis.experiment.title for one in work._candidates()] == ["a"]
    assert {one.experiment.title for one in known.hypotheses(latest=True) if one.is_untried} == {"a", "b"}


def test_the_designer_is_not_told_of_plans_that_are_never_tried(lab: Path) -> None:
    store, population = store_of(lab), Population((SEED,))
    known = Designs(store, started(store), population, least=35)
    known.add(1, ON_SEED, designed(BOLD, WIDE, DEEP))
    assert known.planned() == ("b (on k00001)", "c (on k00001)")
