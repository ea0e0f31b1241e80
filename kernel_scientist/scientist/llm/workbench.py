"""What who writes a kernel may do before it is handed in: compile, check and time it, see where its time goes, read.

Nothing here is a verdict: what is handed in is evaluated like any other kernel.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from pydantic import Field

from kernel_scientist.population.lineage import Population
from kernel_scientist.records import factors, sampled
from kernel_scientist.records.evaluation import COUNTERS, Evaluation, Prediction, Trial, geomean
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.scientist.context import facts, gpu_facts
from kernel_scientist.scientist.llm.lookup import Lookup, failure, limited, prediction
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError
from kernel_scientist.scientist.llm.patch import kernel_from
from kernel_scientist.scientist.llm.toolbox import SUBMIT, Arguments, Measurement, Tool, Toolbox
from kernel_scientist.scientist.prompts import rounded_us
from kernel_scientist.scientist.roles import Assignment

NO_VERDICT = "It is not the verdict, which the evaluation of what is handed in gives."


class Workshop(Protocol):
    """Compiles and checks kernels for a role, beside the campaign's own builds."""

    def compile(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel."""
        ...

    def check(self, kernel: Kernel) -> Evaluation:
        """Compile a kernel, and compare its outputs with the reference's on the public cases."""
        ...

    @property
    def pairs(self) -> bool:
        """Whether two kernels can be timed in one run."""
        ...

    def look(self, kernel: Kernel, checked: Evaluation, base: Kernel) -> Evaluation:
        """Time a kernel that passed its check and its base in one run, briefly, on the public cases."""
        ...

    @property
    def profiler(self) -> str:
        """Name of the program that profiles calls (perf, ncu, rocprofv3); empty if there is none."""
        ...

    def profile(self, kernel: Kernel, checked: Evaluation, case: str) -> Evaluation:
        """Profile a kernel that passed its check on a public timed case."""
        ...


class OfSource(Arguments):
    """Arguments about a kernel."""

    source: str = Field(default="", description="The complete file; empty: the kernel in this reply's text.")


class OfCase(OfSource):
    """Arguments about a kernel and a timed case."""

    case: str = Field(default="", description="Name of a timed case; empty: the one with the longest time.")


class HandIn(Arguments):
    """What is handed in."""

    source: str = Field(
        default="",
        description="The complete file (this reply's text is not taken); empty: the last draft that passed its check.",
    )
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
    rival: Trial
    """The base of the experiment: what drafts are to be faster than."""
    checked: str = ""
    _seen: dict[tuple[str, bool], Evaluation] = field(default_factory=dict[tuple[str, bool], Evaluation])

    def toolbox(self, most_calls: int, most_looks: int) -> Toolbox:
        """Return the tools, for so many calls, among them so many quick timings."""
        by_model = self.assignment.by_model
        of_gpu = "registers, LDS, " if self.assignment.gpu else ""
        tools = [
            Tool("compile", f"Compile a draft: errors, {of_gpu}hot loops, findings.", OfSource, self._compile),
            Tool("check", "Compile a draft and compare its outputs on the checking cases.", OfSource, self._check),
        ]
        profiler = self.workshop.profiler if most_looks and not by_model else ""
        if by_model:
            tools += [Tool("profile", "Check a draft; where its time goes by source line.", OfCase, self._predicted)]
        elif profiler:
            how = (
                "sample by source line where its calls spend CPU time" if profiler == "perf" else f"count by {profiler}"
            )
            said = f"Check a draft, or the base, given as `source`; {how}, on one case. It is one of the measurements."
            tools += [Tool("profile", said, OfCase, self._profile)]
        if by_model or most_looks:
            most = f"time it beside {self.rival.kernel.name}; that is one of the measurements"
            told = f"Check a draft and {'predict its times' if by_model else most}. {NO_VERDICT}"
            tools += [Tool("time", told, OfSource, self._time)]
        tools += Lookup(self.assignment, self.population).tools()
        tools += [Tool(SUBMIT, "Hand the kernel in, by a reply with no other call.", HandIn, _no)]
        return Toolbox(tools, most_calls, self._as_reply, most_looks)

    def _compile(self, arguments: OfSource, reply: ParsedReply | None) -> str:
        trial = self._trial(arguments, reply, check=False)
        if trial.evaluation.verdict is not Verdict.OK:
            return failure(trial)
        return "\n".join(["it compiles", *facts.code(self.assignment, trial)])

    def _check(self, arguments: OfSource, reply: ParsedReply | None) -> str:
        trial = self._trial(arguments, reply, check=True)
        if trial.evaluation.verdict is not Verdict.OK:
            return failure(trial)
        self._passed(trial)
        return "\n".join([_right(trial), *self._times(trial)])

    def _predicted(self, arguments: OfCase, reply: ParsedReply | None) -> str:
        trial = self._trial(arguments, reply, check=True)
        if trial.evaluation.verdict is not Verdict.OK:
            return failure(trial)
        self._passed(trial)
        if not trial.evaluation.predictions:
            return f"{_right(trial)}\nits times cannot be predicted: {trial.evaluation.reason or 'nothing was counted'}"
        one = prediction(trial, arguments.case)
        return "\n".join([_right(trial), self._row(one), *limited(trial, one)])

    def _profile(self, arguments: OfCase, reply: ParsedReply | None) -> str | Measurement:
        names, times = [one.name for one in self.assignment.profile.benchmarks], self.rival.evaluation.times_us
        case = arguments.case.strip() or max(names, key=lambda name: times.get(name, 0.0))
        if case not in names:
            raise ReplyError(f"there is no timed case {case[:80]!r}; there are {', '.join(names)}")
        trial = self._trial(arguments, reply, check=True)
        if trial.evaluation.verdict is not Verdict.OK:
            return failure(trial)
        self._passed(trial)
        return partial(self._profiled, trial, case)

    def _profiled(self, trial: Trial, case: str) -> str:
        """Profile a draft; return what came of it."""
        seen = self.workshop.profile(trial.kernel, trial.evaluation, case)
        found = Trial(kernel=trial.kernel, evaluation=seen)
        if seen.verdict is not Verdict.OK:
            return failure(found)
        rows = [row for one in seen.sampled for row in sampled.table(one)] + gpu_facts.counters(self.assignment, found)
        why = seen.environment.get(COUNTERS, "the reason is not shown").removeprefix("none: ")
        return "\n".join([_right(trial), *(rows or [f"it was not profiled: {why}"])])

    def _time(self, arguments: OfSource, reply: ParsedReply | None) -> str | Measurement:
        trial = self._trial(arguments, reply, check=True)
        if trial.evaluation.verdict is not Verdict.OK:
            return failure(trial)
        self._passed(trial)
        if self.assignment.by_model:
            return "\n".join([_right(trial), *self._times(trial), NO_VERDICT])
        return partial(self._look, trial)

    def _look(self, trial: Trial) -> str:
        """Time a draft beside the base; return what came of it."""
        rival = self.rival.kernel
        seen = self.workshop.look(trial.kernel, trial.evaluation, rival)
        found = seen.speedup_over(rival.name)
        if seen.verdict is not Verdict.OK:
            return failure(Trial(kernel=trial.kernel, evaluation=seen))
        if found is None:
            return f"it was not timed: {seen.reason or 'the target says nothing'}"
        rows = [
            f"{case}: {factors.factor(one.ratio, one.interval, found.dropped)}, "
            f"{rounded_us(one.time_us)} us, base {rounded_us(one.against_us)} us"
            for case, one in found.cases.items()
        ]
        over_all = f"speed over {rival.name}, timed in the same run, with its interval: {found} over all timed cases"
        return "\n".join([_right(trial), over_all, *rows, *filter(None, [seen.busy]), NO_VERDICT])

    def _passed(self, trial: Trial) -> None:
        if trial.kernel.source.strip() != self.base.kernel.source.strip():  # that would be no kernel of its own
            self.checked = trial.kernel.source

    def _times(self, trial: Trial) -> list[str]:
        """Return predicted times beside the base's; nothing where none are predicted."""
        own = {one.case: one.time_us for one in trial.evaluation.predictions}
        base = {one.case: one.time_us for one in self.rival.evaluation.predictions}
        rows = [self._row(one) for one in trial.evaluation.predictions]
        if own and own.keys() == base.keys():
            ratio = geomean([base[case] / own[case] for case in own])
            rows.insert(0, f"predicted {ratio:.3g} times as fast as the base (geometric mean of all timed cases)")
        return rows

    def _row(self, prediction: Prediction) -> str:
        case, before = prediction.case, ""
        for one in self.rival.evaluation.predictions:
            before = f", base {rounded_us(one.time_us)} us" if one.case == case else before
        return f"{case}: predicted {rounded_us(prediction.time_us)} us{before}; limited by {prediction.limited_by}"

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
                raise ReplyError("it needs `source`, or a kernel in the same reply: earlier drafts are not kept")
            source = kernel_from(reply, self.base.kernel.source)
        kernel = Kernel(name=self.name, language=self.assignment.language, source=source, base=self.base.kernel.name)
        key = (source, check)
        if key not in self._seen:
            self._seen[key] = self.workshop.check(kernel) if check else self.workshop.compile(kernel)
        return Trial(kernel=kernel, evaluation=self._seen[key])


def _right(trial: Trial) -> str:
    return f"its outputs are right; {trial.evaluation.coverage or 'all checking cases'}"


def _no(*_: object) -> str:
    raise AssertionError("what is handed in is not answered")
