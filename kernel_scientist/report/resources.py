"""The report of `kernel-scientist compile` as people read it."""

from collections.abc import Iterator, Sequence
from typing import Any

from kernel_scientist.gpu.isa import text
from kernel_scientist.profile import text as counter_text
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Launch
from kernel_scientist.records.gpu import Counters

SHOWN = 4
"""Grids of one code object that are listed."""


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the report line by line."""
    if not found["ok"]:
        yield f"refused: {found['reason']}"
        yield from (f"  tried {line}" for line in found.get("tried", ()))
        if "launches" not in found:
            return
    what = f"{found['problem'] or 'no problem'} on {found['machine']} ({found['arch']})"
    yield f"{what}, {found['compiler']}, {found['seconds']:g} s"
    for launches in _by_code(found["launches"]):
        yield ""
        yield from _launched(launches)
    yield from _listed("findings", found["findings"])
    yield from _listed("not seen", _grouped(found["missed"]))
    if found["predicted"]:
        yield f"\npredicted ({found['predicted_by']}):"
        yield from _predictions(found["predicted"])


def _listed(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n{title}:"
        yield from (f"  {line}" for line in lines)


def _grouped(missed: list[str]) -> list[str]:
    """Say once what is the same for several cases."""
    cases: dict[str, list[str]] = {}
    for line in missed:
        case, _, words = line.partition(": ")
        cases.setdefault(words, []).append(case)
    return [f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {w}" for w, names in cases.items()]


def evaluation(found: dict[str, Any]) -> Iterator[str]:
    """Yield what `evaluate` and `validate` tell of a GPU kernel, in place of its raw records."""
    report, predicted = found["compile"], found["predicted"] or {}
    yield from lines(
        {
            "problem": found["problem"],
            "ok": True,
            "arch": found["environment"].get("arch", ""),
            "machine": found["environment"].get("machine", found["target"]),
            **{key: report[key] for key in ("compiler", "seconds", "findings", "missed")},
            "launches": listed(CompileReport.model_validate(report)),
            "predicted": predicted.get("cases", []),
            "predicted_by": predicted.get("by", ""),
        }
    )


def _by_code(launches: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group launches of the same code with the same constants."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for launch in launches:
        groups.setdefault(f"{launch['digest']} {launch.get('constants')}", []).append(launch)
    return list(groups.values())


def _launched(launches: list[dict[str, Any]]) -> Iterator[str]:
    it = launches[0]
    tuned = f", chosen among {it['autotuned']} configurations" if it.get("autotuned") else ""
    yield f"{it['kernel']}, {it['num_warps']} warps{tuned}"
    for launch in launches[:SHOWN]:
        cases = launch["cases"]
        more = f" and {len(cases) - 2} more" if len(cases) > 2 else ""
        grid = "x".join(map(str, launch["grid"])) if launch["grid"] else "not launched"
        yield f"  grid       {grid:14} {', '.join(cases[:2])}{more}"
    if len(launches) > SHOWN:
        yield f"             and {len(launches) - SHOWN} more grids"
    if it.get("constants"):
        yield f"  constants  {', '.join(f'{k} {v}' for k, v in it['constants'].items())}"
    code = CodeObject.model_validate({k: v for k, v in it.items() if k in CodeObject.model_fields} | {"arch": ""})
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
"""Lines of single kernels and cases."""


def counter_lines(counters: Sequence[Counters]) -> Iterator[str]:
    """Yield what was counted line by line; nothing where nothing was."""
    if not counters:
        return
    cases = len({c.case for c in counters})
    yield f"\ncounted by {counters[0].tool}, one call with cold caches on each of {cases} cases; no times:"
    for it in counters[:COUNTERS_SHOWN]:
        times = f" x {it.dispatches}" if it.dispatches > 1 else ""
        yield f"  {it.case}, {it.kernel}{times}: {counter_text.said(it.figures)}"
    if len(counters) > COUNTERS_SHOWN:
        yield f"  and {len(counters) - COUNTERS_SHOWN} more"
    yield f"  together: {counter_text.total(counters)}"


def listed(report: CompileReport) -> list[dict[str, Any]]:
    """Return what is launched, each different launch once, with the cases it is made in."""
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
