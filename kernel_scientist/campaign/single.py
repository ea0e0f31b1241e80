"""Evaluate or confirm one kernel file."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kernel_scientist.campaign import bars, results
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.campaign.steps import FUNCTIONS, Steps, infrastructure_as_verdict, time_kernel
from kernel_scientist.campaign.transport import Connect
from kernel_scientist.compilers.source import language_of, read_kernel
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.population.lineage import distinct_name
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import own_name
from kernel_scientist.records.errors import InfrastructureError, SetupError
from kernel_scientist.records.evaluation import Confirmation, Evaluation
from kernel_scientist.records.kernel import REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.records.results import EvaluationResult, ValidationResult


def evaluate(
    file: str, params: Params, against: str | None = None, steps: Steps = FUNCTIONS, connect: Connect | None = None
) -> EvaluationResult:
    """Compile, check and time one kernel file, against the reference and `against` (another file).

    The result's speedup is over the last of them. Without `against` the noise of the machine is not measured, as there
    is no incumbent that the kernel could replace.
    """
    with _opened(file, params, steps, connect) as (context, kernel):
        others = [context.target.reference()]
        if against is None:
            context.target.forgo_noise()
        else:
            name = distinct_name(f"{Path(against).stem} (against)", [REFERENCE, kernel.name], "against")
            others.append(TimedSource(name=name, source=read_kernel(Path(against))))
        evaluation = own_name.of(evaluated(context, kernel, others), Path(file).name)
        return results.of_evaluation(context, evaluation, others[-1].name)


def check(file: str, params: Params, is_executed: bool = True) -> EvaluationResult:
    """Compile one kernel file and compare its outputs on every checking case; nothing is timed.

    `is_executed`: without it the kernel is only compiled.
    """
    with _opened(file, params, FUNCTIONS, None) as (context, kernel):
        builder = context.target.builder
        if builder is None:
            raise SetupError(f"target {params.target!r}: kernels are compiled and checked where they are timed")
        step = partial(context.steps.compile, context) if is_executed else builder.compile
        evaluation = infrastructure_as_verdict(step)(kernel)
        return results.of_evaluation(context, own_name.of(evaluation, Path(file).name), REFERENCE)


def profile(file: str, params: Params, case: str = "") -> EvaluationResult:
    """Check one kernel file and profile its calls on a timed case; where that is impossible, evaluate it in full.

    `case`: its name, by default the case that moves most bytes. Raises SetupError if there is no such case.
    """
    with _opened(file, params, FUNCTIONS, None) as (context, kernel):
        cases = {one.name: one for one in context.target.profile.benchmarks}
        if case and case not in cases:
            raise SetupError(f"problem {context.problem.name} has no timed case {case!r}; it has {', '.join(cases)}")
        one = cases[case] if case else max(cases.values(), key=lambda one: context.problem.work(one).bytes)
        if context.target.builder is None:
            evaluation = evaluated(context, kernel, [context.target.reference()])
        else:
            evaluation = _profiled(context, kernel, one)
        return results.of_evaluation(context, own_name.of(evaluation, Path(file).name), REFERENCE)


@infrastructure_as_verdict
def _profiled(context: EvaluationContext, kernel: Kernel, case: Case) -> Evaluation:
    checked = context.steps.compile(context, kernel)
    if checked.verdict is not Verdict.OK:
        return checked
    turn = context.turn(f"profile {kernel.name}")
    return time_kernel(context, kernel, partial(context.target.profiled, kernel, checked, case), turn)


@infrastructure_as_verdict
def evaluated(
    context: EvaluationContext,
    kernel: Kernel,
    against: Sequence[TimedSource],
    baseline: str | None = None,
    is_counted: Callable[[Evaluation], bool] = lambda _: True,
) -> Evaluation:
    """Compile and check a kernel, time it beside others, read its counters if `is_counted` is true of its timing.

    `baseline`: see `target.Timer`. An infrastructure error becomes the verdict.
    """
    evaluation = context.steps.compile(context, kernel)
    if evaluation.verdict is not Verdict.OK:
        return evaluation
    measure = partial(context.target.time, kernel, evaluation, against, baseline)
    timed = context.steps.time(context, kernel, measure)
    return context.steps.counted(context, kernel, timed) if is_counted(timed) else timed


def validate(
    file: str, params: Params, against: str | None = None, steps: Steps = FUNCTIONS, connect: Connect | None = None
) -> ValidationResult:
    """Confirm one kernel file against the reference and the seeds, beside the bars of its problem.

    The kernel must be faster than `against` (a file; default: the last of the problem's other seeds).
    """
    with _opened(file, params, steps, connect) as (context, kernel):
        seeds = rivals(context.problem, kernel, against)
        others, baseline = [context.target.reference(), *seeds], seeds[-1].name if seeds else None
        confirmation, name = confirm_beside_bars(context, kernel, others, baseline), Path(file).name
        evaluation = own_name.of(confirmation.evaluation, name)  # what the bars say is about files of their own
        renamed = {"reason": own_name.told(confirmation.reason, name), "evaluation": evaluation}
        return results.of_confirmation(context, kernel, confirmation.model_copy(update=renamed))


def rivals(problem: Problem, kernel: Kernel, against: str | None = None) -> list[TimedSource]:
    """Return what `validate` times a kernel beside, apart from reference and bars; it must be faster than the last.

    `against`: a file; without one they are the problem's other seeds. Raises SetupError for a file that is no kernel,
    or the same one.
    """
    files = [Path(against)] if against else problem.seeds(kernel.language)
    sources = {distinct_name(f.stem, (REFERENCE, kernel.name), "against"): read_kernel(f) for f in files}
    others = [TimedSource(name=name, source=source) for name, source in sources.items() if source != kernel.source]
    if against and not others:
        raise SetupError(f"{against} is the same kernel: it cannot be faster than itself")
    return others


def confirm_beside_bars(
    context: EvaluationContext, kernel: Kernel, others: Sequence[TimedSource], baseline: str | None
) -> Confirmation:
    """Confirm a kernel beside the bars of its problem as well; without them if their timing fails."""
    beside = bars.checked(context, (kernel.name, *(other.name for other in others)), kernel.source)
    beside += bars.torch_compile(context)
    timed = [source for _, source in beside if source is not None]
    confirmation = confirm(context, kernel, [*others[:1], *timed, *others[1:]], baseline)
    shown = [bar for bar, _ in beside]
    if timed and confirmation.evaluation.verdict is Verdict.INFRASTRUCTURE:
        reason = f"the timing beside it failed: {confirmation.evaluation.reason}"
        failure = {"verdict": Verdict.INFRASTRUCTURE, "reason": reason}
        shown = [bar.model_copy(update=failure if source else {}) for bar, source in beside]
        confirmation = confirm(context, kernel, others, baseline)
    shown += bars.predicted_references(context, confirmation.evaluation)
    return confirmation.model_copy(update={"bars": tuple(shown), "baseline": baseline or ""})


def confirm(
    context: EvaluationContext, kernel: Kernel, others: Sequence[TimedSource], baseline: str | None
) -> Confirmation:
    """Check a kernel on every case, time it in several sets of fresh processes, compare it with `baseline`."""
    try:
        return context.target.confirm(context, kernel, others, baseline)
    except InfrastructureError as error:
        return Confirmation.of_failure(Evaluation(verdict=Verdict.INFRASTRUCTURE, reason=str(error)))


def when_quiet(context: EvaluationContext, measure: Callable[[], Evaluation]) -> Evaluation:
    """Wait for a quiet machine, at most `harness.quiet_wait_s`, if it is this one that is timed; then measure."""
    context.target.wait_for_quiet()
    return measure()


@contextmanager
def _opened(
    file: str, params: Params, steps: Steps, connect: Connect | None
) -> Generator[tuple[EvaluationContext, Kernel]]:
    """Open the context of one kernel file: its language is the language. Raises SetupError if it is not a kernel."""
    source = read_kernel(Path(file))
    name = distinct_name(Path(file).stem, [REFERENCE], "kernel")
    kernel = Kernel(name=name, language=language_of(source), source=source)
    with evaluation_context(params.model_copy(update={"language": kernel.language}), steps, connect) as context:
        yield context, kernel
