"""The files of a campaign's champion, and what its registered model says about it."""

import time
from typing import TYPE_CHECKING

from kernel_scientist.campaign import champions, recorded, results
from kernel_scientist.compilers.source import leaderboard
from kernel_scientist.population import standings
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.approval import Approval
from kernel_scientist.records.campaign_result import CampaignResult, Standing
from kernel_scientist.records.evaluation import Confirmation
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.report.output import write, write_json

if TYPE_CHECKING:
    from kernel_scientist.campaign.campaign import Campaign

CARD = {"problem", "campaign", "champion_reason", "status", "confirmed", "why", "standing", "bars", "predicted"}
"""Fields of a champion's card that the result of `optimize` has as well."""


def export(
    campaign: "Campaign",
    confirmation: Confirmation,
    replaces: bool,
    reason: str,
    found: CampaignResult,
    answer: Approval,
) -> CampaignResult:
    """Write the champion's source and card, and log the confirmation to MLflow; return the result with its standing.

    `replaces`, `reason`: whether it becomes the standing champion of its problem, language and target, and why.
    `answer`: a person's decision about that.
    """
    best, context = campaign.champion(), campaign.context
    assert best is not None
    standing = Standing(replaced=replaces, reason=reason, approval=str(answer))
    found = found.model_copy(update={"standing": standing})
    card = {
        "kernel": best.kernel.name,
        "digest": best.kernel.digest,
        "language": best.kernel.language,
        "target": context.address.name,
        "run_on": context.address.name if context.params.target == "auto" else context.params.target,
        **found.model_dump(mode="json", include=CARD),
        "environment": confirmation.evaluation.environment,
        "date": time.strftime("%Y-%m-%d"),
        "lineage": standings.lineage(campaign.population, best.kernel),
        "experiment": best.kernel.title,
    }
    folders = [champions.of_campaign(context.problem.name, campaign.name)]
    folders += [champions.folder(context.problem.name, best.kernel.language, context.address.name)] if replaces else []
    source = submission(best.kernel, context.problem)
    validation = results.of_confirmation(context, best.kernel, confirmation)
    written = best.kernel.model_copy(update={"source": source})
    baseline = recorded.baseline(campaign.population, confirmation)
    key = recorded.key(context.params, context.problem, context.address, written, baseline)
    kept = validation.model_copy(update={"recorded": campaign.name, "key": key})
    for folder in folders:
        write(folder / champions.SOURCE, source)
        write_json(folder / champions.CARD, card)
        write_json(folder / recorded.FILE, kept)
    campaign.store.log_confirmation(campaign.run, confirmation, validation, replaces, reason, str(answer))
    return found


def submission(kernel: Kernel, problem: Problem) -> str:
    """Return a kernel's source; a GPU kernel's begins with the header that the GPU MODE leaderboard needs."""
    has_header = kernel.language == "cpp" or leaderboard(kernel.source)
    return kernel.source if has_header else problem.leaderboard.header() + kernel.source


def model_facts(found: CampaignResult, confirmation: Confirmation, answer: Approval) -> dict[str, str]:
    """Return what a registered champion's card and version say about it."""
    facts = {
        "confirmation": found.told,
        "speedup over the reference": found.factor,
        "hardware": confirmation.evaluation.machine,
        "approval": str(answer),
    }
    return {name: text for name, text in facts.items() if text}
