"""First kernels that nothing was found out about are undecided, and a resume tries them again."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.campaign.beginning import Beginning, Start
from kernel_scientist.campaign.ledger import Ledger
from kernel_scientist.campaign.plan import Plan
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.population import standings
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.scientist.llm.costs import LlmBudget
from tests.conftest import Cli

SET = ("problem=identity", "search.generations=0", "harness.blocks=4", "harness.warmup_calls=1", "validate.blocks=3")
SET = (*SET, "harness.output_mib=17")  # as no other test: what others have compiled would be taken from the cache
OPTIMIZE = ("optimize", "--json", *(part for one in SET for part in ("--set", one)))


def seed(name: str, verdict: Verdict, source: str = "# seed\n") -> Trial:
    kernel = Kernel(name=name, language="cpp", source=source)
    return Trial(kernel=kernel, evaluation=Evaluation(verdict=verdict, reason="no worker started"))


def plan(population: Population, file: Path) -> Plan:
    params, beginning = Params(), Beginning([file], Start(seeds=("cpp_seed",)))
    return Plan(params, beginning, population, Ledger(population), LlmBudget(params.budget))


def test_a_seed_is_tried_until_it_is_judged_and_takes_no_experiments_place(tmp_path: Path) -> None:
    file = tmp_path / "cpp_seed.py"
    file.write_text("# seed\n")
    experiments = plan(Population(), file).planned - 1
    failed = Population([seed("k00001", Verdict.INFRASTRUCTURE)])
    again = plan(failed, file)
    assert again.planned == experiments + 2 and again.why() == standings.undecided(failed)
    (job,) = again.seed_jobs()
    assert job.name == "k00002" and "no worker started; a resume tries them again" in again.why()
    judged = Population([seed("k00001", Verdict.INFRASTRUCTURE), seed("k00002", Verdict.INCORRECT)])
    assert not standings.undecided(judged) and standings.no_champion(judged) == "No kernel is correct."
    later = plan(judged, file)
    assert later.planned == experiments + 2 and later.seed_jobs() == []


@pytest.mark.slow
def test_a_campaign_whose_seeds_nobody_could_judge_is_undecided_and_resumed(
    lab: Path, cli_here: Cli, prefect_api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> Evaluation:
        raise InfrastructureError("no worker started")

    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "compile", failing)
        done = cli_here(*OPTIMIZE, PREFECT_API_URL=prefect_api)
    result = json.loads(done.stdout)
    assert done.returncode == 3 and result["verdict"] == "infrastructure" and result["champion"] is None, done.stderr
    assert result["verdicts"]["infrastructure"] == result["kernels"] == 2
    assert "no worker started" in result["why"] and f"--campaign {result['campaign']}" in result["resume"]
    done = cli_here(*OPTIMIZE, "--resume", PREFECT_API_URL=prefect_api)
    after = json.loads(done.stdout)
    assert done.returncode == 0 and after["campaign"] == result["campaign"], done.stderr
    assert after["verdicts"]["infrastructure"] == after["verdicts"]["ok"] == 2 and after["champion"] in (
        "k00003",
        "k00004",
    )
