"""The agent whose writer and repairer are one command. The hypothesis is left to it; the rest is done by `others`."""

import threading
from typing import Any

from kernel_scientist.compilers.fingerprint import fingerprint
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import NO_REPLY, ModelError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.scientist.command.folder import AgentReport, TaskFolder
from kernel_scientist.scientist.command.program import AgentCommand, CommandRun
from kernel_scientist.scientist.context import facts
from kernel_scientist.scientist.llm.agent import LlmAgent
from kernel_scientist.scientist.proposals import (
    Design,
    Draft,
    ExperimentTask,
    Lessons,
    Selection,
    missing,
    own_ideas,
    placeholder,
)
from kernel_scientist.scientist.roles import Agent, Step

ROLE = "external"
"""Name of the template of its task."""
UNCHANGED, REPEATED = "the agent left the base unchanged", "the agent handed in a kernel that was tried already"


class CommandAgent:
    """Writes a kernel, or repairs one, by a run of a command in a folder of its own."""

    def __init__(
        self, command: AgentCommand, scribe: LlmAgent, others: Agent, mcp: str, stopped: threading.Event
    ) -> None:
        """`scribe`: words the tasks. `others`: summarises findings. `mcp`: the address of the MCP server; may be empty.

        `stopped`: set once the work is to end.
        """
        self.command, self.scribe, self.others, self.mcp, self.stopped = command, scribe, others, mcp, stopped
        self._worked = False
        """Whether a run has ended as it should."""
        self._handed_in: dict[str, str] = {}
        """Kernels by the fingerprints of their sources: those in progress are in no population yet."""

    def select(self, population: Population, lessons: Lessons, step: Step) -> Selection:
        """Choose base and reference kernel."""
        return self.others.select(population, lessons, step)

    def design(self, population: Population, selection: Selection, lessons: Lessons, step: Step) -> Design:
        """Leave the hypotheses to the command."""
        return own_ideas(step.generation)

    def write(self, population: Population, task: ExperimentTask, lessons: Lessons) -> Draft:
        """Implement an idea of the command's own as a change of the base. Raises ModelError if the command fails."""
        return self._draft(population, task, lessons, population.get(task.base).kernel.source, None)

    def repair(self, population: Population, task: ExperimentTask, failed: Trial, lessons: Lessons) -> Draft | None:
        """Let the command repair its kernel, which failed. Raises ModelError if the command fails."""
        source, base = failed.kernel.source, population.get(task.base).kernel.source
        told = {
            "verdict": failed.evaluation.verdict.value,
            "evidence": missing(source) or facts.evidence(failed),
            "attempts": failed.kernel.attempts,
        }
        draft = self._draft(population, task, lessons, base if missing(source) else source, told)
        return draft.model_copy(update={"source": source}) if draft.declined else draft

    def summarise(self, population: Population, lessons: Lessons, step: Step) -> Lessons:
        """Return the findings so far with new ones added."""
        return self.others.summarise(population, lessons, step)

    def _draft(
        self,
        population: Population,
        task: ExperimentTask,
        lessons: Lessons,
        given: str,
        failed: dict[str, Any] | None,
    ) -> Draft:
        """Return what a run leaves. `given`: the source that it is to change. `failed`: what is said of its failure."""
        base = population.get(task.base).kernel.source
        more: dict[str, Any] = {"failed": failed, "mcp": self.mcp, "minutes": self.command.limit_s / 60}
        prompt = self.scribe.brief(population, task, lessons, ROLE, **more)
        told = self.scribe.client.shown(prompt.messages[-1].content)
        with TaskFolder.made(task.name, told, given, base, self.mcp) as folder:
            run = self.command.run(folder.task, self.stopped)
            source, report = folder.kernel(), folder.report()
        draft = Draft(
            experiment=report.experiment(task.experiment),
            source=source or "",
            report="\n".join(filter(None, (report.text.strip(), run.ending))),
            critique=report.statement,
            transcript=_transcript(self.command, run),
            command=self.command.line,
        )
        unchanged = source is not None and fingerprint(source) == fingerprint(given)
        if unchanged and run.status:
            never = "" if self._worked else f"{NO_REPLY}: "
            raise ModelError(f"{never}the agent fails, {run.ending}: {run.last_line}", may_pass=False)
        self._worked = True
        if source is None:
            absent = "kernel.py was gone, empty, too large or no regular file when its command ended"
            return draft.model_copy(update={"source": placeholder(task.call_key, absent), "unreadable": True})
        if unchanged:
            return _declined(draft, task, UNCHANGED, report, run)
        key = fingerprint(source)
        if population.has_source(key) or self._handed_in.setdefault(key, task.name) != task.name:
            return _declined(draft, task, REPEATED, report, run)
        return draft


def _declined(draft: Draft, task: ExperimentTask, why: str, report: AgentReport, run: CommandRun) -> Draft:
    """Return a draft without a kernel, which counts as an attempt."""
    said = f": {report.statement}" if report.statement else ""
    reason = ", ".join(filter(None, (why, run.ending))) + said
    return draft.model_copy(update={"source": placeholder(task.call_key, reason), "declined": reason})


def _transcript(command: AgentCommand, run: CommandRun) -> str:
    """Return what a run printed, between the command and its end."""
    status = "ended at its limit" if run.status is None else f"status {run.status}"
    return f"$ {command.line}\n{run.printed.rstrip()}\n[{status}, {run.seconds:.1f} s]\n"
