"""The agent whose roles are language models (GPU Kernel Scientist, arXiv 2506.20807: selector, designer, writer).

Other sources: STARK's context windows, self-critique of 2407.06153, SEKI's summaries of findings. A writer's reply
without a readable kernel becomes a kernel that does not compile, not an error of the campaign.
"""

import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

from kernel_scientist.compile.source import KernelSource
from kernel_scientist.population.entry import Entry
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import BudgetError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import PLAYBOOK, Llm, Model
from kernel_scientist.scientist.context import bug_taxonomy, facts, gpu_facts, knowledge, outcomes
from kernel_scientist.scientist.llm import schemas
from kernel_scientist.scientist.llm.client import CallSpec, LlmClient
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError, record
from kernel_scientist.scientist.llm.patch import PatchError, kernel_from
from kernel_scientist.scientist.prompts import Prompt, render
from kernel_scientist.scientist.proposals import Design, Draft, ExperimentTask, Lessons, Selection
from kernel_scientist.scientist.roles import Assignment, Step

NEW_FINDINGS = 4
"""Findings of one summary at most."""
MAX_RATIONALE, MAX_ERROR = 2000, 20_000
"""Characters."""
WINDOW = 500
"""Kernels of each model that count: the latest."""
EXPLORE = 0.5
"""Weight of the exploration term; rewards lie between 0 and 1."""


