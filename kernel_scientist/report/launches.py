"""A compile report's launches as rows: each different one once, with the cases it is made in and what it takes."""

from typing import Any

from kernel_scientist.records import CodeObject, CompileReport, Launch


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
