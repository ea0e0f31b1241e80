"""The files of a problem's champion, which DVC tracks: its source and its card."""

import json
from typing import TYPE_CHECKING

from kernel_scientist.compile.source import leaderboard
from kernel_scientist.evaluate.confirmation import Confirmation
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.report import ranking, summaries

if TYPE_CHECKING:
    from kernel_scientist.campaign.state import Campaign


def export(campaign: "Campaign", confirmation: Confirmation) -> None:
    """Write the champion's source and card, and log the confirmation to MLflow."""
    best, problem = campaign.champion(), campaign.context.problem
    assert best is not None
    folder = summaries.champion_folder(problem.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.py").write_text(submission(best.kernel, problem))
    card = {
        "problem": problem.name,
        "kernel": best.kernel.name,
        "campaign": campaign.name,
        "digest": best.kernel.digest,
        "champion_reason": ranking.reason(campaign.population, campaign.final),
        "confirmed": confirmation.confirmed,
        "why": confirmation.reason,
        "predicted": summaries.predicted(best.evaluation),
        "lineage": lineage(campaign.population, best.kernel),
        "experiment": best.kernel.experiment.title if best.kernel.experiment else "seed",
    }
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    campaign.store.log_confirmation(campaign.run, confirmation.evaluation, confirmation.held_out_speedups)


def submission(kernel: Kernel, problem: Problem) -> str:
    """Return a kernel's source; a GPU kernel's begins with the header that the GPU MODE leaderboard needs."""
    if kernel.language == "cpp" or leaderboard(kernel.source):
        return kernel.source
    return problem.leaderboard.header() + kernel.source


def lineage(population: Population, kernel: Kernel) -> list[str]:
    """Return the experiments that led to a kernel, beginning with its seed."""
    steps: list[str] = []
    current: Kernel | None = kernel
    while current is not None:
        steps.append(f"{current.name} {current.experiment.title if current.experiment else current.report}")
        current = population.get(current.base).kernel if current.base else None
    return steps[::-1]
