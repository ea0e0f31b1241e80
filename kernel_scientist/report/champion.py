"""The promotion of a campaign's champion: recorded when it is decided, then carried out, by a resume if need be."""

import contextlib
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_scientist.campaign import champions, conclusion, recorded, results
from kernel_scientist.compilers.source import leaderboard
from kernel_scientist.population import standings
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import disk, environment
from kernel_scientist.records.base import Record
from kernel_scientist.records.campaign_result import CampaignResult, Standing
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Confirmation
from kernel_scientist.records.kernel import Kernel, digest
from kernel_scientist.report.output import json_text

if TYPE_CHECKING:
    from kernel_scientist.campaign.campaign import Campaign

CARD = {"problem", "campaign", "champion_reason", "status", "confirmed", "why", "standing", "bars", "predicted"}
"""Fields of a champion's card that the result of `optimize` has as well."""
DECISION = "decision.json"
"""Artifact of a campaign's run."""
OVERTAKEN = "not promoted: another champion was promoted before an interrupted promotion could be completed"


class PromotionDecision(Record):
    """What becomes of a campaign's champion, recorded before it is carried out: a resume completes it after a kill."""

    confirmation: Confirmation
    """Without raw samples."""
    result: CampaignResult
    """With what becomes of the standing champion; it is recorded last, so what has no such result is not complete."""
    registers: bool
    """Whether the champion becomes a version of its registered model."""
    before: str
    """Digest of the standing champion's source at the decision; empty without one."""
    key: str
    """What the confirmation depends on (`campaign.recorded.key`), by the settings and the code that made it."""
    date: str
    """Of the decision."""

    @property
    def standing(self) -> Standing:
        """What becomes of the standing champion."""
        assert self.result.standing is not None
        return self.result.standing


def decided(
    campaign: "Campaign", result: CampaignResult, confirmation: Confirmation, registers: bool, before: str
) -> PromotionDecision:
    """Return what was decided about a campaign's champion now."""
    context, date = campaign.context, time.strftime("%Y-%m-%d")
    found = PromotionDecision(
        confirmation=confirmation, result=result, registers=registers, before=before, key="", date=date
    )
    made = _kernel(campaign, found)
    written = made.model_copy(update={"source": submission(made, context.problem)})
    baseline = recorded.baseline(campaign.population, confirmation)
    key = recorded.key(context.params, context.problem, context.address, written, baseline)
    return found.model_copy(update={"key": key})


def standing_digest(campaign: "Campaign") -> str:
    """Return the digest of the standing champion's source; empty without one."""
    source = champions.source(campaign.context)
    return "" if source is None else digest(source)


def record(campaign: "Campaign", decision: PromotionDecision) -> None:
    """Write a confirmation and what becomes of the champion to the campaign's run. It may be repeated."""
    validation = results.of_confirmation(campaign.context, _kernel(campaign, decision), decision.confirmation)
    standing, confirmation = decision.standing, decision.confirmation
    facts = standing.replaced, standing.reason, standing.approval
    campaign.store.log_confirmation(campaign.run, confirmation, validation, *facts)
    without = {"confirmation": {"held_out_samples": True, "evaluation": {"samples"}}}
    campaign.store.log_text(campaign.run, DECISION, decision.model_dump_json(exclude=without))


def pending(campaign: "Campaign") -> PromotionDecision | None:
    """Return the decision about a resumed campaign's champion that was not carried out to its end; None without one."""
    text, result = (campaign.store.text(campaign.run, name) for name in (DECISION, conclusion.RESULT))
    found, complete = None, None
    with contextlib.suppress(ValueError):  # a kill left it half written
        found = PromotionDecision.model_validate_json(text) if text else None
    with contextlib.suppress(ValueError):
        complete = CampaignResult.model_validate_json(result) if result else None
    if found is None or found.result.kernels != len(campaign.population) or complete == found.result:
        return None
    return found


