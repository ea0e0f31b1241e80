"""What models are shown with `search.hide_shapes`: a general problem, and timed cases under opaque names.

Records are replaced by others before anything is made of them: names of timed cases become `case-1`, `case-2`, ..., and
what their sizes follow from is left out. What a kernel printed or raised on a timed case is left out as well, because a
kernel may print sizes on purpose. `text` rewrites what else leaves, such as findings of earlier campaigns.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import stated_sizes
from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.records.evaluation import (
    COUNTERS,
    UNPREVIEWED,
    Clocks,
    CompileReport,
    Evaluation,
    Speedup,
    Timing,
    Trial,
)
from kernel_scientist.records.gpu import Prediction
from kernel_scientist.records.kernel import Attempt, Case, Verdict
from kernel_scientist.records.sampled import Sampled
from kernel_scientist.scientist.context import bug_taxonomy
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.scientist.roles import Assignment

WITHHELD = "what it printed or raised there is not told"
RULE = "a rule of the problem or of the evaluation was broken"
OWN = (Verdict.OK, Verdict.NO_CHANGE, Verdict.COMPILED, Verdict.DECLINED, Verdict.ABSENT)
"""Verdicts whose reason is the evaluator's own or a writer's."""
KINDS = {
    "A.1": "SyntaxError",
    "A.2": "IndentationError",
    "A.3": "ImportError",
    "B.1": "AttributeError or a misused interface",
    "B.2": "NameError or memory: uninitialised read",
    "B.3": "IndexError or outside its buffers",
    "B.4": "TypeError or ValueError",
    "B.5": "MemoryError, OutOfResources or memory: deadlock",
    "C.2": "not written, or changed after the call",
    "C.3": "wrong dtype, shape or strides",
}
"""Words for the kinds of `bug_taxonomy`, by which it finds the same kind again; none for wrong values."""
T = TypeVar("T", Timing, Clocks, Prediction, Sampled)
_LINE = re.compile(r"\bline (\d{1,6})\b|\bkernel\.(?:py|cpp):(\d{1,6})\b")


@dataclass(frozen=True)
class HiddenCases:
    """The timed cases of a profile, and what models are shown in their place."""

    profile: Profile

    @functools.cached_property
    def ids(self) -> Mapping[str, str]:
        """The opaque names, by the cases' names: in none of them is a case's name found."""
        names = [case.name for case in self.profile.benchmarks]
        return opaque(names)

    @functools.cached_property
    def _numbers(self) -> frozenset[int]:
        return stated_sizes.numbers(self.profile)

    def text(self, text: str) -> str:
        """Return a text with the opaque names in place of the cases' names."""
        return rewritten(text, self.ids)

    def assignment(self, assignment: Assignment) -> Assignment:
        """Return an assignment without sizes of timed cases, floors and published times, from which they follow."""
        tests = tuple(case for case in self.profile.tests if not self.profile.times(case))
        timed = tuple(Case(sizes={}, seed=0, label=name) for name in self.ids.values())
        problem = dataclasses.replace(
            assignment.problem,
            description=stated_sizes.general(assignment.problem.description),
            profiles={"full": Profile(tests, (), ())},
            work_expressions={},
            count_work=_unknown,
            published=(),
        )
        return dataclasses.replace(
            assignment,
            problem=problem,
            profile=dataclasses.replace(self.profile, tests=tests, benchmarks=timed),
            published={},
            bound_by_memory=assignment.memory_bound,
        )

    def population(self, population: Population) -> Population:
        """Return a population whose records are shown as `trial` does."""
        return population.viewed(self.trial)

    def lessons(self, lessons: Lessons) -> Lessons:
        """Return findings without those of earlier campaigns that state a timed size."""
        earlier = tuple(one for one in lessons.earlier if not self._tells(one.text))
        refuted = tuple(one for one in lessons.refuted if not self._tells(f"{one.statement} {one.mechanism}"))
        return lessons.model_copy(update={"earlier": earlier, "refuted": refuted})

    def _tells(self, text: str) -> bool:
        return stated_sizes.has_number(text, self._numbers) or any(
            stated_sizes.states(text, case) for case in self.profile.benchmarks
        )

    def trial(self, trial: Trial) -> Trial:
        """Return a kernel with its evaluation as they are shown."""
        attempts = tuple(self._attempt(one) for one in trial.kernel.attempts)
        kernel = trial.kernel.model_copy(update={"attempts": attempts})
        return Trial(kernel=kernel, evaluation=self.evaluation(trial.evaluation, trial.kernel.source))

    def evaluation(self, evaluation: Evaluation, source: str) -> Evaluation:
        """Return an evaluation as it is shown. `source`: the kernel's, of which the line that failed is shown."""
        reason, evidence = self._failure(evaluation, source)
        shown = {
            "reason": self.text(reason),
            "evidence": evidence,
            "labels": tuple(map(self.text, evaluation.labels)),
            "compile": _code(evaluation),
            "timings": self._renamed(evaluation.timings),
            "clocks": self._renamed(evaluation.clocks),
            "predictions": tuple(
                one.model_copy(update={"words": (), "lines": ()}) for one in self._renamed(evaluation.predictions)
            ),
            "speedups": tuple(map(self._speedup, evaluation.speedups)),
            "beside": {name: self._speedup(one) for name, one in evaluation.beside.items()},
            "counters": (),
            "sampled": self._renamed(evaluation.sampled),
            "environment": {name: text for name, text in evaluation.environment.items() if name != COUNTERS},
            "coverage": "",
            "samples": None,
            "failed_untimed": True,  # to show it again changes nothing
        }
        return evaluation.model_copy(update=shown)

    def _renamed(self, rows: Sequence[T]) -> tuple[T, ...]:
        return tuple(row.model_copy(update={"case": self._id(row.case)}) for row in rows)

    def _speedup(self, speedup: Speedup) -> Speedup:
        cases = {self._id(name): pair for name, pair in speedup.cases.items()}
        slower = tuple(map(self._id, speedup.slower_cases))
        return speedup.model_copy(update={"cases": cases, "slower_cases": slower})

    def _id(self, name: str) -> str:
        return self.ids.get(name, name if name in self.ids.values() else "a timed case")

    def _failure(self, evaluation: Evaluation, source: str) -> tuple[str, tuple[str, ...]]:
        """Return reason and evidence as they are shown: of a failure on a timed case its kind, the case, the line."""
        if evaluation.verdict in OWN:
            return evaluation.reason, ()
        if evaluation.failed_untimed:
            return evaluation.reason, tuple(one for one in evaluation.evidence if not one.startswith(UNPREVIEWED))
        if evaluation.verdict is Verdict.INFRASTRUCTURE:
            return "through no fault of the kernel", ()
        told = "\n".join(
            (evaluation.reason, *evaluation.evidence, evaluation.compile.log if evaluation.compile else "")
        )
        kind = RULE if evaluation.verdict is Verdict.REJECTED else KINDS.get(bug_taxonomy.classify(evaluation).id, "")
        case = next((self.ids[name] for name in _longest_first(self.ids) if name in told), "")
        where = f"on {case}, a timed case" if case else "where a timed case may take part"
        line = _line(told, source)
        return ": ".join(filter(None, (where, kind, WITHHELD))), (f"source line: {line}",) if line else ()

    def _attempt(self, attempt: Attempt) -> Attempt:
        if attempt.failed_untimed or attempt.verdict in OWN:
            return attempt.model_copy(update={"reason": self.text(attempt.reason)})
        kind = RULE if attempt.verdict is Verdict.REJECTED else KINDS.get(attempt.bug, "")
        return attempt.model_copy(update={"reason": ": ".join(filter(None, (kind, WITHHELD))), "failed_untimed": True})


