"""How the result of `compile`, a GPU kernel's code and its counters are shown."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from kernel_scientist.gpu.isa import assembly
from kernel_scientist.hardware import counter_figures, occupancy
from kernel_scientist.records import source_line
from kernel_scientist.records.compilation import CompilationResult, LaunchedCode, launched
from kernel_scientist.records.evaluation import CodeObject, CompileReport
from kernel_scientist.records.factors import number
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.results import EvaluationResult, PredictedCase
from kernel_scientist.report.output import Table, text, write

SHOWN = 4
"""Most grids listed per code object."""
COUNTERS_SHOWN = 30
"""Most lines of single kernels and cases."""
Item = TypeVar("Item")


def with_assembly(result: CompilationResult, folder: Path) -> CompilationResult:
    """Write each code object's assembly into a folder; return the result with the files."""
    names = {launch.digest: f"{launch.kernel}-{launch.digest[:8]}.s" for launch in result.launches}
    texts = {name: text for digest, name in names.items() if (text := assembly.get(digest)) is not None}
    for name, text in texts.items():
        write(folder / name, text)
    return result.model_copy(update={"assembly": tuple(str(folder / name) for name in texts)})


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
        CompilationResult(
            ok=True,
            problem=result.problem,
            machine=environment.get("machine", result.target),
            arch=environment.get("arch", ""),
            compiler=report.compiler,
            seconds=report.seconds,
            findings=report.findings,
            missed=report.missed,
            launches=launched(report),
            predicted=predicted.cases if predicted else (),
            predicted_by=predicted.by if predicted else "",
        )
    )


def lines(found: CompilationResult) -> Iterator[str | Table]:
    """Yield the result of `compile`."""
    if not found.ok:
        yield f"refused: {found.reason}"
        yield from (f"  tried {line}" for line in found.tried)
    if not found.compiler:
        return
    problem = f"{found.problem} on " if found.problem else ""
    yield f"{problem}{found.machine} ({found.arch}), {found.compiler}, {found.seconds:g} s"
    for same in _groups(found.launches, lambda launch: (launch.kernel, launch.digest, str(launch.constants))):
        yield ""
        yield from _launched(same)
    yield from _titled("findings", found.findings)
    yield from _titled("not captured", _grouped(found.missed))
    if found.predicted:
        yield f"\npredicted ({found.predicted_by}):"
        yield from _predictions(found.predicted)


def _titled(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"\n{title}:"
        yield from (f"  {line}" for line in lines)


def _grouped(missed: Sequence[str]) -> list[str]:
    """Merge lines (`case: reason`) with the same reason."""
    groups = _groups((line.partition(": ") for line in missed), lambda parts: parts[2])
    return [f"{_some([case for case, _, _ in same], 1)}: {same[0][2]}" for same in groups]


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _launched(launches: Sequence[LaunchedCode]) -> Iterator[str]:
    first = launches[0]
    tuned = f", chosen among {first.autotuned} configurations" if first.autotuned else ""
    dialect = f" ({first.dialect})" if first.dialect == "Gluon" else ""
    yield f"{first.kernel}{dialect}, {first.num_warps} warps{tuned}"
    for launch in launches[:SHOWN]:
        grid = "x".join(map(str, launch.grid)) if launch.grid else "not launched"
        yield f"  grid       {grid:14} {_some(launch.cases, 2)}".rstrip()
    if len(launches) > SHOWN:
        yield f"             and {len(launches) - SHOWN} more grids"
    if first.constants:
        yield f"  constants  {text(first.constants)}"
    yield from (f"  {line}" for line in _described(first))


def _described(code: CodeObject) -> list[str]:
    """Return a code object as text, one line per subject (registers, occupancy, ...), each beginning with its name."""
    reserved = f" (of {code.registers} reserved)" if code.registers > code.used else ""
    limit = occupancy.limit_words(code.arch, *code.needs) if code.limited_by else "nothing"
    return [
        f"registers  {code.vgpr} vector + {code.agpr} accumulation{reserved}, {code.sgpr} scalar; "
        f"{code.spills} spilled, {code.scratch_bytes} B scratch per lane",
        f"occupancy  {code.occupancy} waves per SIMD ({4 * code.occupancy} per compute unit), "
        f"limited by {limit}; {code.lds_bytes} B LDS per workgroup",
        f"matrix     {_counts(code.mfma) or 'no matrix instruction'}",
        f"memory     {_counts(code.accesses) or 'none'} (bits per lane)",
        f"code       {code.code_bytes} B, {code.waits} waits, {code.barriers} barriers",
    ]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} x {name}" for name, n in sorted(counts.items(), key=lambda p: -p[1]))


def _predictions(predictions: Sequence[PredictedCase]) -> Iterator[str | Table]:
    shares = [one.floor_us / one.time_us for one in predictions]
    columns = {"case": "case", "time_us": "us", "floor_us": "floor us", "share": "roofline", "limit": "limited by"}
    if sources := list(dict.fromkeys(one.published for one in predictions if one.published)):
        columns |= {"published_us": "best published kernel, us"}
    rows = [
        dict(p) | {"share": f"{100 * s:.1f}%", "limit": _limit(p)} for p, s in zip(predictions, shares, strict=True)
    ]
    yield Table(columns, rows)
    yield from (f"published: {source}" for source in sources)
    worst = predictions[shares.index(min(shares))]
    yield from (f"furthest from its floor, {worst.case}:", *(f"  {word}" for word in worst.words))
    if shown := next((one for one in (worst, *predictions) if one.lines), None):
        yield f"\n{shown.case}: {source_line.meaning(shown.lines)}:"
        yield from (f"  {row}" for row in source_line.table(shown.lines))
        yield f"  {source_line.CAUSES}"


def _limit(prediction: PredictedCase) -> str:
    largest = sorted(prediction.breakdown_us.items(), key=lambda item: -item[1])[:4]
    return f"{prediction.limited_by} ({', '.join(f'{resource} {number(us, 3)}' for resource, us in largest)})"


def counter_lines(counters: Sequence[Counters]) -> Iterator[str]:
    """Yield hardware counters per kernel and case, and in total; nothing if the kernel was not profiled."""
    if not counters:
        return
    cases = len({c.case for c in counters})
    yield f"\ncounters by {counters[0].tool}, one call with cold caches on each of {cases} cases; no times:"
    for row in counters[:COUNTERS_SHOWN]:
        times = f" x {row.dispatches}" if row.dispatches > 1 else ""
        yield f"  {row.case}, {row.kernel}{times}: {counter_figures.describe(row.figures)}"
    if len(counters) > COUNTERS_SHOWN:
        yield f"  and {len(counters) - COUNTERS_SHOWN} more"
    yield f"  total: {counter_figures.describe_total(counters)}"
