"""The files of a campaign's champion, and what its registered model says about it."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernel_scientist.campaign import champions, recorded
from kernel_scientist.compile.source import leaderboard
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.approval import Approval
from kernel_scientist.records.evaluation import Confirmation
from kernel_scientist.records.factors import factor
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.report import ranking, summaries
from kernel_scientist.report.output import write, write_json

if TYPE_CHECKING:
    from kernel_scientist.campaign.campaign import Campaign

CARD = ("problem", "campaign", "champion_reason", "status", "confirmed", "why", "standing", "bars", "predicted")
"""Fields of a champion's card that the JSON of `optimize` has as well."""


def export(
    campaign: "Campaign",
    confirmation: Confirmation,
    replaces: bool,
    reason: str,
    summary: dict[str, Any],
    answer: Approval,
) -> None:
    """Write the champion's source and card, and log the confirmation to MLflow.

    `replaces`, `reason`: whether it becomes the standing champion of its problem, language and target, and why.
    `answer`: a person's decision about that.
    """
    best, context = campaign.champion(), campaign.context
    assert best is not None
    summary["standing"] = {"replaced": replaces, "reason": reason}
    if said := str(answer):
        summary["standing"]["approval"] = said
    card = {
        "kernel": best.kernel.name,
        "digest": best.kernel.digest,
        "language": best.kernel.language,
        "target": context.target.name,
        "run_on": context.target.name if context.params.target == "auto" else context.params.target,
        **{key: summary[key] for key in CARD},
        "environment": confirmation.evaluation.environment,
        "date": time.strftime("%Y-%m-%d"),
        "lineage": ranking.lineage(campaign.population, best.kernel),
        "experiment": best.kernel.title,
    }
    folders = [champions.of_campaign(context.problem.name, campaign.name)]
    folders += [champions.folder(context.problem.name, best.kernel.language, context.target.name)] if replaces else []
    source = submission(best.kernel, context.problem)
    validation = summaries.validation_summary(context, best.kernel, confirmation)
    written = best.kernel.model_copy(update={"source": source})
    baseline = recorded.baseline(campaign.population, confirmation)
    made = {recorded.KEY: recorded.key(context.params, context.problem, context.target, written, baseline)}
    for folder in folders:
        write(folder / champions.SOURCE, source)
        write_json(folder / champions.CARD, card)
        write_json(folder / recorded.FILE, {**validation, "recorded": campaign.name, **made})
    campaign.store.log_confirmation(campaign.run, confirmation, validation, replaces, reason, said)


def submission(kernel: Kernel, problem: Problem) -> str:
    """Return a kernel's source; a GPU kernel's begins with the header that the GPU MODE leaderboard needs."""
    has_header = kernel.language == "cpp" or leaderboard(kernel.source)
    return kernel.source if has_header else problem.leaderboard.header() + kernel.source


def model_facts(summary: Mapping[str, Any], confirmation: Confirmation, answer: Approval) -> dict[str, str]:
    """Return what a registered champion's card and version say about it."""
    facts = {
        "confirmation": summaries.told(summary),
        "speedup over the reference": factor(summary["speedup"], summary["interval"]),
        "hardware": summaries.machine(confirmation.evaluation.environment),
        "approval": str(answer),
    }
    return {name: text for name, text in facts.items() if text}
