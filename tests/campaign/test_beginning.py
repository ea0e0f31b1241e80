"""Campaigns build on each other: the standing champion, earlier findings, and with what a resumed campaign goes on."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist import problems
from kernel_scientist.campaign import beginning
from kernel_scientist.campaign.beginning import Beginning, Start
from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.kernel import Kernel, Origin
from kernel_scientist.scientist import prompts
from kernel_scientist.scientist.proposals import Lesson, Lessons
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject
from tests.conftest import Cli, without_progress
from tests.trials import trial, undescribed

QUICK = ["problem=identity", "search.generations=1", "search.experiments=1", "harness.blocks=2", "validate.processes=1"]
QUICK += ["validate.blocks=2", "harness.stages=1", "harness.warmup_calls=1"]
SETTINGS = [x for s in QUICK for x in ("--set", s)]
CHAMPION = "champions/identity/cpp-cpu"


def optimize(run: Cli, *arguments: str, **environment: str) -> dict[str, Any]:
    done = run("optimize", "--json", *SETTINGS, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def put_champion(lab: Path, source: str, campaign: str = "identity-cpu-20260101-000000-abcd") -> None:
    folder = lab / CHAMPION
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.py").write_text(source)
    card = {"campaign": campaign, "kernel": "k00013", "date": "2026-01-01", "digest": ""}
    (folder / "card.json").write_text(json.dumps(card))


def variant(lab: Path) -> str:
    """A right kernel that is none of the seeds."""
    seed = KernelSource((lab / "problems/identity/seeds/cpp_blocked.py").read_text())
    return seed.with_tunables({next(iter(seed.tunables)): 32}).text


def test_a_campaign_starts_from_the_champion_and_earlier_findings(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    before = "identity-cpu-20260101-000000-abcd"
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    problem = problems.find("identity", "cpu", "intended")
    store.log_lessons(store.start(before, {"language": "cpp"}, problem), Lessons(findings=(lesson("wide is good"),)))
    put_champion(lab, variant(lab), before)
    found = optimize(cli_here, PREFECT_API_URL=prefect_api)
    origin = f"the standing champion, k00013 of campaign {before} (2026-01-01)"
    assert origin in found["start"] and "1 finding of earlier campaigns" in found["start"]
    assert "--set search.from=seeds" in found["start"] and found["kernels"] == 4
    run = store.latest()
    assert run is not None and run.campaign == found["campaign"] and undescribed(store, run) == set()
    population = store.population(run)
    (champion,) = (t for t in population if t.kernel.origin)
    assert champion.kernel.title == origin and not champion.kernel.is_seed and champion.kernel.name == "k00003"
    seed = population.best_seed()
    assert seed is not None and seed.kernel.is_seed
    data = store.client.get_run(store.run_id(run, "k00003")).data
    assert origin in data.tags["mlflow.runName"] and data.params["experiment"] == "standing champion"
    (earlier,) = store.lessons(run).earlier
    assert earlier.campaign == before and earlier.name == "e001"
    page = (lab / f"reports/{found['campaign']}.html").read_text()
    assert origin in page and f"of campaign {before}" in page


def test_a_champion_that_nothing_beats_stays_and_is_no_seed(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    seeds = lab / "problems/identity/seeds"
    for file in seeds.glob("cpp_*"):
        file.unlink()
    copy = "def custom_kernel(d):\n    return d[1].copy_(d[0])\n"
    (seeds / "cpp_slow.py").write_text(f"import time\n{copy}".replace("return", "time.sleep(0.02)\n    return"))
    put_champion(lab, copy)
    settings = ("--set", "search.generations=0", "--set", "validate.blocks=6")
    found = optimize(cli_here, *settings, PREFECT_API_URL=prefect_api)
    assert found["champion"] == "k00002" and found["kernels"] == 2 and found["confirmed"], found["why"]
    assert "faster than k00001" in found["why"] and "the champion with which this campaign started" in found["why"]
    assert not found["standing"]["replaced"] and "is the same kernel" in found["standing"]["reason"]
    assert "k00013 of campaign " in found["standing"]["reason"]
    card = json.loads((lab / f"champions/identity/campaigns/{found['campaign']}/card.json").read_text())
    assert card["lineage"] == [f"k00002 {card['experiment']}"] and card["experiment"].startswith(
        "the standing champion"
    )
    assert json.loads((lab / CHAMPION / "card.json").read_text())["kernel"] == "k00013"


@pytest.mark.slow
def test_a_champion_that_is_wrong_here_is_named_and_the_campaign_goes_on(
    lab: Path, cli_here: Cli, prefect_api: str
) -> None:
    put_champion(lab, "def custom_kernel(d):\n    return d[1]\n")
    found = optimize(cli_here, "--set", "search.generations=0", PREFECT_API_URL=prefect_api)
    assert found["kernels"] == 3 and found["verdicts"]["incorrect"] == 1 and found["champion"] in ("k00001", "k00002")
    assert "that champion, here k00003, is of no use: incorrect: " in found["start"]


def test_the_start_is_told_before_anything_runs(lab: Path, cli_here: Cli) -> None:
    def planned(*settings: str) -> dict[str, Any]:
        done = cli_here("optimize", "--dry-run", "--json", *SETTINGS, *settings)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert planned()["champion"] is None and planned()["kernels"] == 3
    put_champion(lab, variant(lab))
    assert planned()["champion"].startswith("the standing champion, k00013 of ") and planned()["kernels"] == 4
    assert planned("--set", "search.from=seeds")["kernels"] == 3
    put_champion(lab, (lab / "problems/identity/seeds/cpp_naive.py").read_text() + "# a remark\n")
    assert planned()["kernels"] == 3, "the champion is a seed"
    put_champion(lab, "nonsense = 1\n")
    assert planned()["kernels"] == 3, "the champion is no kernel"


def test_a_resumed_campaign_takes_new_parameters_and_a_finished_one_is_shown(
    lab: Path, cli_here: Cli, prefect_api: str
) -> None:
    first = optimize(cli_here, PREFECT_API_URL=prefect_api)
    put_champion(lab, variant(lab))  # it came later: the campaign keeps its start
    left = optimize(cli_here, "--resume", "--dry-run")
    assert left["campaign"] == first["campaign"] and left["kernels"] == 3 and left["kernels_left"] == 0
    assert left["next"].startswith("nothing is left to do: all generations are done") and left["changed"] == "nothing"
    more = ("--resume", "--set", "search.generations=3")
    left = optimize(cli_here, *more, "--dry-run")
    assert left["kernels_left"] == 2 and left["changed"] == "search.generations 1 -> 3"

    again = optimize(cli_here, "--resume", PREFECT_API_URL=prefect_api)
    assert "no kernel was added, so this is the recorded result" in again.pop("stopped")
    assert again == {key: value for key, value in first.items() if key != "stopped"}
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    run = store.latest()
    assert run is not None and not run.running and run.tags["champion"] == first["champion"]

    grown = optimize(cli_here, *more, PREFECT_API_URL=prefect_api)
    assert grown["campaign"] == first["campaign"] and grown["kernels"] == 5
    assert "there was no standing champion" in grown["start"]
    run = store.latest()
    assert run is not None and run.tags["resumed_with"] == "search.generations 1 -> 3"
    assert run.params["search.generations"] == "3" and optimize(cli_here, *more, "--dry-run")["changed"] == "nothing"
    spent = optimize(cli_here, *more, "--set", "budget.minutes=0.001", "--dry-run")
    assert "budget.minutes is 0.001" in spent["next"] and spent["minutes_left"] == 0

    for settings, words in (
        (("--set", "profile=full"), "was started with profile=auto, which cannot change: resume it with --set profile"),
        (("--campaign", first["campaign"], "--set", "language=triton"), "is in cpp, not in triton"),
    ):
        done = cli_here("optimize", "--resume", "--dry-run", *SETTINGS, *settings)
        (error,) = without_progress(done.stderr)
        assert done.returncode == 2 and words in error


def test_nothing_to_resume_is_a_plan(lab: Path, cli_here: Cli) -> None:
    assert optimize(cli_here, "--resume", "--dry-run")["kernels"] == 3


ORIGIN = Origin(campaign="p-cpu-20260101-000000-abcd", kernel="k00013", date="2026-01-01")


def test_first_kernels_are_tried_once(tmp_path: Path) -> None:
    seed = tmp_path / "cpp_seed.py"
    seed.write_text("# seed\n")
    first = Beginning([seed], Start(seeds=("cpp_seed",), origin=ORIGIN, source="# champion\n"))
    jobs = first.jobs(Population())
    assert len(first) == 2 and [job.origin for job in jobs] == [None, ORIGIN]
    assert first.draft(jobs[1]).source == "# champion\n"
    made = jobs[1].kernel(first.draft(jobs[1]), "cpp")
    assert made.origin == ORIGIN and Kernel.model_validate_json(made.model_dump_json()) == made
    done = trial("k00001", 2.0)
    done = done.model_copy(update={"kernel": made.model_copy(update={"name": "k00001"})})
    assert [job.origin for job in first.jobs(Population([done]))] == [None]
    assert Population([done]).best_seed() is None


def lesson(text: str, campaign: str = "", retracted: str = "") -> Lesson:
    fields = {"text": text, "campaign": campaign, "retracted": retracted}
    return Lesson.model_validate({"name": "f001", "kernels": ("k00003",), "date": "2026-01-01", **fields})


def test_findings_of_the_latest_campaigns_are_carried_over(lab: Path) -> None:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "shared")
    problem = problems.find("identity", "cpu", "intended")

    def campaign(name: str, lessons: Lessons, language: str = "cpp") -> None:
        store.log_lessons(store.start(name, {"language": language}, problem), lessons)
        time.sleep(0.01)  # MLflow's start times are in milliseconds

    oldest, later = "identity-cpu-20260101-000000-aaaa", "identity-cpu-20260102-000000-bbbb"
    campaign(oldest, Lessons(findings=(lesson("a"), lesson("b"), lesson("gone", retracted="2026-01-01"))))
    campaign("identity-cpu-fast-20260102-000000-cccc", Lessons(findings=(lesson("of another target"),)))
    campaign("identity-cpu-20260102-000000-dddd", Lessons(findings=(lesson("of another language"),)), "triton")
    campaign(later, Lessons(findings=(lesson("c"),), earlier=(lesson("b", oldest, retracted="2026-01-02"),)))
    found = beginning.earlier(store, Subject("identity", "cpp", "cpu"))
    assert [(f.name, f.text, f.campaign) for f in found] == [("e001", "c", later), ("e002", "a", oldest)]


def test_a_model_may_retract_what_an_earlier_campaign_found() -> None:
    earlier = lesson("old", ORIGIN.campaign).model_copy(update={"name": "e001"})
    lessons = Lessons(earlier=(earlier,)).updated([("new", ["k00002"])], [])
    assert [f.text for f in lessons.latest(9)] == ["new", "old"]
    assert [f.text for f in lessons.updated([], ["e001"]).latest(9)] == ["new"]


def test_a_prompt_says_whose_kernels_a_finding_names() -> None:
    lessons = Lessons(
        findings=(lesson("own"),),
        earlier=(lesson("one", "campaign-b"), lesson("two", "campaign-b"), lesson("three", "campaign-a")),
    )
    shared: Any = prompts._environment().get_template("_shared.md.j2").module
    lines = [line for line in shared.findings_text(lessons.latest(9)).splitlines() if line]
    told = "kernels that these name are that campaign's, not those of this prompt:"
    assert lines[1:] == [
        "- [f001, 2026-01-01] own (from k00003)",
        f"Of campaign campaign-b; {told}",
        "- [f001, 2026-01-01] one (from k00003 of that campaign)",
        "- [f001, 2026-01-01] two (from k00003 of that campaign)",
        f"Of campaign campaign-a; {told}",
        "- [f001, 2026-01-01] three (from k00003 of that campaign)",
    ]
