"""The champions: per problem, language and target the best kernel of all campaigns, as files. DVC does not track them.

    champions/PROBLEM/LANGUAGE-TARGET/       the standing champion: kernel.py and card.json
    champions/PROBLEM/campaigns/CAMPAIGN/    the champion of each campaign

A campaign's champion replaces the standing one only if it is better: confirmed and found faster in a run that timed
both, or, on a model target, predicted to be faster with the same constants.
"""

import json
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.campaign import preflight
from kernel_scientist.campaign.evaluation_context import EvaluationContext
from kernel_scientist.campaign.steps import infrastructure_as_verdict
from kernel_scientist.compilers.fingerprint import fingerprint
from kernel_scientist.hardware import addresses
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Confirmation, Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Language, Origin, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox import device_lock

STANDING = "standing"
"""Name of the standing champion in a run that times it."""
SOURCE, CARD, CAMPAIGNS = "kernel.py", "card.json", "campaigns"
DEVICE = ("machine", "cores", "device", "name", "driver", "compiler", "torch", "system")
"""What an evaluation's environment says about the device that times depend on."""


def folder(problem: str, language: Language, target: str) -> Path:
    """Return the folder of a standing champion. `target`: the resolved target's name."""
    return environment.root() / "champions" / problem / f"{language}-{target}"


def of_campaign(problem: str, campaign: str) -> Path:
    """Return the folder of a campaign's champion."""
    return environment.root() / "champions" / problem / CAMPAIGNS / campaign


def turn(context: EvaluationContext) -> AbstractContextManager[None]:
    """Let one campaign at a time compare its champion with the standing one and replace it."""
    standing = folder(context.problem.name, context.params.language, context.address.name)
    purpose = f"compare and replace the standing champion of {context.problem.name}"
    return device_lock.turn(standing, context.stopped, purpose)


def source(context: EvaluationContext) -> str | None:
    """Return the source of the standing champion; None if there is none."""
    path = folder(context.problem.name, context.params.language, context.address.name) / SOURCE
    return path.read_text() if path.exists() else None


def origin(place: Path) -> Origin | None:
    """Return which kernel of which campaign the standing champion in a folder is; None if there is none."""
    if not (place / SOURCE).exists():
        return None
    try:
        told = json.loads((place / CARD).read_text())
    except (OSError, ValueError):  # somebody put the kernel there
        told = {}
    changed = time.strftime("%Y-%m-%d", time.localtime((place / SOURCE).stat().st_mtime))
    campaign, name = told.get("campaign", "unknown"), told.get("kernel", SOURCE)
    return Origin(campaign=campaign, kernel=name, date=told.get("date", changed))


def file(params: Params) -> Path:
    """Return the source of the standing champion of the parameters. Raises SetupError if there is none."""
    problem, address = preflight.resolve(params)
    found = folder(problem.name, params.language, address.name) / SOURCE
    if not found.exists():
        what = f"{problem.name} in {params.language} on {address.name}"
        raise SetupError(f"there is no champion of {what} yet: run `kernel-scientist optimize`, or name a file")
    return found


@dataclass(frozen=True)
class Promoted:
    """A standing champion as its folder tells it."""

    source: Path
    params: dict[str, str]
    """Problem, language and target, as in params.yaml."""
    environment: dict[str, str]
    """Of the confirmation with which it was promoted; empty on older cards."""

    def drift(self, environment: dict[str, str]) -> dict[str, tuple[str, str]]:
        """Return what is another machine, driver or compiler than at the promotion: before and now."""
        both = {key for key in DEVICE if key in self.environment and key in environment}
        pairs = {key: (self.environment[key], environment[key]) for key in sorted(both)}
        return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def promoted() -> list[Promoted]:
    """Return all standing champions that can be confirmed again; a leaderboard's are left out: that submits them."""
    found = list[Promoted]()
    for card in sorted((environment.root() / "champions").rglob(CARD)):
        if card.parent.parent.name == CAMPAIGNS:
            continue
        told = json.loads(card.read_text())
        params = {**{key: told[key] for key in ("problem", "language")}, "target": told.get("run_on", told["target"])}
        if params["target"] != addresses.BOARD:
            found.append(Promoted(card.with_name(SOURCE), params, told.get("environment", {})))
    return found


def standing(context: EvaluationContext) -> Trial | None:
    """Return the champion that stands when a campaign ends, built now; None without a correct one.

    Its verdict is `infrastructure` if it could not be built for reasons other than the kernel.
    """
    if (text := source(context)) is None:
        return None
    place = folder(context.problem.name, context.params.language, context.address.name)
    kernel = Kernel(name=STANDING, language=context.params.language, source=text, origin=origin(place))
    evaluation: Evaluation = infrastructure_as_verdict(context.steps.compile)(context, kernel)
    is_known_wrong = evaluation.verdict not in (Verdict.OK, Verdict.INFRASTRUCTURE)
    return None if is_known_wrong else Trial(kernel=kernel, evaluation=evaluation)


def is_same(one: Trial, other: Trial) -> bool:
    """Whether two kernels are the same, except for comments, e.g. the leaderboard's header."""
    return fingerprint(one.kernel.source) == fingerprint(other.kernel.source)


def verdict(standing: Trial | None, best: Trial, confirmation: Confirmation) -> tuple[bool, str]:
    """Return whether a campaign's champion replaces the standing one, and a sentence that says why."""
    if standing is None:
        return True, "there was no other correct champion of this problem, language and target"
    if is_same(standing, best):
        of = standing.kernel.origin
        return False, f"{f'{of.words},' if of else 'the standing champion'} is the same kernel"
    if standing.evaluation.verdict is Verdict.INFRASTRUCTURE:
        return False, f"the standing one could not be evaluated: {standing.evaluation.reason}"
    if best.evaluation.by_model:
        before_us, now_us = standing.evaluation.predicted_us, best.evaluation.predicted_us
        if now_us is None:
            return False, "the campaign's champion has no predicted time"
        if before_us is None:
            return True, "the standing one had no predicted time"
        return now_us < before_us, f"{now_us:.4g} us predicted, {before_us:.4g} us for the standing one"
    if not confirmation.confirmed:
        return False, f"it is not confirmed: {confirmation.reason}"
    speedup = confirmation.evaluation.speedup_over(STANDING)
    if speedup is None:
        return False, "it was not timed against the standing one"
    return speedup.faster, f"{speedup} the standing one's speed, timed in one run"
