"""The mind that is language models: one per role, through a channel that keeps, pays and reads (GPU Kernel Scientist,
arXiv 2506.20807: Selector, Designer, Writer; STARK's windows; self-critique of 2407.06153; SEKI's distillation).

A reply that stays unreadable is not an error of the laboratory: the Writer's becomes a kernel that does not compile.
"""

import random
from collections.abc import Sequence
from typing import Any

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.errors import BudgetError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.params import Llm
from kernel_scientist.scientist.context import bug_taxonomy, gpu_facts, knowledge, windows
from kernel_scientist.scientist.context import facts as brief
from kernel_scientist.scientist.llm import bandit, schemas
from kernel_scientist.scientist.llm.client import PLAYBOOK, Channel
from kernel_scientist.scientist.llm.parsing import Answer, ReplyError, metadata
from kernel_scientist.scientist.llm.patch import PatchError, kernel_from
from kernel_scientist.scientist.prompts import Prompt, render
from kernel_scientist.scientist.roles import Assignment, Commission, Design, Draft, Lessons, Selection, Turn

TOP, SAMPLE, FAILURES, NEW_FINDINGS = 6, 3, 3, 4
"""SEKI: of the best `TOP`, `SAMPLE` are drawn; and of the failures."""
UNREADABLE = 20_000
"""Characters kept of a reply that holds no kernel."""


