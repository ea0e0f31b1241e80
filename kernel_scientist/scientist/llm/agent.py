"""The agent whose roles are language models (GPU Kernel Scientist, arXiv 2506.20807: selector, designer, writer).

Other sources: STARK's context windows, self-critique of 2407.06153, SEKI's summaries of findings. A writer's reply
without a readable kernel becomes a kernel that does not compile, not an error of the campaign.
"""

import dataclasses
import functools
import random
from collections.abc import Sequence
from typing import Any

from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import BudgetError, ModelError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import PLAYBOOK, Llm, Writing
from kernel_scientist.scientist.context import bug_taxonomy, facts, gpu_facts, outcomes, problem_facts
from kernel_scientist.scientist.llm import background, bandit, schemas
from kernel_scientist.scientist.llm.client import CallSpec, LlmClient
from kernel_scientist.scientist.llm.lookup import Lookup
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError
from kernel_scientist.scientist.llm.patch import PatchError, kernel_from
from kernel_scientist.scientist.llm.workbench import Workbench, Workshop
from kernel_scientist.scientist.prompts import Prompt, render
from kernel_scientist.scientist.proposals import Design, Draft, ExperimentTask, Lessons, Selection, missing, placeholder
from kernel_scientist.scientist.roles import Assignment, Step

NEW_FINDINGS = 4
"""Findings of one summary at most."""
MOST_READ = 2
"""Documents that a designer may ask for."""
MAX_RATIONALE, MAX_ERROR = 2000, 20_000
"""Characters."""


