"""The report of `kernel-scientist compile`, and of a GPU kernel in `evaluate`, as lines of text."""

from collections.abc import Iterator, Sequence
from typing import Any

from kernel_scientist.gpu.isa import text
from kernel_scientist.profile import text as counter_text
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Launch
from kernel_scientist.records.gpu import Counters

SHOWN = 4
"""Most grids listed per code object."""


def lines(compiled: dict[str, Any]) -> Iterator[str]:
    """Yield the report of a compiled submission."""
    if not compiled["ok"]:
        yield f"refused: {compiled['reason']}"
        yield from (f"  tried {line}" for line in compiled.get("tried", ()))
        if "launches" not in compiled:
            return
    what = f"{compiled['problem'] or 'no problem'} on {compiled['machine']} ({compiled['arch']})"
    yield f"{what}, {compiled['compiler']}, {compiled['seconds']:g} s"
    for launches in _by_code(compiled["launches"]):
        yield ""
        yield from _launched(launches)
    yield from _listed("findings", compiled["findings"])
    yield from _listed("not captured", _grouped(compiled["missed"]))
    if compiled["predicted"]:
        yield f"\npredicted ({compiled['predicted_by']}):"
        yield from _predictions(compiled["predicted"])


def _listed(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n{title}:"
        yield from (f"  {line}" for line in lines)


def _grouped(missed: list[str]) -> list[str]:
    """Merge lines (`case: reason`) with the same reason."""
    cases: dict[str, list[str]] = {}
    for line in missed:
        case, _, reason = line.partition(": ")
        cases.setdefault(reason, []).append(case)
    return [f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {r}" for r, names in cases.items()]


def evaluation(summary: dict[str, Any]) -> Iterator[str]:
    """Yield a GPU kernel's code and predictions from the JSON of `evaluate` or `validate`."""
    report, predicted = summary["compile"], summary["predicted"] or {}
    yield from lines(
        {
            "problem": summary["problem"],
            "ok": True,
            "arch": summary["environment"].get("arch", ""),
            "machine": summary["environment"].get("machine", summary["target"]),
            **{key: report[key] for key in ("compiler", "seconds", "findings", "missed")},
            "launches": listed(CompileReport.model_validate(report)),
            "predicted": predicted.get("cases", []),
            "predicted_by": predicted.get("by", ""),
        }
    )


def _by_code(launches: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group launches with the same code object and the same constants."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for launch in launches:
        groups.setdefault(f"{launch['digest']} {launch.get('constants')}", []).append(launch)
    return list(groups.values())


def _launched(launches: list[dict[str, Any]]) -> Iterator[str]:
    first = launches[0]
    tuned = f", chosen among {first['autotuned']} configurations" if first.get("autotuned") else ""
    yield f"{first['kernel']}, {first['num_warps']} warps{tuned}"
    for launch in launches[:SHOWN]:
        cases = launch["cases"]
        more = f" and {len(cases) - 2} more" if len(cases) > 2 else ""
        grid = "x".join(map(str, launch["grid"])) if launch["grid"] else "not launched"
        yield f"  grid       {grid:14} {', '.join(cases[:2])}{more}"
    if len(launches) > SHOWN:
        yield f"             and {len(launches) - SHOWN} more grids"
    if first.get("constants"):
        yield f"  constants  {', '.join(f'{k} {v}' for k, v in first['constants'].items())}"
    code = CodeObject.model_validate({k: v for k, v in first.items() if k in CodeObject.model_fields} | {"arch": ""})
    yield from (f"  {line}" for line in text.lines(code))


def _predictions(predictions: list[dict[str, Any]]) -> Iterator[str]:
    yield f"  {'case':26} {'us':>10} {'floor us':>10} {'roofline':>9}  limited by"
    for p in predictions:
        fraction = 100 * p["floor_us"] / p["time_us"]
        parts = sorted(p["breakdown_us"].items(), key=lambda item: -item[1])[:4]
        split = ", ".join(f"{name} {us:.3g}" for name, us in parts)
        figures = f"{p['time_us']:10.2f} {p['floor_us']:10.2f} {fraction:8.1f}%"
        yield f"  {p['case']:26} {figures}  {p['limited_by']} ({split})"
    worst = min(predictions, key=lambda p: p["floor_us"] / p["time_us"])
    yield f"  furthest from its floor, {worst['case']}:"
    yield from (f"    {word}" for word in worst["words"])


COUNTERS_SHOWN = 30
"""Most lines of single kernels and cases."""


def counter_lines(counters: Sequence[Counters]) -> Iterator[str]:
    """Yield hardware counters per kernel and case, and in total; nothing if the kernel was not profiled."""
    if not counters:
        return
    cases = len({c.case for c in counters})
    yield f"\ncounters by {counters[0].tool}, one call with cold caches on each of {cases} cases; no times:"
    for row in counters[:COUNTERS_SHOWN]:
        times = f" x {row.dispatches}" if row.dispatches > 1 else ""
        yield f"  {row.case}, {row.kernel}{times}: {counter_text.said(row.figures)}"
    if len(counters) > COUNTERS_SHOWN:
        yield f"  and {len(counters) - COUNTERS_SHOWN} more"
    yield f"  total: {counter_text.total(counters)}"


def listed(report: CompileReport) -> list[dict[str, Any]]:
    """Return the different launches of a submission, each with its cases; without launches, its code objects."""
    if not report.launches:
        return [{"cases": [], "kernel": code.kernel, "grid": None, **_code(code)} for code in report.objects]
    cases: dict[tuple[Any, ...], list[str]] = {}
    first: dict[tuple[Any, ...], Launch] = {}
    for launch in report.launches:
        key = (launch.kernel, launch.code, launch.grid)
        cases.setdefault(key, []).append(launch.case)
        first.setdefault(key, launch)
    return [{"cases": list(dict.fromkeys(cases[k])), **_launch(first[k], report)} for k in cases]


def _launch(launch: Launch, report: CompileReport) -> dict[str, Any]:
    own = {"kernel": launch.kernel, "grid": list(launch.grid), "num_stages": launch.num_stages}
    own |= {"constants": launch.constants, "autotuned": launch.autotuned}
    return {**own, **_code(report.objects[launch.code])}


def _code(code: CodeObject) -> dict[str, Any]:
    names = ("num_warps", "vgpr", "agpr", "sgpr", "spills", "lds_bytes", "scratch_bytes", "occupancy", "limited_by")
    rest = ("mfma", "accesses", "waits", "barriers", "code_bytes", "digest")
    return {name: getattr(code, name) for name in (*names, *rest)}
