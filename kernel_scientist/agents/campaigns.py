"""Campaigns whose kernels an agent writes. They are recorded, numbered and confirmed like all others.

The campaign of the last call stays open, so that the next kernel waits for no preparation. SIGTERM, or killing this
process, loses only the kernel that is being evaluated: the next call resumes the campaign.
"""

from contextlib import ExitStack
from typing import Any

from kernel_scientist import api
from kernel_scientist.agents import history
from kernel_scientist.agents.work import Json, Settings, written
from kernel_scientist.campaign import beginning, preflight, stopping
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.engine import Engine
from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.campaign.ledger import Job
from kernel_scientist.compilers.source import language_of, read_kernel
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import InfrastructureError, SetupError, StoppedError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Author, Experiment, Kernel, Verdict
from kernel_scientist.records.params import Params, load
from kernel_scientist.scientist.proposals import Draft

STRATEGY = "agent"
MINUTES = 60 * 24 * 365
"""The budget of time of an agent's campaign, which is open while the agent thinks: no limit in practice."""
OWN = (f"search.strategy={STRATEGY}", "search.agent=''", f"budget.minutes={MINUTES}", "knowledge.distil_every=0")
SUBJECT = ("problem", "language", "target", "profile", "compat", "budget.kernels")
"""Recorded parameters with which a campaign is resumed."""


class AgentCampaign:
    """A campaign that is open: new kernels are evaluated and recorded in it."""

    def __init__(self, params: Params, resume: bool | str) -> None:
        """Start a campaign, or resume a named one. Raises SetupError."""
        self._opened = ExitStack()
        with ExitStack() as opening:
            context = opening.enter_context(evaluation_context(params))
            self._check_stop = opening.enter_context(stopping.stoppable(context.target.close))
            self.campaign = Campaign(context, resume)
            opening.callback(self._finish)
            self._opened = opening.pop_all()

    def first_kernels(self) -> None:
        """Evaluate and record the kernels that the campaign starts from."""
        Engine(self.campaign, lambda _name, _activity: None, lambda _trial: None, self._check_stop).run()

    @property
    def left(self) -> int:
        """Return how many evaluations the budget has left."""
        return max(0, self.campaign.params.budget.kernels - len(self.campaign.population))

    def submit(self, source: str, base: str, experiment: Experiment, agent: str) -> Trial:
        """Evaluate and record a kernel. Raises SetupError for one that cannot be, and InfrastructureError."""
        campaign = self.campaign
        self._require(source, base)
        generation = campaign.population.entry(base).generation + 1
        job = campaign.ledger.open(Job(generation=generation, base=base, experiment=experiment))
        try:
            if not campaign.ledger.claim(job, source):
                raise SetupError("the source repeats a kernel that this campaign has tried already")
            draft = Draft(source=source, report=experiment.description)
            kernel = job.kernel(draft, campaign.params.language)
            trial = self._evaluated(kernel.model_copy(update={"authors": {"writer": Author(model=agent)}}))
        except Exception:
            campaign.ledger.drop(job)
            raise
        campaign.record([trial])
        campaign.ledger.close(job.name)
        campaign.insist(campaign.recorder.flush)
        return trial

    def _require(self, source: str, base: str) -> None:
        """Raise SetupError if a kernel cannot be submitted."""
        campaign = self.campaign
        if not self.left:
            raise SetupError(f"the budget of campaign {campaign.name} is spent: `confirm` it, or begin another")
        if base not in campaign.population:
            raise SetupError(history.absent(campaign.name, base, campaign.population))
        if (language := language_of(source)) != campaign.params.language:
            raise SetupError(f"campaign {campaign.name} is in {campaign.params.language}, the kernel in {language}")

    def _evaluated(self, kernel: Kernel) -> Trial:
        evaluation = self.campaign.compile(kernel)
        if evaluation.verdict is Verdict.OK and not evaluation.skipped:
            evaluation = self.campaign.time(kernel, evaluation)
        if evaluation.verdict is Verdict.INFRASTRUCTURE:
            raise InfrastructureError(evaluation.reason)
        return Trial(kernel=kernel, evaluation=evaluation)

    def close(self) -> None:
        """Close the campaign's run and stop its workers; it can be resumed."""
        self._opened.close()

    def _finish(self) -> None:
        try:
            self._check_stop()
        except StoppedError as stopped:
            self.campaign.finish("KILLED", str(stopped))
        else:
            self.campaign.finish("KILLED")