class LlmAgent:
    """Renders a prompt per role, sends it through the client and returns the parsed reply."""

    def __init__(self, assignment: Assignment, client: LlmClient) -> None:
        self.assignment, self.client = assignment, client
        self.settings: Llm = client.llm

    def select(self, population: Population, lessons: Lessons, step: Step) -> Selection:
        """Choose base and reference kernel from lineage and times. Raises ValueError if no kernel is correct."""
        if population.incumbent() is None:
            raise ValueError("no kernel in the population is correct: there is nothing to start from")
        table = facts.selection(self.assignment, population)
        correct = frozenset(row["name"] for row in table["kernels"] if population.entry(row["name"]).score)
        prompt = self._prompt("selector", lessons, in_flight=step.in_flight, **table)
        spec = CallSpec("selector", f"select/{step.generation}", schemas.SelectionReply)
        choice, calls = self.client.ask(spec, prompt, lambda reply: schemas.selection(reply, correct))
        rationale = choice.rationale[:MAX_RATIONALE]
        return Selection(base=choice.base, reference=choice.reference, rationale=rationale, llm_calls=calls)

    def design(self, population: Population, selection: Selection, lessons: Lessons, step: Step) -> Design:
        """List avenues and experiment plans for the base."""
        base, reference = population.get(selection.base), population.get(selection.reference)
        tried, left_out = outcomes.tried(population, selection.base, outcomes.for_design(population, selection.base))
        prompt = self._prompt(
            "designer",
            lessons,
            **self._compared(population, base, reference),
            selection_rationale=selection.rationale,
            reference_code=self._code(reference),
            reference_limits=gpu_facts.limits(reference),
            tried=tried,
            left_out=left_out,
            in_flight=step.in_flight,
            record=outcomes.record(population),
            documents=self._documents(base.kernel.source),
        )
        spec = CallSpec(
            "designer",
            f"design/{step.generation}",
            schemas.DesignReply,
            sample=step.generation,  # generations that are designed at the same time may have the same prompt
            about=(selection.base, selection.reference),
        )
        design, calls = self.client.ask(spec, prompt, lambda reply: record(reply, schemas.DesignReply).design())
        return design.model_copy(update={"llm_calls": calls})

    def write(self, population: Population, task: ExperimentTask, lessons: Lessons) -> Draft:
        """Implement an experiment as a change of the base; of several drafts the judge's choice."""
        base, reference = population.get(task.base), population.get(task.reference)
        related = outcomes.for_writing(population, task.base, random.Random(task.name))
        tried, left_out = outcomes.tried(population, task.base, related) if task.own_idea else ([], 0)
        prompt = self._prompt(
            "writer",
            lessons,
            **self._compared(population, base, reference),
            reference_change=facts.change(base.kernel.source, reference.kernel.source),
            experiment=task.experiment,
            own_idea=task.own_idea,
            tried=tried,
            left_out=left_out,
            record=outcomes.record(population) if task.own_idea else "",
            relatives=facts.relatives(population, [t for t in related if t.kernel.name != task.reference]),
            sites=KernelSource(base.kernel.source).site_names(),
            documents=self._documents(f"{task.experiment.title} {task.experiment.description}"),
        )
        writers = [m for m in self.settings.writer.models if m.model != PLAYBOOK]
        prefer = choose(population, writers) if self.settings.choice == "bandit" else ""
        drafts: list[Draft] = []
        for number in range(self.settings.drafts):
            key = f"write/{task.call_key}" + (f".{number + 1}" if number else "")
            spec = CallSpec("writer", key, sample=number, prefer=prefer)
            try:
                drafts.append(self._draft(spec, prompt, base.kernel.source, task))
            except BudgetError:
                if not drafts:
                    raise
                break  # the drafts already paid for are used
        return drafts[0] if len(drafts) == 1 else self.judge(population, task, drafts)

    def judge(self, population: Population, task: ExperimentTask, drafts: Sequence[Draft]) -> Draft:
        """Return the best draft, with the calls of all drafts.

        The first readable one if the role has no model or the judge's reply cannot be parsed or paid for.
        """
        calls = [call for draft in drafts for call in draft.llm_calls]
        readable = list({d.source: d for d in drafts if not d.unreadable}.values()) or [drafts[0]]
        chosen = readable[0]
        if len(readable) > 1 and self.settings.judge.model != PLAYBOOK:
            base = population.get(task.base)
            rows = [
                {"number": i, "report": d.report, "diff": facts.change(base.kernel.source, d.source)}
                for i, d in enumerate(readable, start=1)
            ]
            context = {"base": facts.kernel(population, base), "experiment": task.experiment, "drafts": rows}
            prompt = self._prompt("judge", Lessons(), **context)
            spec = CallSpec("judge", f"judge/{task.call_key}", schemas.JudgeReply)
            try:
                choice, judge_calls = self.client.ask(spec, prompt, lambda reply: schemas.judgement(reply, len(rows)))
                chosen, calls = readable[choice.best - 1], [*calls, *judge_calls]
            except ReplyError as error:
                calls += error.llm_calls
            except BudgetError:
                pass
        return chosen.model_copy(update={"llm_calls": tuple(calls)})

    def repair(self, population: Population, task: ExperimentTask, failed: Trial, lessons: Lessons) -> Draft | None:
        """Diagnose a kernel that failed and repair it."""
        attempts, base = failed.kernel.attempts, population.get(task.base)
        rng = random.Random(f"{task.name}/{len(attempts)}")
        bug = bug_taxonomy.classify(failed.evaluation)
        prompt = self._prompt(
            "repairer",
            lessons,
            kernel=failed.kernel,
            change=facts.change(base.kernel.source, failed.kernel.source),
            experiment=task.experiment,
            verdict=failed.evaluation.verdict.value,
            reason=failed.evaluation.reason,
            evidence=facts.evidence(failed),
            bug=bug,
            hint=bug.hint(self.assignment.language),
            classes=bug_taxonomy.BUGS,
            attempts=attempts,
            relatives=facts.relatives(population, outcomes.for_repair(population, task.base, rng)),
        )
        spec = CallSpec("repairer", f"repair/{task.call_key}/{len(attempts)}")
        return self._draft(spec, prompt, failed.kernel.source, task)

    def summarise(self, population: Population, lessons: Lessons, step: Step) -> Lessons:
        """Add findings from the best, the most surprising and some failed kernels; retract contradicted ones."""
        sample = outcomes.for_distilling(population, step.rng)
        kernels = [facts.kernel(population, trial) for trial in sample]
        bases = {
            t.kernel.base: facts.kernel(population, population.get(t.kernel.base)) for t in sample if t.kernel.base
        }
        prompt = self._prompt(
            "distiller", lessons, sample=kernels, bases=bases, in_flight=step.in_flight, most=NEW_FINDINGS
        )
        spec = CallSpec("distiller", f"distil/{step.generation}", schemas.FindingsReply)
        reply, calls = self.client.ask(spec, prompt, lambda reply: schemas.findings(reply, population))
        return lessons.updated([(f.text, f.kernels) for f in reply.findings[:NEW_FINDINGS]], reply.retracted, calls)

    def _draft(self, spec: CallSpec, prompt: Prompt, base: str, task: ExperimentTask) -> Draft:
        """Return the reply's kernel; if there is none, a kernel that does not compile."""

        def parse(reply: ParsedReply) -> Draft:
            try:
                source = kernel_from(reply, base)
            except PatchError as error:
                raise ReplyError(f"{error}. Send the complete file in one ```python block instead") from error
            critique = schemas.section(reply, "CRITIQUE") if spec.role == "repairer" else ""
            experiment = schemas.own_experiment(reply, task.experiment.title) if task.own_idea else None
            report = schemas.section(reply, "REPORT")
            return Draft(source=source, report=report, critique=critique, experiment=experiment)

        try:
            draft, calls = self.client.ask(spec, prompt, parse)
        except ReplyError as error:
            # The call key makes each placeholder a different source: otherwise a second one would be a duplicate.
            message = " ".join(str(error).replace("\\", "/").replace('"', "'").split())[:500]
            source = f'raise SyntaxError("""{spec.key}: the {spec.role} sent no kernel: {message}""")\n'
            report = f"no kernel: {error}"[:MAX_ERROR]
            return Draft(source=source, report=report, llm_calls=error.llm_calls, unreadable=True)
        return draft.model_copy(update={"llm_calls": calls})

    def _compared(self, population: Population, base: Trial, reference: Trial) -> dict[str, Any]:
        """Return what designer and writer get of the base, and the times of base and reference kernel side by side."""
        return {
            "base": facts.kernel(population, base),
            "reference": facts.kernel(population, reference),
            "table": facts.case_table(self.assignment, population, base, reference),
            "limits": gpu_facts.limits(base),
            "provenance": gpu_facts.provenance(base),
            "code": self._code(base),
            "counters": gpu_facts.counters(self.assignment, base),
        }

    def _code(self, trial: Trial) -> list[str]:
        gpu = self.assignment.gpu
        return gpu_facts.code(gpu, trial) if gpu else facts.instructions(trial)

    def _prompt(self, role: str, lessons: Lessons, **context: Any) -> Prompt:
        assignment = self.assignment
        return render(
            role,
            problem=facts.problem(assignment.problem, assignment.profile),
            machine=facts.machine(assignment),
            language=assignment.language,
            arch=assignment.gpu.arch if assignment.gpu else "native",
            target=assignment.gpu.name if assignment.gpu else assignment.target,
            by_model=assignment.target.startswith("model"),
            findings=lessons.latest(assignment.most_findings),
            **context,
        )

    def _documents(self, query: str) -> Sequence[knowledge.Document]:
        assignment = self.assignment
        problem = f"{assignment.problem.name} {assignment.problem.description}"
        applicable = assignment.language, assignment.backend, assignment.knowledge_tokens, assignment.memory_bound
        return knowledge.choose(assignment.knowledge, f"{problem} {query}", *applicable, problem)