class LanguageModel:
    """The roles of the Scientist, played by models."""

    name = "llm"

    def __init__(self, assignment: Assignment, channel: Channel) -> None:
        self.assignment, self.channel = assignment, channel
        self.settings: Llm = channel.llm

    def select(self, population: Population, lessons: Lessons, turn: Turn) -> Selection:
        """Choose base and reference kernel from lineage and times. Raises ValueError when no kernel is right."""
        right = frozenset(t.kernel.name for t in population.ranked())
        if not right:
            raise ValueError("no kernel in the population is right: there is nothing to start from")
        cases = [c.name for c in self.assignment.profile.benchmarks]
        rows, left_out = brief.rows(population, cases)
        counted = gpu_facts.counted_rows(population.ranked())
        prompt = self._prompt("selector", lessons, cases=cases, kernels=rows, left_out=left_out, counted=counted)
        found, asks = self.channel.ask(
            "selector",
            f"select/{turn.generation}",
            prompt,
            lambda a: schemas.selection(a, right),
            form=schemas.SelectionReply,
        )
        return Selection(base=found.base, reference=found.reference, rationale=found.rationale[:2000], asks=asks)

    def design(self, population: Population, selection: Selection, lessons: Lessons, turn: Turn) -> Design:
        """List avenues and plans for the base."""
        base, reference = population.get(selection.base), population.get(selection.reference)
        near = windows.plan(population, selection.base, turn.rng)
        prompt = self._prompt(
            "designer",
            lessons,
            base=brief.kernel(population, base),
            reference=brief.kernel(population, reference),
            selection_rationale=selection.rationale,
            roofline=brief.roofline(self.assignment, base),
            compile_report=brief.compiled(base),
            code=gpu_facts.code(base),
            advice=gpu_facts.advice(base),
            counted=gpu_facts.counted(self.assignment, base),
            tried=brief.tried(population, selection.base, near),
            record=brief.record(population),
            knowledge=self._knowledge(base.kernel.source),
        )
        found, asks = self.channel.ask(
            "designer",
            f"design/{turn.generation}",
            prompt,
            lambda a: metadata(a, schemas.DesignReply).design(),
            form=schemas.DesignReply,
        )
        return found.model_copy(update={"asks": asks})

    def write(self, population: Population, order: Commission, lessons: Lessons) -> Draft:
        """Carry an experiment out on the base."""
        base, reference = population.get(order.base), population.get(order.reference)
        rng = random.Random(order.name)
        near = windows.code(population, order.base, rng)
        prompt = self._prompt(
            "writer",
            lessons,
            base=brief.kernel(population, base),
            reference=brief.kernel(population, reference),
            experiment=order.experiment,
            relatives=brief.relatives(population, [t for t in near if t.kernel.name != order.reference]),
            sites=brief.sites(base.kernel.source),
            counted=gpu_facts.counted(self.assignment, base),
            knowledge=self._knowledge(f"{order.experiment.title} {order.experiment.description}"),
        )
        writers = [m for m in self.settings.writer.models if m.model != PLAYBOOK]
        prefer = bandit.choose(population, "writer", writers) if self.settings.choice == "bandit" else ""
        drafts: list[Draft] = []
        for number in range(self.settings.drafts):
            place = f"write/{order.place}" + (f".{number + 1}" if number else "")
            try:
                drafts.append(self._draft("writer", place, prompt, base.kernel.source, prefer, number))
            except BudgetError:
                if not drafts:
                    raise
                break  # what was paid for is used
        return drafts[0] if len(drafts) == 1 else self.judge(population, order, drafts)

    def judge(self, population: Population, order: Commission, drafts: Sequence[Draft]) -> Draft:
        """Return the draft that is worth building, with all that was asked for it.

        Without a model for it, or without a verdict that can be read, the first that holds a kernel.
        """
        asks = [ask for draft in drafts for ask in draft.asks]
        readable = list({d.source: d for d in drafts if not d.unreadable}.values()) or [drafts[0]]
        chosen = readable[0]
        if len(readable) > 1 and self.settings.judge.model != PLAYBOOK:
            base = population.get(order.base)
            rows = [
                {"number": i, "report": d.report, "diff": brief.change(base.kernel.source, d.source)}
                for i, d in enumerate(readable, start=1)
            ]
            facts = {"base": brief.kernel(population, base), "experiment": order.experiment, "drafts": rows}
            prompt = self._prompt("judge", Lessons(), **facts)
            place = f"judge/{order.place}"
            try:
                found, judged = self.channel.ask(
                    "judge", place, prompt, lambda a: schemas.verdict(a, len(rows)), form=schemas.JudgeReply
                )
                chosen, asks = readable[found.best - 1], [*asks, *judged]
            except ReplyError as error:
                asks += error.asks
            except BudgetError:
                pass
        return chosen.model_copy(update={"asks": tuple(asks)})

    def repair(self, population: Population, order: Commission, failed: Trial, lessons: Lessons) -> Draft | None:
        """Critique a kernel that failed, and mend it."""
        bug = bug_taxonomy.classify(failed.evaluation)
        attempts = failed.kernel.attempts
        rng = random.Random(f"{order.name}/{len(attempts)}")
        prompt = self._prompt(
            "repairer",
            lessons,
            kernel=failed.kernel,
            base=brief.kernel(population, population.get(order.base)),
            experiment=order.experiment,
            verdict=failed.evaluation.verdict.value,
            reason=failed.evaluation.reason,
            evidence=brief.evidence(failed),
            bug=bug,
            classes=bug_taxonomy.BUGS,
            attempts=attempts,
            relatives=brief.relatives(population, windows.debug(population, order.base, rng)),
        )
        return self._draft("repairer", f"repair/{order.place}/{len(attempts)}", prompt, failed.kernel.source)

    def distil(self, population: Population, lessons: Lessons, turn: Turn) -> Lessons:
        """State what was learnt, from a random sample of the best and of the failures; strike what is contradicted."""
        top = population.ranked()[:TOP]
        lost = [
            t for t in population if t.kernel.experiment and (t.evaluation.verdict is not Verdict.OK or score(t) == 0)
        ]
        draw = turn.rng.sample
        sample = [*draw(top, min(SAMPLE, len(top))), *draw(lost, min(FAILURES, len(lost)))]
        prompt = self._prompt(
            "distiller", lessons, sample=[brief.kernel(population, t) for t in sample], most=NEW_FINDINGS
        )
        known = {t.kernel.name for t in population}

        def read(answer: Answer) -> schemas.DistilReply:
            found = metadata(answer, schemas.DistilReply)
            if unknown := sorted({k for f in found.findings for k in f.kernels} - known):
                raise ReplyError(f"there are no kernels {', '.join(unknown)[:200]}")
            return found

        found, asks = self.channel.ask("distiller", f"distil/{turn.generation}", prompt, read, form=schemas.DistilReply)
        return lessons.changed([(f.text, f.kernels) for f in found.findings[:NEW_FINDINGS]], found.struck, asks)

    def _draft(self, role: str, place: str, prompt: Prompt, base: str, prefer: str = "", sample: int = 0) -> Draft:
        """Ask for a kernel; what stays unreadable is a kernel too, one that does not compile."""

        def read(answer: Answer) -> Draft:
            try:
                source = kernel_from(answer, base)
            except PatchError as error:
                raise ReplyError(f"{error}. Send the complete file in one ```python block instead") from error
            report, critique = schemas.section(answer, "REPORT"), ""
            if role == "repairer":
                critique = schemas.section(answer, "CRITIQUE")
            return Draft(source=source, report=report, critique=critique)

        try:
            draft, asks = self.channel.ask(role, place, prompt, read, sample=sample, prefer=prefer)
        except ReplyError as error:
            # with the place: two of them are two kernels that failed, not one that was tried before
            text = f'raise SyntaxError("""{place}: the {role} sent no kernel: {_quoted(str(error))}""")\n'
            return Draft(source=text, report=f"no kernel: {error}"[:UNREADABLE], asks=error.asks, unreadable=True)
        return draft.model_copy(update={"asks": asks})

    def _prompt(self, role: str, lessons: Lessons, **facts: Any) -> Prompt:
        it = self.assignment
        return render(
            role,
            problem=brief.problem(it.problem, it.profile),
            machine=brief.machine(it),
            language=it.language,
            target=it.target,
            by_model=it.target.startswith("model"),
            findings=lessons.shown(it.most_findings),
            role_note="",
            **facts,
        )

    def _knowledge(self, query: str) -> Sequence[knowledge.Digest]:
        it = self.assignment
        words = f"{it.problem.name} {it.problem.description} {query}"
        return knowledge.choose(it.knowledge, words, it.language, it.target, it.knowledge_tokens)


def _quoted(text: str) -> str:
    return " ".join(text.replace("\\", "/").replace('"', "'").split())[:500]
