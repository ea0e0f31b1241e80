"""The report of `kernel-scientist compile` as people read it."""

from collections.abc import Iterator
from typing import Any

from kernel_scientist.inspection import wording
from kernel_scientist.records import CodeObject, CompileReport
from kernel_scientist.report import launches as rows

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
            "launches": rows.listed(CompileReport.model_validate(report)),
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
    yield from (f"  {line}" for line in wording.lines(code))


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
