"""The page of a campaign, and the table that a run ends with."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from rich.table import Table

from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Trial, geomean
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.params import Params
from kernel_scientist.report import recorded, summaries
from kernel_scientist.report.terminal import terminal

VALIDATION = "validate.json"

MOST_FINDINGS = 40


def write(params: Params, campaign: str | None, out: Path) -> None:
    """Write the page of a campaign and print its table. Raises SetupError when there is no such campaign."""
    from jinja2 import Environment, PackageLoader

    found = recorded.read(params, campaign)
    run, population = found.run, found.population
    best = population.best()
    validation = _validation(best)
    bars = _bars(validation, best) if validation else []
    lessons, promises = found.notebook.lessons(run), prediction_accuracy.predictions(population)
    template = Environment(loader=PackageLoader("kernel_scientist.report", "."), autoescape=True).get_template(
        "page.html"
    )
    page = template.render(
        campaign=run.campaign,
        summary=f"{len(population)} kernels tried; "
        + ", ".join(f"{n} {v}" for v, n in population.verdicts().items() if n),
        environment=_environment(best),
        bars=bars,
        verdict=validation["why"] if validation else "",
        counted=_counted(validation) if validation else "",
        plot=_plot(population),
        kernels=[_kernel(t, population, best) for t in population],
        lineage=summaries.lineage(population, best.kernel) if best else [],
        findings=[f"{f.text} ({', '.join(f.kernels[:6])})" for f in lessons.shown(MOST_FINDINGS)],
        calibration=prediction_accuracy.table(promises),
        promises=_promises(promises),
        source=best.kernel.source if best else "",
        by_model=any(t.evaluation.by_model for t in population),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page)
    _print(bars, validation, found.problem, out)


def _validation(best: Trial | None) -> dict[str, Any] | None:
    """Return the validation of this very champion, if the file holds one."""
    path = summaries.reports_folder() / VALIDATION
    if best is None or not path.is_file():
        return None
    found = cast(dict[str, Any], json.loads(path.read_text()))
    return found if found.get("digest") == best.kernel.digest and found.get("speedups") else None


def _bars(validation: dict[str, Any], best: Trial | None) -> list[dict[str, str]]:
    """Return the table's rows: reference, seeds from slow to fast, champion."""
    assert best is not None
    public = [c["case"] for c in validation["cases"]]
    hidden = {s["against"]: s for s in validation["held_out"]["speedups"]}
    rows: list[tuple[float, dict[str, str]]] = []
    for speedup in validation["speedups"]:
        who = speedup["against"]
        us = geomean([validation["contestants_us"][who][case] for case in public])
        row = {
            "role": "reference" if who == REFERENCE else "seed",
            "kernel": "PyTorch" if who == REFERENCE else who,
            "us": f"{us:.1f}",
            "ratio": f"{speedup['ratio']:.2f}x",
            "interval": "[{:.2f}, {:.2f}]".format(*speedup["interval"]) if speedup["interval"] else "",
            "held_out": f"{hidden[who]['ratio']:.2f}x",
        }
        rows.append((us, row))
    seeds = sorted((r for r in rows if r[1]["role"] == "seed"), key=lambda r: -r[0])
    if seeds:
        seeds[-1][1]["role"] = "best seed"
    ordered = [r for _, r in rows if r["role"] == "reference"] + [r for _, r in seeds]
    champion = {"role": "champion", "kernel": best.kernel.name, "us": f"{validation['geomean_us']:.1f}"}
    return [*ordered, {**champion, "ratio": "", "interval": "", "held_out": ""}]


def _counted(validation: dict[str, Any]) -> str:
    """Return what ratios count besides the times that stand beside them, or nothing."""
    beside = [us for speedup in validation["speedups"] for us in speedup.get("beside_us", {}).values()]
    if not beside:
        return ""
    words = f"Ratios count up to {max(beside):.0f} us that pass beside each call (docs/decisions/0009)"
    return f"{words}: by the times alone they would be farther from 1."


def _kernel(trial: Trial, population: Population, best: Trial | None) -> dict[str, str]:
    kernel, evaluation = trial.kernel, trial.evaluation
    uplift = population.uplift(trial)
    low, high = kernel.experiment.uplift if kernel.experiment else (0.0, 0.0)
    us = evaluation.predicted_us if evaluation.by_model else evaluation.geomean_us
    failed = "failed" if evaluation.verdict.value != "ok" else ""
    return {
        "style": "champion" if best is trial else failed,
        "name": kernel.name,
        "base": kernel.base or "",
        "experiment": kernel.experiment.title if kernel.experiment else kernel.report,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason[:400],
        "us": f"{us:.1f}" if us else "",
        "speedup": _speed(score(trial), evaluation.by_model) if score(trial) else "",
        "predicted": f"{low:+.0f} to {high:+.0f}" if kernel.experiment else "",
        "uplift": f"{uplift:+.1f}" if uplift is not None and score(trial) else "",
    }