def choose(population: Population, models: Sequence[Model]) -> str:
    """Return the next writer among several models by its upper confidence bound (UCB1, Auer et al. 2002, with costs).

    Each is called once, in order, then the one with the highest bound. Everything is derived from the recorded kernels,
    so a resumed campaign chooses as it would have.

    The bound is that of the mean reward, divided by the square root of the model's cost per kernel relative to the
    cheapest model's: a gain counts more than the same factor in cost.
    """
    arms = {m.model: [population.entry(name) for name in population.written_by(m.model, WINDOW)] for m in models}
    for name, entries in arms.items():
        if not entries:
            return name
    total = sum(map(len, arms.values()))
    costs = {name: statistics.mean(entry.usd for entry in entries) for name, entries in arms.items()}
    paid = [c for c in costs.values() if c > 0]

    def bound(name: str) -> float:
        entries = arms[name]
        mean = statistics.mean(reward(population, entry) for entry in entries)
        cost_factor = math.sqrt(min(paid) / costs[name]) if costs[name] > 0 else 1.0
        return mean * cost_factor + EXPLORE * math.sqrt(2 * math.log(total) / len(entries))

    return max(arms, key=bound)


def reward(population: Population, entry: Entry) -> float:
    """Return a kernel's reward: 0 for a failure, 0.25 if correct, up to 1 for twice its base's speed.

    A gain that was not measured beside the base, or is not resolved, counts as none.
    """
    base = population.entry(entry.base).score if entry.base and entry.base in population else 0.0
    if not entry.score or not base:
        return 0.0
    gain = entry.score / base if entry.by_model else entry.gain or 1.0
    return 0.25 + 0.75 * min(max(gain - 1, 0.0), 1.0)
