"""What who writes a kernel may do before it is handed in: compile and check it, see where its time goes, read.

Nothing here is a verdict: what is handed in is evaluated like any other kernel.
"""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import Field

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Evaluation, Prediction, Trial, geomean
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.scientist import knowledge
from kernel_scientist.scientist.context import facts, gpu_facts
from kernel_scientist.scientist.knowledge import Document
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError
from kernel_scientist.scientist.llm.patch import kernel_from
from kernel_scientist.scientist.llm.toolbox import SUBMIT, Arguments, Tool, Toolbox
from kernel_scientist.scientist.prompts import rounded_us
from kernel_scientist.scientist.roles import Assignment

MOST_FOUND, MOST_LINES = 3, 200
"""Sections of documents, and lines of a text, in one result."""
_HEADING = re.compile(r"^#{1,6} .*$", re.M)


class Workshop(Protocol):
    """Compiles and checks kernels for a role, beside the campaign's own builds."""

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel."""
        ...

    def check(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel, and compare its outputs with the reference's on the public cases."""
        ...


class OfSource(Arguments):
    """Arguments about a kernel."""

    source: str = Field(default="", description="The complete file; empty: the kernel in this reply.")


class OfCase(OfSource):
    """Arguments about a kernel and a timed case."""

    case: str = Field(default="", description="Name of a timed case; empty: the one with the longest time.")


class ReadArguments(Arguments):
    """What to read."""

    name: str = Field(description="Name of a kernel (k00012), or title of a document.")
    first: int = Field(default=1, ge=1, description="First line.")
    lines: int = Field(default=MOST_LINES, ge=1, le=MOST_LINES, description="Number of lines.")


class Searching(Arguments):
    """What to search for."""

    words: str = Field(min_length=2, description="What to look for in the background documents.")


class HandIn(Arguments):
    """What is handed in."""

    source: str = Field(default="", description="The complete file; empty: the draft that passed its check last.")
    report: str = Field(description="What `REPORT:` asks for.")
    critique: str = Field(default="", description="What `CRITIQUE:` asks for, if the prompt does.")
    plan: str = Field(default="", description="The plan as a JSON object, if the prompt asks for one.")