class LlmAgent:
    """Renders a prompt per role, sends it through the client and returns the parsed reply."""

    def __init__(self, assignment: Assignment, client: LlmClient, workshop: Workshop | None = None) -> None:
        self.assignment, self.client, self.workshop = assignment, client, workshop
        self.settings: Llm = client.llm

    def select(self, population: Population, lessons: Lessons, step: Step) -> Selection:
        """Choose base and reference kernel from lineage and times. Raises ValueError if no kernel is correct."""
        if population.incumbent() is None:
            raise ValueError("no kernel in the population is correct: there is nothing to start from")
        table = facts.selection(self.assignment, population)
        correct = frozenset(row["name"] for row in table["kernels"] if population.entry(row["name"]).score)
        prompt = self._prompt("selector", lessons, in_flight=step.in_flight, designing=step.designing, **table)
        spec = CallSpec("selector", f"select/{step.generation}", schemas.SelectionReply)
        choice, calls = self.client.ask(spec, prompt, lambda reply: schemas.selection(reply, correct))
        rationale = choice.rationale[:MAX_RATIONALE]
        return Selection(base=choice.base, reference=choice.reference, rationale=rationale, llm_calls=calls)

    def design(self, population: Population, selection: Selection, lessons: Lessons, step: Step) -> Design:
        """List avenues and experiment plans for the base."""
        base, reference = population.get(selection.base), population.get(selection.reference)
        tried, left_out = outcomes.tried(population, selection.base, outcomes.for_design(population, selection.base))
        with_documents = functools.partial(
            self._prompt,
            "designer",
            lessons,
            **self._compared(population, base, reference),
            selection_rationale=selection.rationale,
            reference_change=facts.change(base.kernel.source, reference.kernel.source),
            reference_code=facts.code(self.assignment, reference),
            reference_limits=gpu_facts.limits(reference),
            tried=tried,
            left_out=left_out,
            in_flight=step.in_flight,
            designing=step.designing,
            focus=step.focus,
            refuted=lessons.refuted,
            planned=step.planned,
            record=outcomes.record(population),
            operators=facts.operators(self.assignment),
            calls=self._calls("designer"),
        )
        room = background.room(self.assignment, with_documents(documents=(), titles=(), symptoms=()))
        shown, room = background.cards(self.assignment, base, room)
        limits = background.without_remedies(gpu_facts.limits(base), shown)
        with_documents = functools.partial(with_documents, symptoms=shown, limits=limits)
        chosen = background.chosen(self.assignment, base.kernel.source, room)
        spec = CallSpec(
            "designer",
            f"design/{step.generation}",
            schemas.DesignReply,
            sample=step.generation,  # generations that are designed at the same time may have the same prompt
            about=(selection.base, selection.reference),
        )
        tools = Lookup(self.assignment, population).toolbox(most) if (most := self._calls("designer")) else None
        others = chosen.others if self.assignment.knowledge_tokens and not tools else {}  # a tool reads them
        prompt = with_documents(documents=chosen.documents, titles=[*others])
        reply, calls = self.client.ask(spec, prompt, lambda reply: schemas.design(reply, others), tools)
        if reply.read:
            wanted = [others[title] for title in dict.fromkeys(reply.read)][:MOST_READ]
            spec = dataclasses.replace(spec, key=f"{spec.key}/read")
            prompt = with_documents(documents=chosen.beginning_with(wanted), titles=())
            reply, more = self.client.ask(spec, prompt, schemas.design)
            calls = (*calls, *more)
        return reply.design().model_copy(update={"llm_calls": calls})

    def write(self, population: Population, task: ExperimentTask, lessons: Lessons) -> Draft:
        """Implement an experiment as a change of the base; of several drafts the judge's choice."""
        base = population.get(task.base)
        prompt = self.brief(population, task, lessons, calls=self._calls("writer"), looks=self._looks("writer"))
        writers = [m for m in self.settings.writer.models if m.model != PLAYBOOK]
        prefer = bandit.choose(population, writers) if self.settings.choice == "bandit" else ""
        drafts: list[Draft] = []
        for number in range(self.settings.drafts):
            key = f"write/{task.call_key}" + (f".{number + 1}" if number else "")
            spec = CallSpec("writer", key, sample=number, prefer=prefer)
            try:
                drafts.append(self._draft(spec, prompt, base, task, self._bench(population, task, base)))
            except (BudgetError, ModelError):
                if not drafts:
                    raise
                break  # the drafts already paid for are used
        return drafts[0] if len(drafts) == 1 else self.judge(population, task, drafts)

    def brief(
        self, population: Population, task: ExperimentTask, lessons: Lessons, role: str = "writer", **more: Any
    ) -> Prompt:
        """Return the prompt of who implements an experiment. `role`, `more`: its template, and what else that takes."""
        base, reference = population.get(task.base), population.get(task.reference)
        related = outcomes.for_writing(population, task.base, random.Random(task.name))
        tried, left_out = outcomes.tried(population, task.base, related) if task.own_idea else ([], 0)
        others, best = (task.reference, *task.failed), population.best()
        leads = best is not None and best.kernel.name not in (task.base, task.reference)
        with_documents = functools.partial(
            self._prompt,
            role,
            lessons,
            **self._compared(population, base, reference),
            reference_change=facts.change(base.kernel.source, reference.kernel.source),
            experiment=task.experiment,
            own_idea=task.own_idea,
            tried=tried,
            left_out=left_out,
            refuted=lessons.refuted if task.own_idea else (),
            record=outcomes.record(population) if task.own_idea else "",
            relatives=facts.relatives(population, [t for t in related if t.kernel.name not in others]),
            tried_before=facts.relatives(population, [population.get(name) for name in task.failed]),
            best=self._kernel(population, best) if best and leads else None,
            in_flight=[job for job in task.in_flight if job.name != task.name],
            sites=KernelSource(base.kernel.source).site_names(),
            **more,
        )
        return with_documents(
            documents=background.for_plan(self.assignment, task, base.kernel.source, with_documents(documents=()))
        )

    def judge(self, population: Population, task: ExperimentTask, drafts: Sequence[Draft]) -> Draft:
        """Return the best draft, with the calls of all drafts.

        The first readable one if the role has no model, or none replies, or its reply cannot be parsed or paid for; a
        declined one if there is no kernel.
        """
        calls = [call for draft in drafts for call in draft.llm_calls]
        written = [d for d in drafts if not d.unreadable and not d.declined]
        readable = list({d.source: d for d in written}.values()) or [d for d in drafts if d.declined] or [drafts[0]]
        chosen = readable[0]
        if len(written) > 1 and len(readable) > 1 and self.settings.judge.model != PLAYBOOK:
            base = population.get(task.base)
            changes = [(d, facts.change(base.kernel.source, d.source)) for d in readable]
            rows = [
                {"number": i, "report": d.report, "diff": diff, "whole": diff == d.source}
                for i, (d, diff) in enumerate(changes, start=1)
            ]
            prompt = self._prompt(
                "judge",
                Lessons(),
                drafts=rows,
                base=self._kernel(population, base),
                limits=gpu_facts.limits(base),
                code=facts.code(self.assignment, base),
                documents=background.pitfalls(self.assignment),
                experiment=task.experiment,
                own_idea=task.own_idea,
            )
            spec = CallSpec("judge", f"judge/{task.call_key}", schemas.JudgeReply)
            try:
                choice, judge_calls = self.client.ask(spec, prompt, lambda reply: schemas.judgement(reply, len(rows)))
                chosen, calls = readable[choice.best - 1], [*calls, *judge_calls]
            except ReplyError as error:
                calls += error.llm_calls
            except (BudgetError, ModelError):
                pass  # the drafts are paid for
        return chosen.model_copy(update={"llm_calls": tuple(calls)})

    def repair(self, population: Population, task: ExperimentTask, failed: Trial, lessons: Lessons) -> Draft | None:
        """Diagnose a kernel that failed and repair it."""
        attempts, base = failed.kernel.attempts, population.get(task.base)
        rng = random.Random(f"{task.name}/{len(attempts)}")
        bug = bug_taxonomy.classify(failed.evaluation)
        with_documents = functools.partial(
            self._prompt,
            "repairer",
            lessons,
            kernel=failed.kernel,
            change=facts.change(base.kernel.source, failed.kernel.source),
            experiment=task.experiment,
            verdict=failed.evaluation.verdict.value,
            missing=missing(failed.kernel.source),
            base=self._kernel(population, base),
            evidence=facts.evidence(failed),
            bug=bug,
            hint=bug.hint(self.assignment.language),
            classes=bug_taxonomy.BUGS,
            attempts=attempts,
            relatives=facts.relatives(population, outcomes.for_repair(population, task.base, rng)),
            calls=self._calls("repairer"),
            looks=self._looks("repairer"),
        )
        prompt = with_documents(documents=())
        if missing(failed.kernel.source):  # the repairer writes what the writer did not
            prompt = with_documents(documents=background.for_plan(self.assignment, task, base.kernel.source, prompt))
        spec = CallSpec("repairer", f"repair/{task.call_key}/{len(attempts)}")
        changed = base if missing(failed.kernel.source) else failed
        draft = self._draft(spec, prompt, changed, task, self._bench(population, task, changed))
        return draft.model_copy(update={"source": failed.kernel.source}) if draft.declined else draft

    def summarise(self, population: Population, lessons: Lessons, step: Step) -> Lessons:
        """Add findings from the best, the most surprising and some failed kernels; retract contradicted ones."""
        sample = outcomes.for_distilling(population, step.rng)
        kernels = [{**self._kernel(population, t), "change": facts.failed_change(population, t)} for t in sample]
        bases = {
            t.kernel.base: self._kernel(population, population.get(t.kernel.base)) for t in sample if t.kernel.base
        }
        timed = [t for t in sample if t.evaluation.times_us]
        prompt = self._prompt(
            "distiller",
            lessons,
            sample=kernels,
            bases=bases,
            table=facts.case_table(self.assignment, population, outcomes.with_bases(population, timed)),
            provenance=gpu_facts.provenance(timed),
            in_flight=step.in_flight,
            most=NEW_FINDINGS,
        )
        spec = CallSpec("distiller", f"distil/{step.generation}", schemas.FindingsReply)
        reply, calls = self.client.ask(spec, prompt, lambda reply: schemas.findings(reply, population))
        return lessons.updated([(f.text, f.kernels) for f in reply.findings[:NEW_FINDINGS]], reply.retracted, calls)

    def _calls(self, role: str) -> int:
        """Return how many calls of tools a role has for one answer. Who writes needs a workshop for them."""
        return self.settings.calls(role) if self.workshop or role == "designer" else 0

    def _looks(self, role: str) -> int:
        """Return how many of a role's calls may time a draft."""
        settings = self.settings.role(role)
        return settings.looks if isinstance(settings, Writing) and self.workshop and self.workshop.pairs else 0

    def _bench(self, population: Population, task: ExperimentTask, changed: Trial) -> Workbench | None:
        if self.workshop is None:
            return None
        return Workbench(self.workshop, self.assignment, population, task.name, changed, population.get(task.base))

    def _draft(
        self, spec: CallSpec, prompt: Prompt, changed: Trial, task: ExperimentTask, bench: Workbench | None
    ) -> Draft:
        """Return the reply's kernel; if there is none, what passed its check last, or a kernel that does not compile.

        changed: what a change in the reply is a change of.
        """
        base, most, looks = changed.kernel.source, self._calls(spec.role), self._looks(spec.role)

        def parse(reply: ParsedReply) -> Draft:
            try:
                source = kernel_from(reply, base)
            except ReplyError as error:
                if reason := schemas.declined(reply):
                    return Draft(source=placeholder(spec.key, reason), report=reason, critique=reason, declined=reason)
                if isinstance(error, PatchError):
                    raise ReplyError(f"{error}. Send the complete file in one ```python block instead") from error
                raise
            critique = schemas.section(reply, "CRITIQUE") if spec.role == "repairer" else ""
            experiment = schemas.own_experiment(reply, task.experiment.title) if task.own_idea else None
            report = schemas.section(reply, "REPORT")
            return Draft(source=source, report=report, critique=critique, experiment=experiment)

        try:
            tools = bench.toolbox(most, looks) if bench and most else None
            draft, calls = self.client.ask(spec, prompt, parse, tools)
        except ReplyError as error:
            if bench and bench.checked:
                report = f"not handed in: what passed its check last ({error})"[:MAX_ERROR]
                return Draft(source=bench.checked, report=report, llm_calls=error.llm_calls)
            source = placeholder(spec.key, f"the {spec.role} sent no kernel: {error}")
            report = f"no kernel: {error}"[:MAX_ERROR]
            return Draft(source=source, report=report, llm_calls=error.llm_calls, unreadable=True)
        return draft.model_copy(update={"llm_calls": calls})

    def _compared(self, population: Population, base: Trial, reference: Trial) -> dict[str, Any]:
        """Return what designer and writer get of the base, and the times of base and reference kernel side by side."""
        parent = population.get(base.kernel.base) if base.kernel.base else None
        others = {t.kernel.name: t for t in (parent, reference) if t is not None and t.kernel.name != base.kernel.name}
        return {
            "base": self._kernel(population, base),
            "reference": self._kernel(population, reference),
            "table": facts.case_table(self.assignment, population, [*others.values(), base]),
            "limits": gpu_facts.limits(base),
            "provenance": gpu_facts.provenance([base]),
            "code": facts.code(self.assignment, base),
            "counters": gpu_facts.counters(self.assignment, base),
        }

    def _kernel(self, population: Population, trial: Trial) -> dict[str, Any]:
        return {**facts.kernel(population, trial), **problem_facts.as_reference(self.assignment.problem, trial)}

    def _prompt(self, role: str, lessons: Lessons, **context: Any) -> Prompt:
        assignment = self.assignment
        return render(
            role,
            problem=problem_facts.problem(assignment.problem, assignment.profile),
            machine=facts.machine(assignment),
            language=assignment.language,
            arch=assignment.gpu.arch if assignment.gpu else "native",
            target=assignment.gpu.name if assignment.gpu else assignment.target,
            by_model=assignment.by_model,
            findings=lessons.latest(assignment.most_findings),
            **context,
        )
