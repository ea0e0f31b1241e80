"""Several minds as one: each role is played by whom the parameters name, and by the playbook when it is a fallback."""

from collections.abc import Callable
from typing import TypeVar

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import ModelError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import Llm
from kernel_scientist.scientist.llm.client import PLAYBOOK
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.roles import Commission, Design, Draft, Lessons, Mind, Selection, Turn

T = TypeVar("T")


class Ensemble:
    """The playbook and models, by role."""

    name = "ensemble"

    def __init__(self, llm: Llm, playbook: Mind, models: Mind) -> None:
        self.llm, self.playbook, self.models = llm, playbook, models

    def select(self, population: Population, lessons: Lessons, turn: Turn) -> Selection:
        """Choose the kernel to change and the one to contrast it with."""
        return self._play("selector", lambda mind: mind.select(population, lessons, turn))

    def design(self, population: Population, selection: Selection, lessons: Lessons, turn: Turn) -> Design:
        """List avenues and plans for the base."""
        return self._play("designer", lambda mind: mind.design(population, selection, lessons, turn))

    def write(self, population: Population, order: Commission, lessons: Lessons) -> Draft:
        """Carry an experiment out on the base's source."""
        return self._play("writer", lambda mind: mind.write(population, order, lessons))

    def repair(self, population: Population, order: Commission, failed: Trial, lessons: Lessons) -> Draft | None:
        """Mend a kernel that failed, or None when this mind cannot."""
        return self._play("repairer", lambda mind: mind.repair(population, order, failed, lessons))

    def distil(self, population: Population, lessons: Lessons, turn: Turn) -> Lessons:
        """State what was learnt so far."""
        return self._play("distiller", lambda mind: mind.distil(population, lessons, turn))

    def _play(self, role: str, play: Callable[[Mind], T]) -> T:
        """Ask the models of a role; the playbook takes over where it is named, or where it is a fallback and they fail
        or send nothing that can be read. Raises ModelError where it is none."""
        settings = self.llm.role(role)
        if settings.model == PLAYBOOK:
            return play(self.playbook)
        try:
            return play(self.models)
        except (ModelError, ReplyError):
            if all(m.model != PLAYBOOK for m in settings.fallbacks):
                raise
            return play(self.playbook)