@dataclass
class Workbench:
    """The tools for one kernel. `checked`: the last source that passed its check, empty if none did."""

    workshop: Workshop
    assignment: Assignment
    population: Population
    name: str
    base: Trial
    """What a change in a reply is a change of."""
    checked: str = ""
    _seen: dict[tuple[str, bool], Evaluation] = field(default_factory=dict[tuple[str, bool], Evaluation])

    def toolbox(self, most_calls: int) -> Toolbox:
        """Return the tools, for so many calls."""
        of_gpu = "registers, LDS, " if self.assignment.gpu else ""
        titles = "; ".join(one.title for one in self._documents())
        tools = [
            Tool("compile", f"Compile a draft: errors, {of_gpu}hot loops, findings.", OfSource, self._compile),
            Tool("check", "Compile a draft and compare its outputs on the checking cases.", OfSource, self._check),
            Tool("profile", "Check a draft; tell by source line where its time goes.", OfCase, self._profile),
            Tool("read", f"Read a kernel's source, or one of these documents: {titles}.", ReadArguments, self._read),
            Tool("search", "Find sections of these documents.", Searching, self._search),
            Tool(SUBMIT, "Hand the kernel in, by a reply with no other call.", HandIn, _no),
        ]
        offered = [one for one in tools if self.assignment.by_model or one.name != "profile"]
        return Toolbox(offered, most_calls, self._as_reply)

    def _compile(self, arguments: OfSource, reply: ParsedReply | None) -> str:
        trial = self._trial(arguments, reply, check=False)
        if trial.evaluation.verdict is not Verdict.OK:
            return _failure(trial)
        return "\n".join(["it compiles", *self._code(trial)])

    def _check(self, arguments: OfSource, reply: ParsedReply | None) -> str:
        trial = self._trial(arguments, reply, check=True)
        if trial.evaluation.verdict is not Verdict.OK:
            return _failure(trial)
        self._passed(trial)
        return "\n".join(
            [f"its outputs are right; {trial.evaluation.coverage or 'all checking cases'}", *self._times(trial)]
        )

    def _profile(self, arguments: OfCase, reply: ParsedReply | None) -> str:
        trial = self._trial(arguments, reply, check=True)
        if trial.evaluation.verdict is not Verdict.OK:
            return _failure(trial)
        self._passed(trial)
        predictions = trial.evaluation.predictions
        if not predictions:
            return f"{_right(trial)}\nits times cannot be predicted: {trial.evaluation.reason or 'nothing was counted'}"
        case = arguments.case or max(predictions, key=lambda one: one.time_us).case
        chosen = [one for one in predictions if one.case == case]
        if not chosen:
            raise ReplyError(f"there is no timed case {case!r}; there are {', '.join(one.case for one in predictions)}")
        rows = gpu_facts.limits(trial.model_copy(update={"evaluation": _only(trial.evaluation, case)}))
        return "\n".join([_right(trial), self._time(chosen[0]), *(line for row in rows for line in _limit(row))])

    def _passed(self, trial: Trial) -> None:
        if trial.kernel.source.strip() != self.base.kernel.source.strip():  # that would be no kernel of its own
            self.checked = trial.kernel.source

    def _times(self, trial: Trial) -> list[str]:
        """Return predicted times beside the base's; nothing where none are predicted."""
        own = {one.case: one.time_us for one in trial.evaluation.predictions}
        base = {one.case: one.time_us for one in self.base.evaluation.predictions}
        rows = [self._time(one) for one in trial.evaluation.predictions]
        if own and own.keys() == base.keys():
            ratio = geomean([base[case] / own[case] for case in own])
            rows.insert(0, f"predicted {ratio:.3g} times as fast as the base (geometric mean of all timed cases)")
        return rows

    def _time(self, prediction: Prediction) -> str:
        case, before = prediction.case, ""
        for one in self.base.evaluation.predictions:
            before = f", base {rounded_us(one.time_us)} us" if one.case == case else before
        return f"{case}: predicted {rounded_us(prediction.time_us)} us{before}; limited by {prediction.limited_by}"

    def _read(self, arguments: ReadArguments, _: ParsedReply | None) -> str:
        documents = {one.title: one.text for one in self._documents()}
        name = arguments.name.strip()
        if name in self.population:
            text = self.population.get(name).kernel.source
        elif name in documents:
            text = documents[name]
        else:
            known = "; ".join([*documents][:30])
            raise ReplyError(f"there is no kernel or document {name[:80]!r}; documents: {known}")
        lines = text.splitlines()
        first, last = arguments.first - 1, arguments.first - 1 + arguments.lines
        return "\n".join([f"lines {arguments.first} to {min(last, len(lines))} of {len(lines)}", *lines[first:last]])

    def _search(self, arguments: Searching, _: ParsedReply | None) -> str:
        sections = [(_words(text), head, text) for head, text in self._sections()]
        wanted = _words(arguments.words)
        rarity = {word: math.log1p(len(sections) / (1 + sum(word in own for own, _, _ in sections))) for word in wanted}
        scored = [(sum(rarity[word] for word in wanted & own), head, text) for own, head, text in sections]
        best = sorted((one for one in scored if one[0]), key=lambda one: -one[0])[:MOST_FOUND]
        return "\n\n".join(f"{head}\n{text}" for _, head, text in best) or "nothing in the documents has these words"

    def _sections(self) -> Sequence[tuple[str, str]]:
        found = list[tuple[str, str]]()
        for document in self._documents():
            edges = [0, *(match.start() for match in _HEADING.finditer(document.text)), len(document.text)]
            parts = (document.text[a:b].strip() for a, b in itertools.pairwise(edges))
            found += [(f"From `{document.title}`:", part) for part in parts if part]
        return found

    def _documents(self) -> list[Document]:
        one = self.assignment
        about = f"{one.problem.name} {one.problem.description} {one.problem.reference_text}"
        return knowledge.applicable(one.knowledge, one.language, one.backend, one.memory_bound, about)

    def _code(self, trial: Trial) -> list[str]:
        gpu = self.assignment.gpu
        return gpu_facts.code(gpu, trial) if gpu else facts.instructions(trial)

    def _as_reply(self, submission: HandIn) -> str:
        """Return what was handed in as a reply in the form that prompts ask for."""
        source = submission.source.strip() or self.checked.strip()
        if not source:
            raise ReplyError("submit needs `source`, the complete file: no draft has passed its check")
        parts = [f"````json\n{submission.plan.strip()}\n````"] if submission.plan.strip() else []
        parts += [f"CRITIQUE: {submission.critique.strip()}"] if submission.critique.strip() else []
        return "\n\n".join([*parts, f"````python\n{source}\n````", f"REPORT: {submission.report.strip()}"])

    def _trial(self, arguments: OfSource, reply: ParsedReply | None, check: bool) -> Trial:
        """Return a kernel with what came of it; what was asked before is not done again. Raises ReplyError."""
        source = arguments.source
        if not source.strip():
            if reply is None:
                raise ReplyError("it needs `source`, or a kernel in the same reply")
            source = kernel_from(reply, self.base.kernel.source)
        kernel = Kernel(name=self.name, language=self.assignment.language, source=source, base=self.base.kernel.name)
        key = (source, check)
        if key not in self._seen:
            self._seen[key] = self.workshop.check(kernel) if check else self.workshop.compile(kernel)
        return Trial(kernel=kernel, evaluation=self._seen[key])


def _only(evaluation: Evaluation, case: str) -> Evaluation:
    return evaluation.model_copy(update={"predictions": tuple(p for p in evaluation.predictions if p.case == case)})


def _limit(row: dict[str, Any]) -> list[str]:
    """Return a row of predicted limits as lines."""
    about, rows = row["lines"] or ("", [])
    return [f"limited by {row['limit']} ({row['parts']})", *row["advice"], *filter(None, [about]), *rows]


def _right(trial: Trial) -> str:
    return f"its outputs are right; {trial.evaluation.coverage or 'all checking cases'}"


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{2,}", text.lower()))


def _failure(trial: Trial) -> str:
    return f"{trial.evaluation.verdict.value}:\n{facts.evidence(trial).strip()}"


def _no(*_: object) -> str:
    raise AssertionError("what is handed in is not answered")
