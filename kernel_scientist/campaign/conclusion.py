"""The result of `optimize` from a campaign that has ended (`records.campaign_result`)."""

from kernel_scientist.campaign import champions, ending, results
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.population import curves, standings
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors
from kernel_scientist.records.campaign_result import CampaignResult, CurvePoint, RunAddress
from kernel_scientist.records.evaluation import CONFIRMED, NOT_CONFIRMED, Confirmation
from kernel_scientist.records.kernel import REFERENCE, Verdict

RESULT = "summary.json"
"""Artifact of a campaign's run: its result."""


def of(campaign: Campaign, confirmation: Confirmation | None) -> CampaignResult:
    """Return a campaign's result. Its speedup is the confirmation's, over the reference."""
    best, problem, population = campaign.champion(), campaign.context.problem, campaign.population
    unknown = Verdict.COMPILED if standings.unexecuted(population) else None
    unknown = Verdict.INFRASTRUCTURE if standings.undecided(population) else unknown
    over = confirmation.evaluation.speedup_over(REFERENCE) if confirmation else None
    measured = results.of_speedup(over) if over else None
    return CampaignResult(
        campaign=campaign.name,
        problem=problem.name,
        target=campaign.context.address.name,
        start=campaign.beginning.start.told(population),
        champion=best.kernel.name if best else None,
        champion_reason=standings.reason(population, campaign.final),
        final=standings.final_rows(population, campaign.final),
        verdict=confirmation.evaluation.verdict if confirmation else unknown,
        status=confirmation.status if confirmation else NOT_CONFIRMED,
        confirmed=bool(confirmation and confirmation.status == CONFIRMED),
        why=confirmation.reason if confirmation else standings.no_champion(population),
        speedup=measured.ratio if measured else None,
        interval=measured.interval if measured else None,
        interval_why=measured.interval_why if measured else _why_no_speedup(campaign, confirmation),
        cases=measured.cases if measured else (),
        busy=confirmation.evaluation.busy if confirmation else "",
        bars=results.bars(confirmation) if confirmation else (),
        predicted=results.predicted(best.evaluation, problem) if best else None,
        kernels=len(population),
        verdicts=population.verdicts(),
        usd=results.rounded(campaign.llm_budget.usd),
        tokens=campaign.llm_budget.tokens,
        stopped=campaign.plan.why(),
        resume=ending.command(campaign.run, campaign.plan.why()),
        mlflow=RunAddress(uri=campaign.store.uri, run=campaign.run.run_id),
        source=str(champions.of_campaign(problem.name, campaign.name) / champions.SOURCE) if best else None,
        curve=curve(population),
    )


def recorded(campaign: Campaign) -> CampaignResult | None:
    """Return a campaign's result as it was recorded, if no kernel was added since then and its confirmation decided
    something; else None: it is made once more."""
    text = campaign.store.text(campaign.run, RESULT)
    found = CampaignResult.model_validate_json(text) if text else None
    if found is None or found.kernels != len(campaign.population) or found.verdict is Verdict.INFRASTRUCTURE:
        return None
    place = champions.of_campaign(campaign.context.problem.name, campaign.name) / champions.SOURCE
    now = {"stopped": f"{campaign.plan.why()}: no kernel was added, so this is the recorded result"}
    now |= {"resume": ending.command(campaign.run, campaign.plan.why())}
    return found.model_copy(update=now | ({"source": str(place)} if found.source else {}))


def curve(population: Population) -> tuple[CurvePoint, ...]:
    """Return each kernel's score and the incumbent's with their intervals, in the order of the names.

    A measured score is the speedup over the reference in the kernel's own run, None if that is not resolved.
    """
    best, rows = curves.of(population), list[CurvePoint]()
    for index, trial in enumerate(population, start=1):
        own, incumbent = curves.point(trial), best[index - 1]
        rows.append(
            CurvePoint(
                index=index,
                kernel=trial.kernel.name,
                experiment=trial.kernel.title,
                verdict=trial.evaluation.verdict.value,
                score="predicted" if trial.evaluation.by_model else "measured",
                speedup=results.rounded(own.ratio) if own else None,
                speedup_low=results.rounded(own.low) if own else None,
                speedup_high=results.rounded(own.high) if own else None,
                best=results.rounded(incumbent.ratio),
                best_low=results.rounded(incumbent.low),
                best_high=results.rounded(incumbent.high),
            )
        )
    return tuple(rows)


def _why_no_speedup(campaign: Campaign, confirmation: Confirmation | None) -> str:
    """Return why a campaign's champion has no speedup over the reference."""
    if campaign.context.by_model:
        return factors.PREDICTED
    return factors.UNTIMED if confirmation else "no kernel was confirmed"
