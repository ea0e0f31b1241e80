"""What a campaign does next, after steps for which models had no usable reply."""

import pytest

from kernel_scientist.campaign.beginning import Beginning, Start
from kernel_scientist.campaign.ledger import Ledger
from kernel_scientist.campaign.plan import DESIGN, MOST_FAILURES, REPAIR, WRITE, Plan
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import BudgetError, ModelError
from kernel_scientist.records.params import Params
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.parsing import ReplyError
from tests.trials import trial

REFUSED = ModelError("llm.writer: no model replies; the prompt is too long", may_pass=False)


def new_plan() -> Plan:
    population, params = Population([trial("k00001", 1.0)]), Params()
    return Plan(params, Beginning((), Start()), population, Ledger(population), LlmBudget(params.budget))


@pytest.mark.parametrize("error", [BudgetError("it is spent"), ModelError("no model replies")])
@pytest.mark.parametrize("step", [DESIGN, WRITE, REPAIR])
def test_a_used_up_budget_and_a_provider_that_stays_away_end_it_at_once(step: str, error: Exception) -> None:
    plan = new_plan()
    assert plan.over() is None
    plan.failed(step, error)
    assert plan.over() == str(error)


@pytest.mark.parametrize("error", [ReplyError("no plan"), REFUSED])
@pytest.mark.parametrize("step", [DESIGN, WRITE])
def test_what_one_request_met_ends_it_only_if_it_goes_on_so(step: str, error: Exception) -> None:
    plan = new_plan()
    for _ in range(3):
        for _ in range(MOST_FAILURES - 1):
            plan.failed(step, error)
        assert plan.over() is None
        plan.succeeded(step)
    for _ in range(MOST_FAILURES):
        plan.succeeded(DESIGN if step == WRITE else WRITE)  # another step says nothing about this one
        plan.failed(step, error)
    assert str(error) in str(plan.over())


def test_refused_repairs_end_nothing() -> None:
    plan = new_plan()
    for _ in range(2 * MOST_FAILURES):
        plan.failed(REPAIR, REFUSED)
    assert plan.over() is None
