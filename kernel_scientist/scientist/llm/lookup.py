"""What who designs or writes may look up: background documents, and the campaign's kernels with what is known of them.

Nothing is built or timed for it.
"""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Prediction, Trial
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.scientist.context import facts, gpu_facts
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.llm.toolbox import Arguments, Tool, Toolbox
from kernel_scientist.scientist.roles import Assignment

MOST_FOUND, MOST_LINES, MOST_NAMED = 3, 200, 30
"""Sections of documents, and lines of a text, in one result; titles in a message."""
_HEADING = re.compile(r"^#{1,6} .*$", re.M)


class ReadArguments(Arguments):
    """What to read."""

    name: str = Field(description="Name of a kernel (k00012), or title of a document.")
    first: int = Field(default=1, ge=1, description="First line.")
    lines: int = Field(default=MOST_LINES, ge=1, le=MOST_LINES, description="Number of lines.")


class Searching(Arguments):
    """What to search for."""

    words: str = Field(min_length=2, description="What to look for in the background documents.")


class OfKernel(Arguments):
    """Arguments about a kernel of the campaign."""

    kernel: str = Field(description="Name of a kernel (k00012).")


class OfKernelsCase(OfKernel):
    """Arguments about a kernel of the campaign and a timed case."""

    case: str = Field(default="", description="Name of a timed case; empty: the one with the longest time.")


@dataclass(frozen=True)
class Lookup:
    """The documents of an assignment, and the kernels of a population."""

    assignment: Assignment
    population: Population

    def toolbox(self, most_calls: int) -> Toolbox:
        """Return the tools of a role that builds nothing, for so many calls."""
        what = "what limits it, by source line" if self.assignment.by_model else "counters, if any were read"
        tools = [
            Tool("compile", "The compiler's findings on a recorded kernel, hot loops.", OfKernel, self._compiled),
            Tool("profile", f"Times of a recorded kernel by case, floors; {what}.", OfKernelsCase, self._profile),
        ]
        return Toolbox([*tools, *self.tools()], most_calls)

    def tools(self) -> list[Tool]:
        """Return the tools that read and search."""
        titles = "; ".join(one.title for one in self.assignment.documents)
        return [
            Tool("read", f"Read a kernel's source, or one of these documents: {titles}.", ReadArguments, self._read),
            Tool(
                "search",
                "Find sections of the documents that `read` lists, and what a report's symptoms usually mean.",
                Searching,
                self._search,
            ),
        ]

    def _compiled(self, arguments: OfKernel, _: object) -> str:
        trial = self._kernel(arguments.kernel)
        if trial.evaluation.verdict is not Verdict.OK:
            return failure(trial)
        return "\n".join(facts.code(self.assignment, trial)) or "nothing is known of its machine code"

    def _profile(self, arguments: OfKernelsCase, _: object) -> str:
        trial = self._kernel(arguments.kernel)
        if trial.evaluation.verdict is not Verdict.OK:
            return failure(trial)
        table = facts.case_table(self.assignment, self.population, [trial])
        rows = [f"{row['case']}: {row['times'][0]} us, floor {row['floor']} us" for row in table["rows"]]
        if trial.evaluation.predictions:
            one = prediction(trial, arguments.case)
            rows += [f"In case {one.case}, by the performance model:", *limited(trial, one)]
        return "\n".join([*rows, *gpu_facts.counters(self.assignment, trial)])

    def _kernel(self, name: str) -> Trial:
        if name.strip() not in self.population:
            raise ReplyError(f"there is no kernel {name[:80]!r}")
        return self.population.get(name.strip())

    def _read(self, arguments: ReadArguments, _: object) -> str:
        documents = {one.title: one.text for one in self.assignment.documents}
        name = arguments.name.strip()
        if name in self.population:
            text = self.population.get(name).kernel.source
        elif name in documents:
            text = documents[name]
        else:
            known = "; ".join([*documents][:MOST_NAMED])
            raise ReplyError(f"there is no kernel or document {name[:80]!r}; documents: {known}")
        lines = text.splitlines()
        first, last = arguments.first - 1, arguments.first - 1 + arguments.lines
        return "\n".join([f"lines {arguments.first} to {min(last, len(lines))} of {len(lines)}", *lines[first:last]])

    def _search(self, arguments: Searching, _: object) -> str:
        sections = [(_words(text), head, text) for head, text in self._sections()]
        wanted = _words(arguments.words)
        rarity = {word: math.log1p(len(sections) / (1 + sum(word in own for own, _, _ in sections))) for word in wanted}
        scored = [(sum(rarity[word] for word in wanted & own), head, text) for own, head, text in sections]
        best = sorted((one for one in scored if one[0]), key=lambda one: -one[0])[:MOST_FOUND]
        return "\n\n".join(f"{head}\n{text}" for _, head, text in best) or "nothing in the documents has these words"

    def _sections(self) -> Sequence[tuple[str, str]]:
        found = list[tuple[str, str]]()
        for document in self.assignment.documents:
            edges = [0, *(match.start() for match in _HEADING.finditer(document.text)), len(document.text)]
            parts = (document.text[a:b].strip() for a, b in itertools.pairwise(edges))
            found += [(f"From `{document.title}`:", part) for part in parts if part]
        language, target, *_ = self.assignment.subject
        cards = [card for card in self.assignment.symptoms.values() if card.is_for(language, target)]
        return [*found, *((f"Of a report that shows `{card.title}`:", card.advice(language)) for card in cards)]


def prediction(trial: Trial, case: str) -> Prediction:
    """Return the prediction of a case, by default of the one with the longest time. Raises ReplyError for no case."""
    predictions = trial.evaluation.predictions
    case = case or max(predictions, key=lambda one: one.time_us).case
    chosen = next((one for one in predictions if one.case == case), None)
    if chosen is None:
        raise ReplyError(f"there is no timed case {case!r}; there are {', '.join(one.case for one in predictions)}")
    return chosen


def limited(trial: Trial, one: Prediction) -> list[str]:
    """Return what limits a kernel's predicted time on a case."""
    only = trial.evaluation.model_copy(update={"predictions": (one,)})
    rows = gpu_facts.limits(trial.model_copy(update={"evaluation": only}))
    return [line for row in rows for line in _limit(row)]


def failure(trial: Trial) -> str:
    """Return the verdict on a kernel that failed, with the evidence."""
    return f"{trial.evaluation.verdict.value}:\n{facts.evidence(trial).strip()}"


def _limit(row: gpu_facts.PredictedLimit) -> list[str]:
    """Return a row of predicted limits as lines."""
    about, rows = row.lines or ("", [])
    return [f"limited by {row.limit} ({row.parts})", *row.advice, *filter(None, [about]), *rows]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{2,}", text.lower()))
