"""The end of a campaign: what becomes of its champion is decided and recorded, then carried out.

A session that is killed in between leaves the rest to the next one, which completes it before anything else.
"""

from contextlib import ExitStack
from functools import partial

from flows import events
from flows.progress import Progress
from kernel_scientist.campaign import champions, conclusion
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.steps import progress as say
from kernel_scientist.population.final import Final
from kernel_scientist.records.approval import Approval, Promotion
from kernel_scientist.records.campaign_result import CampaignResult, Standing
from kernel_scientist.records.evaluation import Confirmation, Trial
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.report import champion

ANNOUNCED = {"campaign", "champion", "speedup", "interval", "confirmed", "mlflow"}
"""Fields of the result in the event of a new standing champion."""


def concluded(
    campaign: Campaign,
    progress: Progress,
    confirmation: Confirmation | None,
    standing: Trial | None,
    turn: ExitStack,
) -> CampaignResult:
    """Promote the champion if it may be: export and register it. Close the campaign; return its result.

    `turn`: holds the right to replace the standing champion.
    """
    found, best = conclusion.of(campaign, confirmation), campaign.champion()
    if best is None or confirmation is None:
        progress.publish(None)
        _record(campaign, found)
        campaign.finish()
        return found
    context = campaign.context
    replaces, reason = champions.verdict(standing, best, confirmation)
    promotion = Promotion(replaces, confirmation.confirmed and context.params.tracking.register_champion, reason)
    answer, before = Approval(), champion.standing_digest(campaign)
    if (promotion.promoted or promotion.registered) and context.params.validate_.approval:
        version = ""
        if promotion.registered:
            model = champion.model_name(campaign, best.kernel)
            version = f"version {campaign.insist(partial(campaign.store.next_version, model))} of {model}"
        answer, overtaken = _answer(campaign, question(found, best.kernel, promotion, version), turn)
        promotion, before = promotion.after(answer, overtaken), champion.standing_digest(campaign)
    became = Standing(replaced=promotion.promoted, reason=promotion.reason, approval=str(answer))
    found = found.model_copy(update={"standing": became})
    decision = champion.decided(campaign, found, confirmation, promotion.registered, before)
    campaign.insist(partial(champion.record, campaign, decision))
    _promote(campaign, progress, decision)
    campaign.finish()
    return found


def _promote(campaign: Campaign, progress: Progress, decision: champion.PromotionDecision) -> None:
    """Carry out what was decided about a champion, and record the result."""
    found, context = decision.result, campaign.context
    champion.carry_out(campaign, decision)
    progress.publish(decision.confirmation)
    if decision.standing.replaced:  # before the result: a kill in between sends the event twice, never not at all
        told = found.model_dump(mode="json", include=ANNOUNCED)
        subject = context.problem.name, context.params.language, context.address.name
        events.emit(events.NEW, *subject, **told, reason=decision.standing.reason)
    _record(campaign, found)


def complete(campaign: Campaign, progress: Progress) -> None:
    """Complete the promotion that an earlier session of a campaign has decided about and not carried out, if any."""
    waiting = campaign.insist(partial(champion.pending, campaign))
    if waiting is None:
        return
    say.info("completing the promotion of %s, which was interrupted", waiting.result.champion)
    campaign.final = recorded_final(campaign)
    with champions.turn(campaign.context):
        _promote(campaign, progress, champion.renewed(campaign, waiting))
    campaign.final = None  # of the kernels so far


def recorded_final(campaign: Campaign) -> Final | None:
    """Return the final of a resumed campaign's kernels, if it was run."""
    return campaign.insist(partial(campaign.store.final, campaign.run, campaign.population))


def _record(campaign: Campaign, found: CampaignResult) -> None:
    """Record the result: what was decided about the champion is complete."""
    campaign.insist(partial(campaign.store.log_text, campaign.run, conclusion.RESULT, found.model_dump_json(indent=1)))


def _answer(campaign: Campaign, asked: str, turn: ExitStack) -> tuple[Approval, bool]:
    """Return a person's decision about a champion, and whether another campaign promoted its own meanwhile.

    Other campaigns do not wait for the answer.
    """
    context = campaign.context
    standing = champions.source(context)
    turn.close()
    answer = context.steps.approve(context, asked)
    turn.enter_context(champions.turn(context))
    return answer, champions.source(context) != standing


def question(found: CampaignResult, kernel: Kernel, promotion: Promotion, version: str) -> str:
    """Return what a person reads who is to approve what becomes of a champion.

    `version`: of which model it would become which version; empty if it would not be registered.
    """
    name = f"{kernel.name} of {found.campaign} ({kernel.title})"
    if promotion.promoted:
        ask, standing = f"Promote {name}{f' and register it as {version}' if version else ''}?", promotion.reason
    else:
        ask, standing = f"Register {name} as {version}? (not promoted: {promotion.reason})", "stays"
    speed = f"{found.factor} the reference's speed" if found.factor else "not measured"
    return (
        f"{ask}\n\n- {found.problem} in {kernel.language} on {found.target}: {speed}\n"
        f"- {found.told}\n- the standing champion: {standing}\n- MLflow run {found.mlflow.run}"
    )
