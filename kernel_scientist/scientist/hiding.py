"""The agent that keeps the timed cases' sizes from another one, which sees records as `hidden_cases` shows them."""

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.scientist.context.hidden_cases import HiddenCases
from kernel_scientist.scientist.llm.workbench import Workshop
from kernel_scientist.scientist.proposals import Design, Draft, ExperimentTask, Lessons, Selection
from kernel_scientist.scientist.roles import Agent, Step


class HidingAgent:
    """Passes each call on, with populations, failures and findings as they are shown."""

    def __init__(self, agent: Agent, hidden: HiddenCases) -> None:
        """`agent`: one whose assignment is `hidden.assignment(...)`."""
        self.agent, self.hidden = agent, hidden

    def select(self, population: Population, lessons: Lessons, step: Step) -> Selection:
        """Choose base and reference kernel."""
        return self.agent.select(self.hidden.population(population), self.hidden.lessons(lessons), step)

    def design(self, population: Population, selection: Selection, lessons: Lessons, step: Step) -> Design:
        """List avenues and experiment plans for the base."""
        shown = self.hidden.population(population)
        return self.agent.design(shown, selection, self.hidden.lessons(lessons), step)

    def write(self, population: Population, task: ExperimentTask, lessons: Lessons) -> Draft:
        """Implement an experiment as a change of the base."""
        return self.agent.write(self.hidden.population(population), task, self.hidden.lessons(lessons))

    def repair(self, population: Population, task: ExperimentTask, failed: Trial, lessons: Lessons) -> Draft | None:
        """Repair a kernel that failed."""
        shown, failure = self.hidden.population(population), self.hidden.trial(failed)
        return self.agent.repair(shown, task, failure, self.hidden.lessons(lessons))

    def summarise(self, population: Population, lessons: Lessons, step: Step) -> Lessons:
        """Return the findings so far with new ones added; those that were not shown stay."""
        shown = self.hidden.lessons(lessons)
        found = self.agent.summarise(self.hidden.population(population), shown, step)
        retracted = {one.name: one for one in found.earlier}
        earlier = tuple(retracted.get(one.name, one) for one in lessons.earlier)
        return found.model_copy(update={"earlier": earlier, "refuted": lessons.refuted})


class HidingWorkshop:
    """Builds and looks for a role, whose results are those that are shown."""

    def __init__(self, workshop: Workshop, hidden: HiddenCases) -> None:
        self.workshop, self.hidden = workshop, hidden
        self._checked: dict[str, Evaluation] = {}
        """What checks came to, by the source's digest: a look goes on with that, not with what was shown."""

    @property
    def pairs(self) -> bool:
        """Whether two kernels can be timed in one run."""
        return self.workshop.pairs

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel."""
        return self.hidden.evaluation(self.workshop.compile(kernel), kernel.source)

    def check(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel, and compare its outputs with the reference's on the public cases."""
        found = self._checked[kernel.digest] = self.workshop.check(kernel)
        return self.hidden.evaluation(found, kernel.source)

    def look(self, kernel: Kernel, checked: Evaluation, base: Kernel) -> Evaluation:
        """Time a kernel that passed its check and its base in one run, briefly."""
        whole = self._checked.get(kernel.digest, checked)
        return self.hidden.evaluation(self.workshop.look(kernel, whole, base), kernel.source)

    @property
    def profiler(self) -> str:
        """Name of the program that profiles calls, if what it finds tells no sizes: a GPU's counters do."""
        return self.workshop.profiler if self.workshop.profiler == "perf" else ""

    def profile(self, kernel: Kernel, checked: Evaluation, case: str) -> Evaluation:
        """Profile a kernel that passed its check on a timed case, which goes by its opaque name."""
        name = next(name for name, shown in self.hidden.ids.items() if shown == case)
        whole = self._checked.get(kernel.digest, checked)
        return self.hidden.evaluation(self.workshop.profile(kernel, whole, name), kernel.source)
