"""A campaign's status: from the process that runs it, or from what the MLflow store holds of it."""

import functools
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kernel_scientist.campaign import conclusion, ending, tally
from kernel_scientist.campaign.campaign import WAITING, Campaign
from kernel_scientist.campaign.ending import Ending
from kernel_scientist.population.final import Final
from kernel_scientist.population.incumbent_change import IncumbentChange
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import environment
from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.factors import factor
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.names import slug
from kernel_scientist.report import status, tables
from kernel_scientist.report.status import Champion, Limit, Noise, Outcome, Result, RoleCalls, Status
from kernel_scientist.tracking import owner, run_content
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.found import StoredCampaign

LATEST = 10
ROLES = ("selector", "designer", "writer", "repairer", "distiller", "judge")
STATES = {"RUNNING": status.RUNNING, "FINISHED": status.FINISHED, "KILLED": status.STOPPED, "FAILED": status.FAILED}


class _CampaignFacts(NamedTuple):
    """What both sources know of a campaign."""

    population: Population
    final: Final | None
    metrics: Mapping[str, float]
    """Those of its run in the store."""
    pace: Sequence[tuple[int, float]]
    """Numbers of kernels, and the campaign's seconds when they were recorded."""
    limits: Mapping[str, float | None]
    """The budget, by the names of its parameters."""
    summary: str | None
    """The JSON of `optimize`; None until the campaign is finished."""
    at_work: int = 0
    """Kernels in progress, which the budget of kernels counts too."""

    def of(self, **about: Any) -> Status:
        """Return the status. `about`: the fields that these facts do not tell."""
        population, metrics = self.population, self.metrics
        elapsed_s, count = metrics.get("elapsed_s", 0.0), len(population)
        used = {"minutes": elapsed_s / 60, "usd": metrics.get("llm.usd", 0.0), "tokens": metrics.get("llm.tokens", 0.0)}
        budget = {name: Limit(used=value, limit=self.limits.get(name)) for name, value in used.items()}
        prefix = tally.SECONDS
        return Status(
            written_s=time.time(),
            elapsed_s=elapsed_s,
            kernels=count,
            champion=_champion(population, self.final, IncumbentChange.recorded(metrics, population.incumbent())),
            per_minute=60 * count / elapsed_s if count and elapsed_s else None,
            per_minute_now=status.pace(self.pace),
            budget_kernels=Limit(used=count + self.at_work, limit=self.limits.get("kernels")),
            seconds={key.removeprefix(prefix): value for key, value in metrics.items() if key.startswith(prefix)},
            result=_result(self.summary),
            noise=_noise(population),
            latest=tuple(map(_outcome, population.latest(LATEST))),
            **budget,
            **about,
        )


def of_campaign(campaign: Campaign, state: str = status.RUNNING) -> Status:
    """Return the status of a campaign of this process."""
    recorder, params, plan = campaign.recorder, campaign.params, campaign.plan
    spent = campaign.replies.spending(campaign.name)
    spending = run_content.spending(spent) if spent else {}
    metrics = {**campaign.run.metrics, **spending, **campaign.tally.metrics(), **recorder.incumbent_change.metrics}
    how = ending.of(campaign.run) if state != status.RUNNING else Ending(resume=_going_on(campaign))
    facts = _CampaignFacts(
        campaign.population,
        campaign.final,
        {**metrics, "elapsed_s": plan.elapsed_s()},
        list(recorder.pace),
        params.budget.model_dump(),
        campaign.store.text(campaign.run, conclusion.RESULT) if state == status.FINISHED else None,
        len(campaign.ledger),
    )
    return facts.of(
        campaign=campaign.name,
        problem=campaign.context.problem.name,
        language=params.language,
        target=campaign.context.address.name,
        folder=str(environment.root()),
        process=owner.this_process(),
        state=state,
        why=plan.over() or "" if state == status.RUNNING else how.why,
        resume=how.resume,
        planned=plan.planned,
        in_progress=_in_progress(campaign),
        roles=_roles(metrics, campaign.tally.reasons),
    )


@functools.lru_cache(maxsize=1)
def _going_on(campaign: Campaign) -> str:
    """Return the command that goes on with a campaign whose process dies; it is looked for once."""
    return ending.command(campaign.run)