def _speed(value: float, by_model: bool) -> str:
    """Return a score in words: over the reference where it was measured, of the roofline where a model says so."""
    return f"{100 * value:.3g} %" if by_model else f"{value:.2f}x"


def _plot(population: Population) -> dict[str, Any]:
    """Return dots and line in the picture's coordinates; the vertical axis is logarithmic."""
    scores = [score(t) for t in population if score(t) > 0]
    if not scores:
        return {"ticks": [], "line": "", "points": []}
    low = math.floor(math.log2(min(scores)))
    high = max(math.ceil(math.log2(max(scores))), low + 1)

    def x(index: int) -> float:
        return round(60 + 820 * index / max(1, len(population)), 1)

    def y(value: float) -> float:
        return round(260 - 240 * (math.log2(value) - low) / (high - low), 1)

    def said(value: float) -> str:
        return _speed(value, any(t.evaluation.by_model for t in population))

    points: list[dict[str, Any]] = []
    line: list[str] = []
    seen = Population()
    for index, trial in enumerate(population, start=1):
        seen = seen.add(trial)
        if score(trial) > 0:
            points.append({"x": x(index), "y": y(score(trial)), "title": f"{trial.kernel.name} {said(score(trial))}"})
        if best := seen.best():
            line.append(f"{x(index)},{y(score(best))}")
    ticks = [{"y": y(2.0**e), "label": said(2.0**e)} for e in range(low, high + 1)]
    return {"ticks": ticks, "line": " ".join(line), "points": points}


def _promises(found: Sequence[prediction_accuracy.Prediction]) -> dict[str, Any]:
    """Return measured uplift over promised in the picture's coordinates: percent of speed, from -100 to 200 at most."""
    timed = [p for p in found if p.measured is not None]
    low, high = -50.0, 50.0
    for p in timed:
        low, high = min(low, p.low, p.measured or 0.0), max(high, p.high, p.measured or 0.0)
    low, high = max(low, -100.0), min(high, 200.0)

    def x(value: float) -> float:
        return round(60 + 420 * (min(max(value, low), high) - low) / (high - low), 1)

    def y(value: float) -> float:
        return round(320 - 300 * (min(max(value, low), high) - low) / (high - low), 1)

    bars = [
        {
            "x1": x(p.low),
            "x2": x(p.high),
            "y": y(p.measured or 0.0),
            "held": p.held,
            "title": f"{p.kernel}: {p.low:+.0f} to {p.high:+.0f} % promised, {p.measured:+.1f} % measured",
        }
        for p in timed
    ]
    diagonal = {"x1": x(low), "y1": y(low), "x2": x(high), "y2": y(high)}
    ticks = [{"at": v, "x": x(v), "y": y(v)} for v in range(-100, 201, 50) if low <= v <= high]
    return {"bars": bars, "diagonal": diagonal, "ticks": ticks}


def _environment(best: Trial | None) -> str:
    facts = best.evaluation.environment if best else {}
    return ", ".join(f"{k} {v}" for k, v in facts.items())


def _print(bars: list[dict[str, str]], validation: dict[str, Any] | None, problem: str, out: Path) -> None:
    console = terminal()
    if validation:
        table = Table(title=f"{problem}: measured, confirmed in fresh processes", title_justify="left")
        for column in ("", "kernel", "geomean us", "champion is faster by", "interval", "on held-out cases"):
            table.add_column(column, justify="left" if column in ("", "kernel") else "right")
        for row in bars:
            style = "bold green" if row["role"] == "champion" else ""
            table.add_row(*(row[k] for k in ("role", "kernel", "us", "ratio", "interval", "held_out")), style=style)
        console.print(table)
        if counted := _counted(validation):
            console.print(counted, highlight=False)
        console.print(f"confirmed: {'yes' if validation['confirmed'] else 'no'}, {validation['why']}", highlight=False)
    root = environment.root()
    champion = summaries.champion_folder(problem) / "kernel.py"
    for name, path in (("champion", champion), ("report", out)):
        console.print(f"{name:10} {path.relative_to(root) if path.is_relative_to(root) else path}", highlight=False)
    console.print(
        "UIs        make ui   (Prefect at http://127.0.0.1:4200, MLflow at http://127.0.0.1:5000)", highlight=False
    )