def opaque(names: Sequence[str]) -> dict[str, str]:
    """Return a name for each of some cases; in none of the new names is one of the old found."""
    known = list(dict.fromkeys(names))
    for word in itertools.chain(("case-", "case"), ("q" * n for n in itertools.count(1))):
        ids = {name: f"{word}{number}" for number, name in enumerate(known, start=1)}
        if not any(_pattern(known).search(new) for new in ids.values()):
            return ids
    raise AssertionError("the words are endless")


def rewritten(text: str, ids: Mapping[str, str]) -> str:
    """Return a text with the new names in place of the old, until none of the old is found."""
    if not ids:
        return text
    pattern, replace = _pattern(tuple(ids)), _replacing(ids)
    while (changed := pattern.sub(replace, text)) != text:
        text = changed
    return text


def _replacing(ids: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda match: ids[match[0]]


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return what finds any of some names, the longest first, where neither letters nor further digits touch it."""
    each = (re.escape(name) + (r"(?!\d)" if name[-1:].isdigit() else r"(?!\w)") for name in _longest_first(names))
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(each)})")


def _longest_first(names: Iterable[str]) -> list[str]:
    return sorted(filter(None, names), key=lambda name: (-len(name), name))


def _code(evaluation: Evaluation) -> CompileReport | None:
    """Return a compile report without launches, and without compile-time arguments and what is found of them."""
    report = evaluation.compile
    if report is None:
        return None
    objects = tuple(one.model_copy(update={"constants": {}}) for one in report.objects)
    log = report.log if evaluation.failed_untimed or report.ok else ""
    named = {f"{name} {value}" for one in report.objects for name, value in one.constants.items()}
    findings = tuple(one for one in report.findings if not any(words in one for words in named))
    shown = {"launches": (), "missed": (), "objects": objects, "findings": findings, "log": log}
    return report.model_copy(update=shown)


def _line(told: str, source: str) -> str:
    """Return the text of the last line of a kernel's file that a failure names; empty if it names none."""
    lines, numbers = source.splitlines(), [int(first or second) for first, second in _LINE.findall(told)]
    return next((lines[n - 1].strip() for n in reversed(numbers) if 0 < n <= len(lines)), "")


def _unknown(problem: Problem, case: Case) -> tuple[float, float]:
    """Return no operations and no bytes, as of a case whose work is not known."""
    return 0.0, 0.0