def of_store(found: StoredCampaign) -> Status:
    """Return the status of a campaign as far as the MLflow store tells it."""
    run, params, how = found.run, found.run.params, ending.of(found.run)
    facts = _CampaignFacts(
        found.population,
        found.final,
        {**run.metrics, "elapsed_s": run.elapsed_s},
        found.pace,
        {name: _number(params.get(f"budget.{name}")) for name in ("minutes", "usd", "tokens", "kernels")},
        found.store.text(run, conclusion.RESULT) if found.state == "FINISHED" else None,
    )
    process = run.tags.get(owner.TAG, "")
    return facts.of(
        campaign=run.campaign,
        problem=params.get("problem", ""),
        language=params.get("language", ""),
        target=_target(run),
        folder="",
        process=process,
        why=how.why,
        resume="" if found.state == "FINISHED" else ending.command(run, how.why),
        state=STATES.get(found.state, found.state.lower()),
        planned=None,
        in_progress={},
        roles=_roles(run.metrics, {}),
    ).seen_now()


def _in_progress(campaign: Campaign) -> dict[str, str]:
    """Return what is being done, by kernel."""
    doing, jobs = (
        dict(campaign.ledger.activities),
        dict(campaign.ledger.jobs),
    )  # copies: the engine's thread changes them
    return {name: f"{doing.get(name, WAITING)}: {job.title}" for name, job in sorted(jobs.items())}


def _champion(population: Population, final: Final | None, change: IncumbentChange) -> Champion | None:
    best = population.get(final.champion) if final else population.best()
    if best is None:
        return None
    name, speedup = best.kernel.name, best.evaluation.speedup_over(REFERENCE)
    ratio, interval = (speedup.ratio, speedup.interval) if speedup and speedup.known else (None, None)
    timed_in_final = final is not None and name in final.times_us
    if final and timed_in_final:
        ratio, interval = final.speedup(name), final.interval(name)
    return Champion(
        kernel=name,
        title=_title(best),
        speedup=ratio,
        interval=interval,
        text=tables.speed_text(best) if ratio is None else factor(ratio, interval),
        measured_in="the final" if timed_in_final else "its own run",
        by_final=name != change.incumbent,
        since_kernels=change.kernels,
        since_s=change.elapsed_s,
    )


def _result(summary: str | None) -> Result | None:
    found = CampaignResult.model_validate_json(summary) if summary else None
    if found is None or not found.champion:
        return None
    return Result(status=found.status, confirmed=found.confirmed, text=found.factor, why=found.why)


def _title(trial: Trial) -> str:
    return trial.kernel.experiment.title if trial.kernel.experiment else trial.kernel.report


def _outcome(trial: Trial) -> Outcome:
    return Outcome(
        kernel=trial.kernel.name,
        title=_title(trial),
        verdict=trial.evaluation.verdict.value,
        speed=tables.speed_text(trial),
        reason=trial.evaluation.reason,
    )


def _noise(population: Population) -> Noise:
    timed = [trial.evaluation for trial in population.latest(10 * LATEST) if trial.evaluation.timings]
    tests = [test for evaluation in timed if (test := evaluation.test)]
    over = [s for evaluation in timed[-LATEST:] if (s := evaluation.speedup_over(REFERENCE)) and s.known]
    happened = timed[-1].environment if timed else {}
    return Noise(
        in_use=next((test.margin for test in reversed(tests) if test.margin), None),
        now=statistics.median((s.interval[1] / s.interval[0]) ** 0.5 - 1 for s in over) if over else None,
        load=happened.get("load", ""),
        others_percent=happened.get("others_percent", ""),
    )


def _roles(metrics: Mapping[str, float], reasons: Mapping[str, str]) -> tuple[RoleCalls, ...]:
    def count(name: str, role: str) -> int:
        return round(metrics.get(f"llm.{name}.{role}", 0))

    return tuple(
        RoleCalls(
            role=role,
            calls=count("calls", role),
            failed=count("failed", role),
            truncated=count("truncated", role),
            unreadable=count("unreadable", role),
            usd=metrics.get(f"llm.usd.{role}", 0.0),
            latest_failure=reasons.get(role, ""),
        )
        for role in ROLES
        if count("calls", role) or count("failed", role)
    )


def _target(run: CampaignRun) -> str:
    """Return the target's name by the campaign's id, `PROBLEM-TARGET-DATE-TIME-MARK`, as a running campaign gives it.

    The parameter may say `auto`, or name a pool; it is what there is if the id does not begin with the problem.
    """
    name, problem = run.campaign.rsplit("-", 3)[0], f"{slug(run.params.get('problem', ''))}-"
    return name.removeprefix(problem) if name.startswith(problem) else run.params.get("target", "")


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:  # "None": there is no limit
        return None
