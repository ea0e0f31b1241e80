"""Campaigns with models, end to end: scripted model over real HTTP, real flow, compiler, evaluator and store."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import load
from kernel_scientist.records.errors import ModelError, SetupError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import ROLES, Budget, Llm
from kernel_scientist.scientist import ensemble
from kernel_scientist.scientist.llm.client import LlmClient
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.response_cache import ResponseCache, stable_key
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.scientist.roles import Assignment, CpuInfo, Step
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT, Cli, lab_environment, new_lab
from tests.scientist.model_server import Response, serving
from tests.scientist.scripted_campaign import NewPlans, killed, settings, stored
from tests.scientist.scripted_model import ScriptedModel
from tests.scientist.tool_user import NewPlansByTools, role_with_tools
from tests.trials import trial, undescribed

pytestmark = pytest.mark.slow

VERDICTS = {"ok", "absent", "incorrect", "crashed", "rejected", "timeout"}


@pytest.mark.timeout(900)
def test_thirty_kernels_have_every_verdict_and_their_costs_add_up(
    lab: Path, cli: Cli, cli_here: Cli, prefect_api: str
) -> None:
    """Covers every role, repair, summaries, tuning, and resuming after the budget of kernels was raised."""
    more = ["problem=softmax", "search.generations=10", "llm.drafts=2", "tuning.tries=1"]
    more += ["tuning.promising=0.95"]
    with serving(ScriptedModel()) as server:
        arguments = settings(server, *more)
        stopped = cli("optimize", "--json", *arguments, "--set", "budget.kernels=12", PREFECT_API_URL=prefect_api)
        assert stopped.returncode == 0, stopped.stderr
        first = json.loads(stopped.stdout)
        assert first["kernels"] == 12 and "budget.kernels" in first["stopped"]
        arguments += ["--set", "budget.kernels=30"]
        done = cli("optimize", "--json", "--resume", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        result, requests = json.loads(done.stdout), len(server.requests)
    parent, children, store = stored(lab, "softmax")
    assert result["campaign"] == first["campaign"] and result["kernels"] == len(children) == 30
    assert undescribed(store, parent) == set()
    assert {v for v, n in result["verdicts"].items() if n} == VERDICTS

    replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
    assert len(replies) == requests and {r.role for r in replies} == set(ROLES)
    total = sum(r.usd for r in replies)
    run = store.client.get_run(parent.run_id).data.metrics
    assert result["usd"] == pytest.approx(total, abs=1e-4) and run["llm.usd"] == pytest.approx(total)
    assert run["llm.usd"] == pytest.approx(sum(run[f"llm.usd.{role}"] for role in ROLES))
    assert run["llm.calls"] == requests and 0 < run["llm.unreadable_rate.writer"] < 0.5

    traces = store.client.search_traces(locations=[store.experiment_id], max_results=500)
    assert len(traces) == requests
    runs = {r.data.tags["kernel"]: r.info.run_id for r in children}
    for trace in traces:  # of its kernel's run; a design, or a kernel that was not recorded: of the campaign's
        owner = runs.get(trace.info.tags.get("kernel"), parent.run_id)
        assert trace.info.trace_metadata["mlflow.sourceRun"] == owner
    assert sum(float(t.info.trace_metadata["usd"]) for t in traces) == pytest.approx(total)
    assert {t.info.tags["role"] for t in traces} == set(ROLES)
    content = {r.text for r in replies}
    assert all(t.data.spans[0].outputs["content"] in content for t in traces)

    population = store.population(parent)
    calls = [c for t in population for c in t.kernel.llm_calls]
    of_kernels = [r for r in replies if r.role in ("writer", "repairer", "judge")]
    assert sorted(c.key for c in calls) == sorted(r.request.key for r in of_kernels)
    repaired = [t for t in population if t.kernel.attempts and t.evaluation.verdict.value == "ok"]
    assert repaired and repaired[0].kernel.attempts[0].bug == "A.1"
    assert repaired[0].kernel.attempts[0].critique == "something was off"
    judged = [t for t in population if {c.role for c in t.kernel.llm_calls} >= {"writer", "judge"}]
    assert judged and all("draft 2" in t.kernel.report for t in judged if not t.kernel.attempts)
    tuned = [t.kernel for t in population if t.kernel.tuned_from]
    assert tuned and all(k.base == k.tuned_from and len(k.tries) == 1 for k in tuned)
    assert any(t.kernel.report.startswith("no kernel") for t in population)
    lessons = store.lessons(parent)
    by_id = {r.info.run_id: r.data.tags["kernel"] for r in children}
    assert lessons.findings and all(tuple(map(by_id.get, f.runs)) == f.kernels for f in lessons.findings)
    by_name = {r.data.tags["kernel"]: r for r in children}
    exchanges = store.client.list_artifacts(by_name[judged[0].kernel.name].info.run_id, "exchanges")
    assert [f.path.rpartition("-")[2] for f in exchanges][:3] == ["writer.md", "writer.md", "judge.md"]
    assert by_name[judged[0].kernel.name].data.params["model.designer"] == "openai/scripted"

    exported = cli_here("export", "--set", "problem=softmax")
    examples = [json.loads(line) for line in exported.stdout.splitlines()]
    assert {e["verdict"] for e in examples} == VERDICTS - {"absent"} | {"compile_error"}  # that of a repaired one
    graded = [t for t in population if t.kernel.experiment and t.kernel.base and t.evaluation.verdict.value != "absent"]
    versions = [a.verdict.value for t in graded for a in t.kernel.attempts]
    assert len(examples) == len(graded) + sum(verdict != "absent" for verdict in versions) and len(graded) >= 20
    page = cli_here("report", "--set", "problem=softmax", "--out", "reports/report.html")
    assert page.returncode == 0 and "openai/scripted" in (lab / "reports/report.html").read_text()


def test_a_killed_and_resumed_campaign_pays_nothing_twice(lab: Path, cli: Cli, prefect_api: str) -> None:
    with serving(ScriptedModel(("good", "good", "wrong"))) as server:
        arguments = settings(server, "search.generations=2")
        killed(lab, arguments, prefect_api, lambda: len(server.requests) >= 6)
        before = len(server.requests)
        done = cli("optimize", "--json", "--resume", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
    parent, children, _ = stored(lab)
    names = [r.data.tags["kernel"] for r in children]
    assert names == [f"k{n:05d}" for n in range(1, 9)] and result["kernels"] == 8
    replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
    keys = [r.request.key for r in replies]
    assert len(keys) == len(set(keys))
    # the request in flight at the kill may be sent again, as its reply had not arrived
    assert len(server.requests) - len(keys) in (0, 1), (before, len(server.requests), len(keys))


GENERATIONS = {"answers": 30, "tools": 20}
"""Enough that a fast host does not end the campaign before the last kill."""
WITH_TOOLS = ("designer", "writer", "repairer")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("by", GENERATIONS)
def test_twenty_kills_lose_and_double_nothing(by: str, tmp_path: Path, prefect_api: str) -> None:
    """A campaign with eight calls in flight, killed at twenty random moments: nothing doubled, nothing paid twice.

    `by`: whether roles answer at once, or by conversations in which they call tools.
    """
    kills, rng, recorded, generations = 20, Random(7), dict[str, str](), GENERATIONS[by]
    kinds = ("good", "compile error", "wrong", "unreadable", "good", "crash", "good", "cheat", "good")
    lab = new_lab(tmp_path / "lab")
    with serving(NewPlansByTools(kinds) if by == "tools" else NewPlans(kinds)) as server:
        arguments = settings(server, f"search.generations={generations}", "llm.concurrency=8")
        for name in WITH_TOOLS if by == "tools" else ():
            arguments += ["--set", f"llm.{name}={role_with_tools(server, True)}"]
        command = [sys.executable, "-m", "kernel_scientist", "optimize", "--json", *arguments]
        environment = lab_environment(lab, PREFECT_API_URL=prefect_api)
        for _ in range(kills):
            process = subprocess.Popen(
                [*command, *(["--resume"] if started(lab) else [])],
                env=environment,
                cwd=lab,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(rng.uniform(6, 14))
            assert process.poll() is None, "the campaign ended before it was killed"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if started(lab):
                finished = [run.data.tags for run in stored(lab)[1] if run.info.status == "FINISHED"]
                now = {tags["kernel"]: tags["digest"] for tags in finished}
                assert len(now) == len(finished) and recorded.items() <= now.items()
                recorded = now
        done = subprocess.run([*command, "--resume"], env=environment, cwd=lab, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        result, requests = json.loads(done.stdout), len(server.requests)
    parent, children, store = stored(lab)
    digests = {r.data.tags["kernel"]: r.data.tags["digest"] for r in children}
    kernels = 2 + 3 * generations
    assert (
        list(digests) == [f"k{n:05d}" for n in range(1, kernels + 1)] and len(children) == result["kernels"] == kernels
    )
    assert recorded.items() <= digests.items() and len(set(digests.values())) == kernels
    population = store.population(parent)
    experiments = [(t.kernel.base, t.kernel.experiment.title) for t in population if t.kernel.experiment]
    assert len(set(experiments)) == len(experiments) == 3 * generations
    replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
    assert len({stable_key(r.call_key) for r in replies}) == len({r.request.key for r in replies}) == len(replies)
    assert 0 <= requests - len(replies) <= 8 * kills  # eight requests may be in flight at a kill
    assert result["usd"] == pytest.approx(sum(r.usd for r in replies), abs=1e-4)
    assert len(store.client.search_traces(locations=[store.experiment_id], max_results=500)) == len(replies)


def started(lab: Path) -> bool:
    """Whether the store has a campaign."""
    if not (lab / "mlruns/mlflow.db").exists():
        return False
    return MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu").latest() is not None


def test_the_budget_of_money_ends_a_campaign(cli_here: Cli, prefect_api: str) -> None:
    with serving(ScriptedModel(("good",))) as server:
        arguments = settings(server, "search.generations=4", "budget.usd=0.03")
        done = cli_here("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert "budget.usd" in result["stopped"] and 0 < result["usd"] <= 0.03 and result["kernels"] < 14


def test_a_provider_that_stays_away_ends_a_campaign_that_keeps_its_kernels(cli_here: Cli, prefect_api: str) -> None:
    model = ScriptedModel(("good",))

    def script(request: dict[str, Any], number: int) -> Response:
        return model(request, number) if number <= 6 else Response(status=500)

    with serving(script) as server:
        arguments = settings(server, "search.generations=4", "llm.attempts=1", "llm.rest_s=1")
        done = cli_here("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "no model replies" in result["stopped"] and 2 < result["kernels"] < 14
    found = MlflowStore(result["mlflow"]["uri"], "identity-cpu").latest()
    assert found is not None and not found.running


def test_a_campaign_that_no_model_ever_answered_is_no_success(cli_here: Cli, prefect_api: str) -> None:
    with serving(lambda request, number: Response(status=500)) as server:
        arguments = settings(server, "search.generations=2", "llm.attempts=1", "llm.rest_s=1", "llm.first_delay_s=0.1")
        done = cli_here("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
    result = json.loads(done.stdout)
    assert done.returncode == 1 and "no model replies" in result["stopped"] and result["tokens"] == 0


@pytest.mark.parametrize(("status", "kind"), [(500, ModelError), (401, SetupError)])
def test_the_rule_based_agent_replaces_a_failing_model_if_it_is_a_fallback(
    status: int, kind: type[Exception], tmp_path: Path
) -> None:
    problem = load(ROOT / "problems" / "identity")
    seed = Kernel(name="k00001", language="cpp", source=problem.seeds("cpp")[1].read_text())
    population = Population((Trial(kernel=seed, evaluation=trial("k00001", 1.0, {}).evaluation),))
    with serving(lambda request, number: Response(status=status)) as server:
        price = {"input_usd": 1, "output_usd": 1}
        role = {"model": "openai/scripted", "api_base": server.address, "price": price, "fallbacks": ["playbook"]}
        llm = Llm.model_validate({"selector": role, "designer": {**role, "fallbacks": []}, "attempts": 1})
        client = LlmClient(llm, ResponseCache(tmp_path), LlmBudget(Budget()), "c", threading.Event())
        assignment = Assignment(problem, problem.profile("cpu"), "cpp", "cpu", CpuInfo.of_this_machine())
        agent = ensemble.create(llm, assignment, client)
        step = Step.of(0, "test", 1)
        selection = agent.select(population, Lessons(), step)
        assert selection.base == "k00001" and len(server.requests) == 1
        with pytest.raises(kind, match=r"llm\.designer"):
            agent.design(population, selection, Lessons(), step)


def test_the_dry_run_predicts_the_cost_of_models(cli_here: Cli) -> None:
    model = "{model: openai/gpt-4o}"
    done = cli_here("optimize", "--dry-run", "--json", "--set", f"llm.writer={model}")
    assert json.loads(done.stdout)["usd"] > 0
    own = cli_here(
        "optimize", "--dry-run", "--json", "--set", f"llm.writer={model}", "--set", "llm.designer={model: writer}"
    )
    assert json.loads(own.stdout)["usd"] == json.loads(done.stdout)["usd"], "the writer's own ideas cost no design"
    mixed = f"{{model: openai/gpt-4o, mix: [{model}]}}"
    shared = cli_here("optimize", "--dry-run", "--json", "--set", f"llm.writer={mixed}")
    assert json.loads(shared.stdout)["usd"] == json.loads(done.stdout)["usd"], "half of the calls each"
    looking = "{model: openai/gpt-4o, tools: true, calls: 4}"
    longer = cli_here("optimize", "--dry-run", "--json", "--set", f"llm.writer={looking}")
    assert json.loads(longer.stdout)["usd"] > 5 * json.loads(done.stdout)["usd"], "five calls, each with all before"
    planned = [
        json.loads(cli_here("optimize", "--dry-run", "--json", "--set", f"llm.designer={one}").stdout)["usd"]
        for one in (model, looking)
    ]
    assert planned[1] > 5 * planned[0], "a designer's too"
    for role, why in (("designer", "must name a model"), ("selector", "only the designer")):
        refused = cli_here("optimize", "--dry-run", "--set", f"llm.{role}={{model: writer}}")
        assert refused.returncode == 2 and why in refused.stderr
    done = cli_here("optimize", "--dry-run", "--set", "llm.writer={model: openai/nobody-knows}")
    assert done.returncode == 2 and "price" in done.stderr and "Traceback" not in done.stderr


def test_a_campaign_can_be_replayed_without_a_model(lab: Path, cli_here: Cli, tmp_path: Path, prefect_api: str) -> None:
    """The cached replies give the same kernels without an endpoint; nothing is sent or paid for."""
    more = ["search.generations=2", "knowledge.distil_every=1"]
    with serving(ScriptedModel(("good", "compile error", "wrong"))) as server:
        arguments = settings(server, *more)
        done = cli_here("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    parent, _, store = stored(lab)
    other_lab = new_lab(tmp_path / "other")
    shutil.copytree(lab / "data/replies", other_lab / "data/replies")
    arguments += ["--set", f"llm.replay={parent.campaign}"]
    replayed = subprocess.run(
        [sys.executable, "-m", "kernel_scientist", "optimize", "--json", *arguments],
        cwd=other_lab,
        env=lab_environment(other_lab, PREFECT_API_URL=prefect_api),
        capture_output=True,
        text=True,
    )
    assert replayed.returncode == 0, replayed.stderr
    again, _, other_store = stored(other_lab)
    before, after = store.population(parent), other_store.population(again)
    assert [(t.kernel.name, t.kernel.digest) for t in after] == [(t.kernel.name, t.kernel.digest) for t in before]
    assert len(after) == 2 + 2 * 3 and any(t.kernel.attempts for t in after)
    assert again.campaign != parent.campaign and json.loads(replayed.stdout)["usd"] == 0
    assert all(call.recalled for t in after for call in t.kernel.llm_calls)
    assert [f.text for f in other_store.lessons(again).findings] == [f.text for f in store.lessons(parent).findings]