def renewed(campaign: "Campaign", decision: PromotionDecision) -> PromotionDecision:
    """Return a decision as it is to be completed now, which is recorded if another champion was promoted meanwhile."""
    ours = digest(submission(_kernel(campaign, decision), campaign.context.problem))
    if not decision.standing.replaced or standing_digest(campaign) in (decision.before, ours):
        return decision
    standing = decision.standing.model_copy(update={"replaced": False, "reason": OVERTAKEN})
    decision = decision.model_copy(update={"result": decision.result.model_copy(update={"standing": standing})})
    campaign.insist(partial(record, campaign, decision))
    return decision


def carry_out(campaign: "Campaign", decision: PromotionDecision) -> None:
    """Write the champion's files and register it; wait while a disk is full or the store does not answer.

    It may be repeated. Raises SetupError if the files cannot be written.
    """
    context, made, replaces = campaign.context, _kernel(campaign, decision), decision.standing.replaced
    places = [champions.of_campaign(context.problem.name, campaign.name)]
    places += [champions.folder(context.problem.name, made.language, context.address.name)] if replaces else []
    files = _files(campaign, decision)
    for file, content in ((place / name, content) for place in places for name, content in files.items()):
        disk.insist(partial(_put, file, content), file.parent, campaign.stopped)
    if decision.registers:
        model = model_name(campaign, made)
        facts = model_facts(decision.result, decision.confirmation)
        campaign.insist(partial(campaign.store.register, campaign.run, made, model, replaces, facts))


def model_name(campaign: "Campaign", champion: Kernel) -> str:
    """Return the name of the registered model of a champion's problem, language and target."""
    return f"{campaign.context.problem.slug}-{champion.language}-{campaign.context.address.name}"


def _kernel(campaign: "Campaign", decision: PromotionDecision) -> Kernel:
    assert decision.result.champion is not None
    return campaign.population.get(decision.result.champion).kernel


def _files(campaign: "Campaign", decision: PromotionDecision) -> dict[str, str]:
    """Return the texts of a champion's files, by their names."""
    context, made, confirmation = campaign.context, _kernel(campaign, decision), decision.confirmation
    card = {
        "kernel": made.name,
        "digest": made.digest,
        "language": made.language,
        "target": context.address.name,
        "run_on": context.address.name if context.params.target == "auto" else context.params.target,
        **decision.result.model_dump(mode="json", include=CARD),
        "environment": confirmation.evaluation.environment,
        "date": decision.date,
        "lineage": standings.lineage(campaign.population, made),
        "experiment": made.title,
    }
    validation = results.of_confirmation(context, made, confirmation)
    kept = validation.model_copy(update={"recorded": campaign.name, "key": decision.key})
    return {
        champions.SOURCE: submission(made, context.problem),
        champions.CARD: json_text(card),
        recorded.FILE: json_text(kept),
    }


def _put(file: Path, content: str) -> None:
    """Write a file whole or not at all: a resume looks at what is there. Raises SetupError."""
    try:
        environment.keep(file, content)
    except OSError as error:
        raise SetupError(
            f"cannot write the champion's file {file}: {error.strerror}; its confirmation is recorded, and "
            "`kernel-scientist optimize --resume` completes the promotion"
        ) from error


def submission(kernel: Kernel, problem: Problem) -> str:
    """Return a kernel's source; a GPU kernel's begins with the header that the GPU MODE leaderboard needs."""
    has_header = kernel.language == "cpp" or leaderboard(kernel.source)
    return kernel.source if has_header else problem.leaderboard.header() + kernel.source


def model_facts(found: CampaignResult, confirmation: Confirmation) -> dict[str, str]:
    """Return what a registered champion's card and version say about it."""
    facts = {
        "confirmation": found.told,
        "speedup over the reference": found.factor,
        "hardware": confirmation.evaluation.machine,
        "approval": found.standing.approval if found.standing else "",
    }
    return {name: text for name, text in facts.items() if text}
