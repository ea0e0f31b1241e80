"""The campaign's agent: per role a language model or the rule-based agent, as the parameters say."""

from collections.abc import Callable
from typing import TypeVar

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import ModelError, SetupError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.params import PLAYBOOK, ROLES, WRITER, Llm, Model
from kernel_scientist.scientist.context.hidden_cases import HiddenCases
from kernel_scientist.scientist.hiding import HidingAgent, HidingWorkshop
from kernel_scientist.scientist.llm import costs, provider
from kernel_scientist.scientist.llm.agent import LlmAgent
from kernel_scientist.scientist.llm.client import LlmClient
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.llm.workbench import Workshop
from kernel_scientist.scientist.playbook.agent import CATALOGUES, RuleBasedAgent
from kernel_scientist.scientist.proposals import Design, Draft, ExperimentTask, Lessons, Selection, own_ideas
from kernel_scientist.scientist.roles import Agent, Assignment, Step

T = TypeVar("T")


def create(
    llm: Llm,
    assignment: Assignment,
    client: LlmClient,
    workshop: Workshop | None = None,
    by_command: bool = False,
    hidden: HiddenCases | None = None,
) -> Agent:
    """Return the agent that the parameters name. Raises SetupError as `require`.

    `workshop`: for roles with tools. `hidden`: the timed cases, if models are not to know their sizes.
    """
    require(llm, assignment.language, by_command)
    rule_based = RuleBasedAgent(assignment)
    if not _models(llm):
        return rule_based
    if hidden is None:
        return Ensemble(llm, rule_based, LlmAgent(assignment, client, workshop))
    shown = HidingWorkshop(workshop, hidden) if workshop else None
    models = LlmAgent(hidden.assignment(assignment), client.showing(hidden.text), shown)
    return Ensemble(llm, rule_based, HidingAgent(models, hidden))


def require(llm: Llm, language: Language, by_command: bool = False) -> None:
    """Raise SetupError unless every role has an agent for this language and every model has a provider and
    a price.

    `by_command`: whether a command designs and writes the kernels.
    """
    for name in () if by_command else ("selector", "designer", "writer"):
        if language not in CATALOGUES and any(m.model == PLAYBOOK for m in llm.role(name).models):
            raise SetupError(
                f"llm.{name}: the playbook has no catalogue for {language}, only for {' and '.join(CATALOGUES)}; "
                f"name a model ({language} kernels can be evaluated without one)"
            )
    if llm.designer.model == WRITER and any(m.model == PLAYBOOK for m in llm.writer.models):
        raise SetupError("llm.designer: `writer` leaves the hypothesis to the writer, so llm.writer must name a model")
    if misplaced := [name for name in ROLES if name != "designer" and llm.role(name).model == WRITER]:
        raise SetupError(f"llm.{misplaced[0]}: only the designer can be `writer`")
    for model in _models(llm):
        provider.require(model)  # first: of a name without a provider no price is known either
        costs.price(model)


def _models(llm: Llm) -> list[Model]:
    """Return every model that may be called, fallbacks included."""
    roles = [llm.role(name) for name in ROLES]
    return [m for role in roles for m in (*role.models, *role.fallbacks) if m.model not in (PLAYBOOK, WRITER)]


class Ensemble:
    """Passes each call to the agent of its role."""

    def __init__(self, llm: Llm, rule_based: Agent, models: Agent) -> None:
        self.llm, self.rule_based, self.models = llm, rule_based, models

    def select(self, population: Population, lessons: Lessons, step: Step) -> Selection:
        """Choose base and reference kernel."""
        return self._call("selector", lambda agent: agent.select(population, lessons, step))

    def design(self, population: Population, selection: Selection, lessons: Lessons, step: Step) -> Design:
        """List avenues and experiment plans for the base."""
        if self.llm.designer.model == WRITER:
            return own_ideas(step.generation)
        return self._call("designer", lambda agent: agent.design(population, selection, lessons, step))

    def write(self, population: Population, task: ExperimentTask, lessons: Lessons) -> Draft:
        """Implement an experiment as a change of the base."""
        return self._call("writer", lambda agent: agent.write(population, task, lessons))

    def repair(self, population: Population, task: ExperimentTask, failed: Trial, lessons: Lessons) -> Draft | None:
        """Repair a kernel that failed; None if the agent of this role does not repair."""
        return self._call("repairer", lambda agent: agent.repair(population, task, failed, lessons))

    def summarise(self, population: Population, lessons: Lessons, step: Step) -> Lessons:
        """Return the updated findings."""
        return self._call("distiller", lambda agent: agent.summarise(population, lessons, step))

    def _call(self, role: str, method: Callable[[Agent], T]) -> T:
        """Call the role's agent. If `playbook` is among the role's fallbacks, the rule-based agent replaces models that
        do not reply or whose replies cannot be parsed; otherwise raises ModelError or ReplyError."""
        settings = self.llm.role(role)
        if settings.model == PLAYBOOK:
            return method(self.rule_based)
        try:
            return method(self.models)
        except (ModelError, ReplyError):
            if all(m.model != PLAYBOOK for m in settings.fallbacks):
                raise
            return method(self.rule_based)
