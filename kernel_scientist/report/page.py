"""The HTML page of a campaign."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.params import Params
from kernel_scientist.report import champion, ranking, tables
from kernel_scientist.tracking.access import RecordedCampaign, read_campaign

MOST_FINDINGS = 40


def write(params: Params, campaign: str | None, out: Path) -> None:
    """Write the page of a campaign and print its tables. Raises SetupError when there is no such campaign."""
    recorded = read_campaign(params, campaign)
    validation = _validation(recorded.champion())
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(recorded, validation))
    tables.print_report(recorded, validation, out)


def render(recorded: RecordedCampaign, validation: dict[str, Any] | None) -> str:
    """Return the page's HTML."""
    from jinja2 import Environment, PackageLoader

    population, best = recorded.population, recorded.champion()
    lessons, predictions = recorded.store.lessons(recorded.run), prediction_accuracy.predictions(population)
    templates = Environment(loader=PackageLoader("kernel_scientist.report", "."), autoescape=True)
    return templates.get_template("page.html").render(
        campaign=recorded.run.campaign,
        summary=f"{len(population)} kernels tried; "
        + ", ".join(f"{n} {v}" for v, n in population.verdicts().items() if n),
        environment=_environment(best),
        confirmed=tables.confirmed_rows(validation, best.kernel.name) if validation and best else [],
        verdict=validation["why"] if validation else "",
        final=tables.final_rows(ranking.final_rows(population, recorded.final)),
        reason=ranking.reason(population, recorded.final),
        plot=_plot(population),
        kernels=[_kernel(t, population, best) for t in population],
        without_times=any(s.against == REFERENCE and not s.cases for t in population for s in t.evaluation.speedups),
        lineage=champion.lineage(population, best.kernel) if best else [],
        findings=[f"{f.text} ({', '.join(f.kernels[:6])})" for f in lessons.latest(MOST_FINDINGS)],
        accuracy=prediction_accuracy.table(predictions),
        uplifts=_uplift_plot(predictions),
        source=best.kernel.source if best else "",
        by_model=any(t.evaluation.by_model for t in population),
    )


def _validation(best: Trial | None) -> dict[str, Any] | None:
    """Return the JSON of `validate` if it is of this champion and of this version."""
    path = environment.root() / "reports" / "validate.json"
    if best is None or not path.is_file():
        return None
    validation = cast(dict[str, Any], json.loads(path.read_text()))
    speedups: list[dict[str, Any]] = validation.get("speedups") or []
    current = bool(speedups) and all(isinstance(s["cases"], list) for s in speedups)
    return validation if current and validation.get("digest") == best.kernel.digest else None


def _kernel(trial: Trial, population: Population, best: Trial | None) -> dict[str, str]:
    kernel, evaluation = trial.kernel, trial.evaluation
    uplift, times = population.uplift(trial), ranking.recorded(trial)
    low, high = kernel.experiment.uplift if kernel.experiment else (0.0, 0.0)
    us = evaluation.predicted_us if evaluation.by_model else times["geomean_us"]
    failed = "failed" if evaluation.verdict.value != "ok" else ""
    return {
        "style": "champion" if best is trial else failed,
        "name": kernel.name,
        "base": kernel.base or "",
        "experiment": kernel.experiment.title if kernel.experiment else kernel.report,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason[:400],
        "us": tables.microseconds(us),
        "reference_us": tables.microseconds(times["reference_us"]),
        "speedup": tables.speed(trial),
        "predicted": f"{low:+.0f} to {high:+.0f}" if kernel.experiment else "",
        "uplift": f"{uplift:+.1f}" if uplift is not None and score(trial) else "",
    }


def _plot(population: Population) -> dict[str, Any]:
    """Return dots and line in SVG coordinates; the vertical axis is logarithmic."""
    scores = [score(t) for t in population if score(t) > 0]
    if not scores:
        return {"ticks": [], "line": "", "points": []}
    low = math.floor(math.log2(min(scores)))
    high = max(math.ceil(math.log2(max(scores))), low + 1)
    by_model = any(t.evaluation.by_model for t in population)

    def x(index: int) -> float:
        return round(60 + 820 * index / max(1, len(population)), 1)

    def y(value: float) -> float:
        return round(260 - 240 * (math.log2(value) - low) / (high - low), 1)

    points: list[dict[str, Any]] = []
    line: list[str] = []
    so_far = Population()
    for index, trial in enumerate(population, start=1):
        so_far = so_far.add(trial)
        if score(trial) > 0:
            points.append({"x": x(index), "y": y(score(trial)), "title": f"{trial.kernel.name} {tables.speed(trial)}"})
        if incumbent := so_far.best():
            line.append(f"{x(index)},{y(score(incumbent))}")
    ticks = [{"y": y(2.0**e), "label": tables.score_text(2.0**e, by_model)} for e in range(low, high + 1)]
    return {"ticks": ticks, "line": " ".join(line), "points": points}


def _uplift_plot(predictions: Sequence[prediction_accuracy.UpliftPrediction]) -> dict[str, Any]:
    """Return measured over predicted uplift in SVG coordinates; axes in percent, within -100 and 200."""
    timed = [p for p in predictions if p.measured is not None]
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
            "within": p.within,
            "title": f"{p.kernel}: {p.low:+.0f} to {p.high:+.0f} % predicted, {p.measured:+.1f} % measured",
        }
        for p in timed
    ]
    diagonal = {"x1": x(low), "y1": y(low), "x2": x(high), "y2": y(high)}
    ticks = [{"at": v, "x": x(v), "y": y(v)} for v in range(-100, 201, 50) if low <= v <= high]
    return {"bars": bars, "diagonal": diagonal, "ticks": ticks}


def _environment(best: Trial | None) -> str:
    return ", ".join(f"{k} {v}" for k, v in (best.evaluation.environment if best else {}).items())
