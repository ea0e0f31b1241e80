"""Compile a submission for a GPU that need not be present: `kernel-scientist compile`, as JSON and as text."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kernel_scientist.campaign import results
from kernel_scientist.compilers.source import defines, leaderboard, read_file
from kernel_scientist.evaluation import hot_lines
from kernel_scientist.gpu.capture import case_shapes, entries, file_inspection, inspect, preview
from kernel_scientist.gpu.capture.code_findings import refused_launch
from kernel_scientist.gpu.capture.inspect import Inspection
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems import find, names
from kernel_scientist.problems.problem import Problem
from kernel_scientist.profile import metrics
from kernel_scientist.records import own_name, source_line
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CodeObject, CompileReport
from kernel_scientist.records.factors import number
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import Case
from kernel_scientist.records.params import Params
from kernel_scientist.records.results import EvaluationResult
from kernel_scientist.records.source_line import SourceLine
from kernel_scientist.report.output import Table, text, write
from kernel_scientist.sandbox.failure import KernelFailure

SHOWN = 4
"""Most grids listed per code object."""
COUNTERS_SHOWN = 30
"""Most lines of single kernels and cases."""
NO_KERNEL = "it defines no Triton kernel: functions that return a value or that others call are none"
Item = TypeVar("Item")


def compiled(
    file: Path,
    gpu: Gpu,
    problem: str | None,
    params: Params,
    entry: str | None = None,
    inputs: str | None = None,
    lines: bool = True,
) -> dict[str, Any]:
    """Return the report of a submission on a problem's cases; by default the problem whose inputs it accepts.

    `entry` and `inputs`: the function to call and its arguments (`gpu.capture.files.entries`). A file with one of
    them, or without a `custom_kernel`, belongs to no problem. `lines`: whether one timed case is executed for the
    lines that take its time (`evaluate.hot_lines`), where the GPU is AMD's. Raises SetupError for an unknown problem,
    wrong inputs, or a file that is no kernel for a GPU.
    """
    source = read_file(file)
    if "from kernel_scientist import" in source:
        raise SetupError(f"{file} is a C++ kernel for the CPU: `kernel-scientist evaluate` compiles it")
    return own_name.told(_compiled(file, source, gpu, problem, params, entry, inputs, lines), file.name)


def _compiled(
    file: Path,
    source: str,
    gpu: Gpu,
    problem: str | None,
    params: Params,
    entry: str | None,
    inputs: str | None,
    lines: bool,
) -> dict[str, Any]:
    try:
        if entry or inputs is not None or not defines(file, source, "custom_kernel"):
            if problem:
                raise SetupError(f"--problem needs a custom_kernel, and no --entry or --inputs: {file}")
            return _file(file, source, gpu, params, entry, inputs)
        return _submission(file, source, gpu, problem, params, lines)
    except KernelFailure as failure:
        tried = [line for line in failure.evidence if line]
        return {"ok": False, "verdict": failure.verdict.value, "reason": failure.reason, "tried": tried}


def _submission(file: Path, source: str, gpu: Gpu, problem: str | None, params: Params, lines: bool) -> dict[str, Any]:
    name, refusals = (problem or _named(file, source)), list[str]()
    if name is None:
        name, refusals = _fitting(source, gpu, params)
    if name is None:
        return _without_problem(source, gpu, params, refusals)
    fitting = find(name)
    cases = fitting.profile("full" if params.profile == "auto" else params.profile).benchmarks
    counts = inspect.counted_here(gpu)
    inspection = inspect.inspect(source, fitting, cases, gpu, params.harness.inspect_timeout_s, counts)
    return _report(inspection, fitting, cases, params, lines)


def _file(file: Path, source: str, gpu: Gpu, params: Params, named: str | None, inputs: str | None) -> dict[str, Any]:
    """Return the report of a file as it lies in its package."""
    given = entries.headers(inputs) if inputs is not None else None
    entry = entries.entry(source, file.name, named, given is not None or entries.own_inputs(source))
    place = file_inspection.around(file, source)
    inspection = file_inspection.seen_file(source, place, gpu, params.harness.inspect_timeout_s, entry, given)
    found = _report(inspection, None, (), params)
    if found["launches"]:
        return {**found, "ok": True, **_refused(inspection)}
    reason = found["reason"] or f"nothing of {file.name} compiles"
    helpers = [f"{place} is no kernel" for place in entries.functions(source)]
    return {"ok": False, "reason": reason, "tried": found["missed"] or [NO_KERNEL, *helpers]}


def _without_problem(source: str, gpu: Gpu, params: Params, refusals: list[str]) -> dict[str, Any]:
    """Return the report of a submission that fits no problem: its Triton kernels, compiled for invented arguments."""
    inspection = inspect.seen(source, {}, gpu, params.harness.inspect_timeout_s, alone=True)
    if not inspection.report.objects:
        reason = "no problem's inputs fit this submission, and none of its Triton kernels compiles alone: use --problem"
        return {"ok": False, "reason": reason, "tried": [*refusals, *inspection.report.missed]}
    return {**_report(inspection, None, (), params), **_refused(inspection), "tried": refusals}


def _refused(inspection: Inspection) -> dict[str, Any]:
    """Return why the GPU starts none of the kernels that were compiled alone; empty if it starts one."""
    reasons = [refused_launch(code) for code in inspection.report.objects]
    return {"ok": False, "reason": reasons[0][0]} if reasons and all(reasons) else {}


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


def _report(
    inspection: Inspection, problem: Problem | None, cases: Sequence[Case], params: Params, lines: bool = False
) -> dict[str, Any]:
    report = preview.compiled(inspection, params.harness.build_timeout_s)
    counted = inspect.counted_here(inspection.gpu)
    predictions = inspection.predictions(problem, cases) if problem and counted else ()
    unpredicted = inspection.unpredicted(problem, cases) if problem and counted and not inspection.answer.inline else ()
    if lines and problem and cases and report.ok and counted:
        found = hot_lines.Executed(problem, inspection.gpu, params.harness, inspection.source)
        report, predictions = found.added(cases, report, predictions)
    return {
        "problem": problem.name if problem else None,
        "arch": inspection.gpu.arch,
        "machine": inspection.gpu.name,
        "reason": "" if report.ok else report.log,
        **report.model_dump(mode="json", include={"ok", "compiler", "findings", "seconds"}),
        "missed": [*report.missed, *unpredicted],
        "launches": listed(report),
        "predicted": [
            one.model_dump(mode="json")
            for one in results.predicted_cases(predictions, problem.published if problem else ())
        ],
        "predicted_by": results.model_behind(predictions),
    }


def write_assembly(report: dict[str, Any], folder: Path) -> list[str]:
    """Write each code object's assembly into a folder; return the files."""
    names = {launch["digest"]: f"{launch['kernel']}-{launch['digest'][:8]}.s" for launch in report["launches"]}
    texts = {name: text for digest, name in names.items() if (text := assembly.get(digest)) is not None}
    for name, text in texts.items():
        write(folder / name, text)
    return [str(folder / name) for name in texts]