class Campaigns:
    """The calls about an agent's campaigns."""

    def __init__(self) -> None:
        self._open: AgentCampaign | None = None

    def begin(
        self, settings: Settings, problem: str, evaluations: int, language: str = "cpp", target: str | None = None
    ) -> Json:
        """Start a campaign with a budget of evaluations, and evaluate the kernels that it starts from."""
        named = {"problem": problem} | ({"target": target} if target else {})
        overrides = [*settings.overrides, *OWN, f"language={language}"]
        params = load(settings.params_file, overrides, named)
        first = len(beginning.new(params, *preflight.campaign(params), None))
        params = load(settings.params_file, [*overrides, f"budget.kernels={first + evaluations}"], named)
        opened = self._begin(params, False)
        return {**_state(opened), "kernels": _rows(opened.campaign.population)}

    def submit(
        self, settings: Settings, campaign: str, source: str, base: str, agent: str, experiment: dict[str, Any]
    ) -> Json:
        """Evaluate a kernel and record it in a campaign."""
        with written(source) as (file,):
            assert file is not None
            source = read_kernel(file)  # its lines end as those of any kernel's file
        opened = self._opened(settings, campaign)
        trial = opened.submit(source, base, Experiment.model_validate(experiment), agent)
        return {**_state(opened), **history.row(trial, opened.campaign.population)}

    def confirm(self, settings: Settings, campaign: str) -> Json:
        """Choose a campaign's champion by a final and confirm it in fresh processes, as `optimize` does at its end."""
        overrides = self._overrides(settings, campaign)
        params = load(settings.params_file, overrides)
        self.close()
        try:
            result = api.optimize(params.problem, params.target, campaign, overrides, settings.params_file)
        except SetupError as error:  # its sentence may name a held-out case
            raise RuntimeError("the confirmation cannot be done") from error
        return {"problem": result.problem, "campaign": campaign, **history.confirmation(result)}

    def close(self) -> None:
        """Close the open campaign, if there is one."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def _begin(self, params: Params, resume: bool | str) -> AgentCampaign:
        """Open a campaign; evaluate those of its first kernels that were not, or not judged."""
        self.close()
        self._open = opened = AgentCampaign(params, resume)
        try:
            opened.first_kernels()
        except Exception:
            self.close()
            raise
        return opened

    def _opened(self, settings: Settings, campaign: str) -> AgentCampaign:
        if self._open is None or self._open.campaign.name != campaign:
            params = load(settings.params_file, self._overrides(settings, campaign))
            return self._begin(params, campaign)
        return self._open

    def _overrides(self, settings: Settings, campaign: str) -> tuple[str, ...]:
        """Return the settings with which a campaign is resumed. Raises SetupError if it is not an agent's."""
        run = history.find(settings, campaign).run
        strategy = run.params.get("search.strategy")
        if strategy != STRATEGY or run.params.get("search.agent"):
            raise SetupError(f"campaign {campaign} is of strategy {strategy}: `begin_campaign` starts one for an agent")
        return (*settings.overrides, *(f"{key}={run.params[key]}" for key in SUBJECT), *OWN)


def _state(opened: AgentCampaign) -> Json:
    campaign = opened.campaign
    return {
        "problem": campaign.context.problem.name,
        "campaign": campaign.name,
        "incumbent": campaign.population.incumbent(),
        "evaluations_left": opened.left,
    }


def _rows(population: Population) -> list[Json]:
    return [history.row(trial, population) for trial in population]
