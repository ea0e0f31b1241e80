"""Reads records that older versions wrote: returns their JSON in today's form.

The last version with the old form is commit 5fcf22c. Records in today's form pass through unchanged.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

METRICS = {"spent_s": "elapsed_s", "llm.broken_off": "llm.truncated"}
"""Metrics of a campaign's run: old and new names."""


BARS = "bars.json"
"""Artifact of a campaign's run: bars, which are part of its validation today."""
ARTIFACTS = {"llm_calls.json": "asks.json"}
"""Artifacts of a kernel's run: new and old names."""


def artifact(folder: Path, name: str) -> Path:
    """Return the file of an artifact, under its new or its old name; it need not exist."""
    path = folder / name
    return path if path.exists() else folder / ARTIFACTS.get(name, name)


def metrics(values: Mapping[str, float]) -> dict[str, float]:
    """Return a campaign's metrics under today's names."""
    return {METRICS.get(name, name): value for name, value in values.items()}


def evaluation(text: str) -> dict[str, Any]:
    """Return an evaluation's JSON in today's form."""
    values: dict[str, Any] = json.loads(text)
    if "held" in values:
        values["skipped"] = values.pop("held")
    if values["verdict"] == "ok" and (values.get("skipped") or values.get("coverage") == "none"):
        values["verdict"] = "compiled"  # it was not executed
    values["clocks"] = [c for c in values.get("clocks", []) if "worker_us" in c]  # diagnostics with other meanings
    values["speedups"] = [_speedup(s) for s in values.get("speedups", [])]
    return values


def _speedup(values: dict[str, Any]) -> dict[str, Any]:
    """Return a speedup in today's form, with the same decision.

    Old ratios are of times regularised by the harness overhead, and the other source's times were not recorded. So the
    speedup gets no `cases`. `seen` was the interval of the ratio of host wall times; it had to be above 1 as well.
    """
    if "looks" not in values:
        return values
    low, high = values["interval"]
    host_low = (values.get("seen") or [low])[0]
    interval = [min(low, 1.0) if host_low <= 1 else low, high]
    return {
        **{key: values[key] for key in ("against", "ratio", "margin", "slower_cases") if key in values},
        "interval": interval,
        "stages": values["looks"],
    }


def lessons(text: str) -> dict[str, Any]:
    """Return a campaign's findings in today's form."""
    values: dict[str, Any] = json.loads(text)
    if "asks" in values:
        values["llm_calls"] = values.pop("asks")
    for finding in values.get("findings", []):
        if "struck" in finding:
            finding["retracted"] = finding.pop("struck")
    return values