def listed(report: CompileReport) -> list[dict[str, Any]]:
    """Return the different launches of a submission, each with its cases, then the kernels that were compiled alone."""
    objects = [code.model_dump(mode="json", exclude={"arch", "mix"}) for code in report.objects]
    launched = [
        {
            "cases": list(dict.fromkeys(launch.case for launch in same)),
            **objects[same[0].code],
            **same[0].model_dump(mode="json", exclude={"case", "code", "num_warps"}),
        }
        for same in _groups(report.launches, lambda launch: (launch.kernel, launch.code, launch.grid))
    ]
    names = {launch.kernel for launch in report.launches}
    return [*launched, *({"cases": [], **code, "grid": None} for code in objects if code["kernel"] not in names)]


def _groups(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Return the items with equal keys together, in the order of their first ones."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def evaluated(result: EvaluationResult, report: CompileReport) -> Iterator[str | Table]:
    """Yield a GPU kernel's code and predictions. `report`: the compile report of `result`."""
    environment, predicted = result.environment, result.predicted
    return lines(
        {
            **report.model_dump(mode="json"),
            "ok": True,
            "problem": result.problem,
            "machine": environment.get("machine", result.target),
            "arch": environment.get("arch", ""),
            "launches": listed(report),
            "predicted": [one.model_dump(mode="json") for one in predicted.cases] if predicted else [],
            "predicted_by": predicted.by if predicted else "",
        }
    )


def lines(compiled: dict[str, Any]) -> Iterator[str | Table]:
    """Yield the report of a compiled submission."""
    if not compiled["ok"]:
        yield f"refused: {compiled['reason']}"
        yield from (f"  tried {line}" for line in compiled.get("tried", ()))
        if "launches" not in compiled:
            return
    problem = f"{compiled['problem']} on " if compiled["problem"] else ""
    yield f"{problem}{compiled['machine']} ({compiled['arch']}), {compiled['compiler']}, {compiled['seconds']:g} s"
    for same in _groups(
        compiled["launches"], lambda launch: (launch["kernel"], launch["digest"], str(launch.get("constants")))
    ):
        yield ""
        yield from _launched(same)
    yield from _titled("findings", compiled["findings"])
    yield from _titled("not captured", _grouped(compiled["missed"]))
    if compiled["predicted"]:
        yield f"\npredicted ({compiled['predicted_by']}):"
        yield from _predictions(compiled["predicted"])


def _titled(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n{title}:"
        yield from (f"  {line}" for line in lines)


def _grouped(missed: list[str]) -> list[str]:
    """Merge lines (`case: reason`) with the same reason."""
    groups = _groups((line.partition(": ") for line in missed), lambda parts: parts[2])
    return [f"{_some([case for case, _, _ in same], 1)}: {same[0][2]}" for same in groups]


def _some(names: list[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _launched(launches: list[dict[str, Any]]) -> Iterator[str]:
    first = launches[0]
    tuned = f", chosen among {first['autotuned']} configurations" if first.get("autotuned") else ""
    dialect = f" ({first['dialect']})" if first.get("dialect") == "Gluon" else ""
    yield f"{first['kernel']}{dialect}, {first['num_warps']} warps{tuned}"
    for launch in launches[:SHOWN]:
        grid = "x".join(map(str, launch["grid"])) if launch["grid"] else "not launched"
        yield f"  grid       {grid:14} {_some(launch['cases'], 2)}".rstrip()
    if len(launches) > SHOWN:
        yield f"             and {len(launches) - SHOWN} more grids"
    if first.get("constants"):
        yield f"  constants  {text(first['constants'])}"
    code = CodeObject.model_validate({k: v for k, v in first.items() if k in CodeObject.model_fields} | {"arch": ""})
    yield from (f"  {line}" for line in _described(code))


def _described(code: CodeObject) -> list[str]:
    """Return a code object as text, one line per subject (registers, occupancy, ...), each beginning with its name."""
    reserved = f" (of {code.registers} reserved)" if code.registers > code.used else ""
    return [
        f"registers  {code.vgpr} vector + {code.agpr} accumulation{reserved}, {code.sgpr} scalar; "
        f"{code.spills} spilled, {code.scratch_bytes} B scratch per lane",
        f"occupancy  {code.occupancy} waves per SIMD ({4 * code.occupancy} per compute unit), "
        f"limited by {code.limited_by or 'nothing'}; {code.lds_bytes} B LDS per workgroup",
        f"matrix     {_counts(code.mfma) or 'no matrix instruction'}",
        f"memory     {_counts(code.accesses) or 'none'} (bits per lane)",
        f"code       {code.code_bytes} B, {code.waits} waits, {code.barriers} barriers",
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} x {name}" for name, n in sorted(counts.items(), key=lambda p: -p[1]))


def _predictions(predictions: list[dict[str, Any]]) -> Iterator[str | Table]:
    shares = [p["floor_us"] / p["time_us"] for p in predictions]
    columns = {"case": "case", "time_us": "us", "floor_us": "floor us", "share": "roofline", "limit": "limited by"}
    if sources := list(dict.fromkeys(p["published"] for p in predictions if p.get("published"))):
        columns |= {"published_us": "best published kernel, us"}
    yield Table(
        columns,
        [{**p, "share": f"{100 * s:.1f}%", "limit": _limit(p)} for p, s in zip(predictions, shares, strict=True)],
    )
    yield from (f"published: {source}" for source in sources)
    worst = predictions[shares.index(min(shares))]
    yield from (f"furthest from its floor, {worst['case']}:", *(f"  {word}" for word in worst["words"]))
    shown = worst if worst.get("lines") else next((p for p in predictions if p.get("lines")), worst)
    if known := [SourceLine.model_validate(line) for line in shown.get("lines", ())]:
        yield f"\n{shown['case']}: {source_line.meaning(known)}:"
        yield from (f"  {row}" for row in source_line.table(known))
        yield f"  {source_line.CAUSES}"


def _limit(prediction: dict[str, Any]) -> str:
    largest = sorted(prediction["breakdown_us"].items(), key=lambda item: -item[1])[:4]
    return f"{prediction['limited_by']} ({', '.join(f'{resource} {number(us, 3)}' for resource, us in largest)})"


def counter_lines(counters: Sequence[Counters]) -> Iterator[str]:
    """Yield hardware counters per kernel and case, and in total; nothing if the kernel was not profiled."""
    if not counters:
        return
    cases = len({c.case for c in counters})
    yield f"\ncounters by {counters[0].tool}, one call with cold caches on each of {cases} cases; no times:"
    for row in counters[:COUNTERS_SHOWN]:
        times = f" x {row.dispatches}" if row.dispatches > 1 else ""
        yield f"  {row.case}, {row.kernel}{times}: {metrics.describe(row.figures)}"
    if len(counters) > COUNTERS_SHOWN:
        yield f"  and {len(counters) - COUNTERS_SHOWN} more"
    yield f"  total: {metrics.describe_total(counters)}"
