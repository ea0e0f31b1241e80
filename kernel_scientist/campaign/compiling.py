"""Compile a submission for a GPU that need not be present: `kernel-scientist compile`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from kernel_scientist.campaign import results
from kernel_scientist.compilers.source import defines, leaderboard, read_file
from kernel_scientist.evaluation import hot_lines
from kernel_scientist.gpu.capture import case_shapes, entries, file_inspection, inspect, preview
from kernel_scientist.gpu.capture.code_findings import refused_launch
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems import find, names
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import own_name
from kernel_scientist.records.compilation import CompilationResult, launched
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox.failure import KernelFailure

NO_KERNEL = "it defines no Triton kernel: functions that return a value or that others call are none"


def compiled(
    file: Path,
    gpu: Gpu,
    problem: str | None,
    params: Params,
    entry: str | None = None,
    inputs: str | None = None,
    lines: bool = True,
) -> CompilationResult:
    """Compile a submission on a problem's cases; by default the problem whose inputs it accepts.

    `entry` and `inputs`: the function to call and its arguments (`gpu.capture.files.entries`). A file with one of
    them, or without a `custom_kernel`, belongs to no problem. `lines`: whether one timed case is executed for the
    lines that take its time (`evaluate.hot_lines`), where the GPU is AMD's. Raises SetupError for an unknown problem,
    wrong inputs, or a file that is no kernel for a GPU.
    """
    source = read_file(file)
    if "from kernel_scientist import" in source:
        raise SetupError(f"{file} is a C++ kernel for the CPU: `kernel-scientist evaluate` compiles it")
    return own_name.of(_compiled(file, source, gpu, problem, params, entry, inputs, lines), file.name)


def _compiled(
    file: Path,
    source: str,
    gpu: Gpu,
    problem: str | None,
    params: Params,
    entry: str | None,
    inputs: str | None,
    lines: bool,
) -> CompilationResult:
    try:
        if entry or inputs is not None or not defines(file, source, "custom_kernel"):
            if problem:
                raise SetupError(f"--problem needs a custom_kernel, and no --entry or --inputs: {file}")
            return _file(file, source, gpu, params, entry, inputs)
        return _submission(file, source, gpu, problem, params, lines)
    except KernelFailure as failure:
        tried = tuple(line for line in failure.evidence if line)
        return CompilationResult(ok=False, verdict=failure.verdict, reason=failure.reason, tried=tried)


def _submission(
    file: Path, source: str, gpu: Gpu, problem: str | None, params: Params, lines: bool
) -> CompilationResult:
    name, refusals = (problem or _named(file, source)), list[str]()
    if name is None:
        name, refusals = _fitting(source, gpu, params)
    if name is None:
        return _without_problem(source, gpu, params, refusals)
    fitting = find(name)
    cases = fitting.profile("full" if params.profile == "auto" else params.profile).benchmarks
    counts = inspect.counted_here(gpu)
    inspection = inspect.inspect(source, fitting, cases, gpu, params.harness.inspect_timeout_s, counts)
    return _result(inspection, fitting, cases, params, lines)


def _file(
    file: Path, source: str, gpu: Gpu, params: Params, named: str | None, inputs: str | None
) -> CompilationResult:
    """Compile a file as it lies in its package."""
    given = entries.headers(inputs) if inputs is not None else None
    entry = entries.entry(source, file.name, named, given is not None or entries.own_inputs(source))
    place = file_inspection.around(file, source)
    inspection = file_inspection.seen_file(source, place, gpu, params.harness.inspect_timeout_s, entry, given)
    found = _result(inspection, None, (), params)
    if found.launches:
        return _started(found.model_copy(update={"ok": True}), inspection)
    reason = found.reason or f"nothing of {file.name} compiles"
    helpers = (f"{place} is no kernel" for place in entries.functions(source))
    return CompilationResult(ok=False, reason=reason, tried=found.missed or (NO_KERNEL, *helpers))


def _without_problem(source: str, gpu: Gpu, params: Params, refusals: Sequence[str]) -> CompilationResult:
    """Compile the Triton kernels of a submission that fits no problem, for invented arguments."""
    inspection = inspect.seen(source, {}, gpu, params.harness.inspect_timeout_s, alone=True)
    if not inspection.report.objects:
        reason = "no problem's inputs fit this submission, and none of its Triton kernels compiles alone: use --problem"
        return CompilationResult(ok=False, reason=reason, tried=(*refusals, *inspection.report.missed))
    found = _started(_result(inspection, None, (), params), inspection)
    return found.model_copy(update={"tried": tuple(refusals)})


def _started(found: CompilationResult, inspection: Inspection) -> CompilationResult:
    """Return a result that is not ok if the GPU starts none of the kernels that were compiled alone."""
    reasons = [refused_launch(code) for code in inspection.report.objects]
    refused = bool(reasons) and all(reasons)
    return found.model_copy(update={"ok": False, "reason": reasons[0][0]}) if refused else found


def _named(file: Path, source: str) -> str | None:
    """Return the problem that a file names in its leaderboard header, or whose folder it lies in."""
    board, folders = leaderboard(source), [place.as_posix() for place in file.resolve().parents]
    by_board = [name for name, p in _usable(names())[0].items() if p.leaderboard.name == board] if board else []
    by_place = [name for place in folders for name in names() if place.endswith(f"/{name}")]
    return next(iter((*by_board, *by_place)), None)


def _usable(wanted: Iterable[str]) -> tuple[dict[str, Problem], list[str]]:
    """Return problems by name, and of those that cannot be used on this machine the reasons."""
    found, reasons = dict[str, Problem](), list[str]()
    for name in wanted:
        try:
            found[name] = find(name)
        except SetupError as error:
            reasons.append(f"{name}: {error}")
    return found, reasons


def _fitting(source: str, gpu: Gpu, params: Params) -> tuple[str | None, list[str]]:
    """Return the first problem on whose inputs the submission launches a kernel, and why the others do not fit."""
    problems, reasons = _usable(sorted(names(), key=lambda name: (name != params.problem, name)))
    inputs = {name: case_shapes.described(p, p.profile("full").benchmarks[0]) for name, p in problems.items()}
    answer = inspect.seen(source, inputs, gpu, params.harness.inspect_timeout_s).answer
    launched = [launch.case for launch in answer.launches if launch.case in problems]
    if answer.inline or answer.failure:  # launches of extensions are not captured; build errors do not depend on inputs
        launched += [name for name in problems if not any(m.startswith(f"{name}: ") for m in answer.missed)]
    return next(iter(launched), None), [*answer.missed, *reasons]


def _result(
    inspection: Inspection, problem: Problem | None, cases: Sequence[Case], params: Params, lines: bool = False
) -> CompilationResult:
    report = preview.compiled(inspection, params.harness.build_timeout_s)
    counted = inspect.counted_here(inspection.gpu)
    predictions = inspection.predictions(problem, cases) if problem and counted else ()
    whole = report.ok and counted and not inspection.answer.inline
    unpredicted = inspection.unpredicted(problem, cases) if problem and whole else ()
    if lines and problem and cases and report.ok and counted:
        found = hot_lines.Executed(problem, inspection.gpu, params.harness, inspection.source)
        report, predictions = found.added(cases, report, predictions)
    return CompilationResult(
        problem=problem.name if problem else None,
        arch=inspection.gpu.arch,
        machine=inspection.gpu.name,
        ok=report.ok,
        reason="" if report.ok else report.log,
        compiler=report.compiler,
        seconds=report.seconds,
        findings=report.findings,
        missed=(*report.missed, *unpredicted),
        launches=launched(report),
        predicted=results.predicted_cases(predictions, problem.published if problem else ()),
        predicted_by=results.model_behind(predictions),
    )
