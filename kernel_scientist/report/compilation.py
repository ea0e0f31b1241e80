"""Compile a submission for a GPU that need not be present: the JSON of `kernel-scientist compile`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_scientist.compile.source import leaderboard
from kernel_scientist.gpu.capture import inspect, shapes
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.gpu.isa import assembly_store
from kernel_scientist.gpu.toolchains import load_inline
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems import find, names
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.evaluation import Prediction
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Params
from kernel_scientist.report import resources, summaries


def compiled(file: Path, source: str, gpu: Gpu, problem: str | None, params: Params) -> dict[str, Any]:
    """Return the report of a submission on a problem's cases; by default the problem whose inputs it accepts.

    Raises SetupError for an unknown problem, KernelFailure when the submission's process dies.
    """
    name = problem or _named(file, source)
    if name is None:
        name, refusals = _fitting(source, gpu, params)
        if name is None:
            return _without_problem(source, gpu, params, refusals)
    fitting = find(name)
    cases = fitting.profile("full" if params.profile == "auto" else params.profile).benchmarks
    inspection = inspect.inspect(source, fitting, cases, gpu, params.harness.inspect_timeout_s)
    return _report(inspection, fitting, cases, params)


def _without_problem(source: str, gpu: Gpu, params: Params, refusals: list[str]) -> dict[str, Any]:
    """Return the report of a submission that fits no problem: its Triton kernels, compiled for invented arguments."""
    inspection = inspect.seen(source, {}, gpu, params.harness.inspect_timeout_s, alone=True)
    if not inspection.report.objects:
        reason = "no problem's inputs fit this submission, and none of its Triton kernels compiles alone: use --problem"
        return {"ok": False, "reason": reason, "tried": [*refusals, *inspection.report.missed]}
    return {**_report(inspection, None, (), params), "tried": refusals}


def _named(file: Path, source: str) -> str | None:
    """Return the problem that a file names in its leaderboard header, or whose folder it lies in."""
    board = leaderboard(source)
    by_board = [name for name in names() if board and find(name).leaderboard.name == board]
    by_place = [part for part in reversed(file.resolve().parts[:-1]) if part in names()]
    return next(iter((*by_board, *by_place)), None)


def _fitting(source: str, gpu: Gpu, params: Params) -> tuple[str | None, list[str]]:
    """Return the first problem on whose inputs the submission launches a kernel, and why the others do not fit."""
    order = sorted(names(), key=lambda name: (name != params.problem, name))
    problems = {name: find(name) for name in order}
    inputs = {name: shapes.described(p, p.profile("full").benchmarks[0]) for name, p in problems.items()}
    answer = inspect.seen(source, inputs, gpu, params.harness.inspect_timeout_s).answer
    launched = [launch.case for launch in answer.launches]
    if answer.inline or answer.failure:  # launches of extensions are not captured; build errors do not depend on inputs
        launched += [name for name in order if not any(m.startswith(f"{name}: ") for m in answer.missed)]
    return next(iter(launched), None), list(answer.missed)


def _report(inspection: Inspection, problem: Problem | None, cases: Sequence[Case], params: Params) -> dict[str, Any]:
    report = load_inline.compiled(inspection, params.harness.build_timeout_s)
    predictions = inspection.predictions(problem, cases) if problem else ()
    return {
        "problem": problem.name if problem else None,
        "arch": inspection.gpu.arch,
        "machine": inspection.gpu.name,
        "ok": report.ok,
        "reason": "" if report.ok else report.log,
        "compiler": report.compiler,
        "launches": resources.listed(report),
        "predicted": [_prediction(p) for p in predictions],
        "predicted_by": summaries.provenance(predictions),
        "findings": list(report.findings),
        "missed": list(report.missed),
        "seconds": report.seconds,
    }


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return prediction.model_dump(exclude={"machine", "calibrated"})


def write_assembly(report: dict[str, Any], folder: Path) -> list[str]:
    """Write each code object's assembly into a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    for launch in report["launches"]:
        text = assembly_store.get(launch["digest"])
        if text is not None and launch["digest"] not in files:
            file = folder / f"{launch['kernel']}-{launch['digest'][:8]}.s"
            file.write_text(text)
            files[launch["digest"]] = str(file)
    return list(files.values())
