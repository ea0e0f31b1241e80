"""The HTML page of a campaign, and its pictures as SVG."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kernel_scientist.population import prediction_accuracy
from kernel_scientist.population.entry import score
from kernel_scientist.population.lineage import Population
from kernel_scientist.population.prediction_accuracy import UpliftPrediction
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.params import Params
from kernel_scientist.report import bars, ranking, tables
from kernel_scientist.report.output import Table, say, text, write
from kernel_scientist.tracking.access import RecordedCampaign, read_campaign

MOST_FINDINGS = 40
ACCURACY = {
    "designer": "designed by",
    "experiments": "experiments",
    "failed": "failed, share",
    "within": "uplift within the range, share",
    "predicted": "predicted (median, %)",
    "measured": "measured (median, %)",
    "bias": "bias (points)",
    "rank": "rank correlation",
}
COLOURS, RIGHT, WRONG = ("#3b5bdb", "#e8590c"), "#2b7a4b", "#a03030"
Curve = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""Low bound of a band, median, high bound, by number of kernels; 0 before the first correct kernel."""


def report(params: Params, campaign: str | None, out: Path) -> None:
    """Write the page of a campaign and print its tables. Raises SetupError when there is no such campaign."""
    recorded = read_campaign(params, campaign)
    validation = _validation(recorded.champion())
    write(out, render(recorded, validation))
    say(tables.report(recorded, validation, out))


def html(template: str, **values: Any) -> str:
    """Return a page from its template."""
    templates = Environment(loader=PackageLoader("kernel_scientist.report", "."), autoescape=True)
    return templates.get_template(template).render(values)


def render(recorded: RecordedCampaign, validation: dict[str, Any] | None) -> str:
    """Return the page's HTML."""
    population, best = recorded.population, recorded.champion()
    lessons, predictions = recorded.store.lessons(recorded.run), prediction_accuracy.predictions(population)
    final, curve = ranking.final_rows(population, recorded.final), population.incumbent_scores()
    entries = population.entries()
    by_model = any(entry.by_model for entry in entries)
    counts = ", ".join(f"{n} {v}" for v, n in population.verdicts().items() if n)
    return html(
        "page.html",
        campaign=recorded.run.campaign,
        summary=f"{len(population)} kernels tried; {counts}",
        environment=text(best.evaluation.environment if best else {}),
        confirmed=tables.confirmed_table(validation, best.kernel.name) if validation and best else None,
        verdict=validation["why"] if validation else "",
        bars=bars.table([] if validation else recorded.bars),
        failed_bars=bars.failures(validation.get("bars", []) if validation else recorded.bars),
        final=tables.final_table(final) if final else None,
        published=tables.published_table(recorded),
        basis=next((p.basis for p in best.evaluation.predictions), "") if best else "",
        reason=ranking.reason(population, recorded.final),
        curves=speeds(
            {recorded.run.campaign: (curve, curve, curve)},
            {entry.name: entry.score for entry in entries},
            by_model,
        ),
        kernels=kernel_table(population, best, by_model),
        without_times=any(s.against == REFERENCE and not s.cases for t in population for s in t.evaluation.speedups),
        lineage=ranking.lineage(population, best.kernel) if best else [],
        findings=[f"{f.text} ({', '.join(f.kernels[:6])})" for f in lessons.latest(MOST_FINDINGS)],
        accuracy=Table(ACCURACY, prediction_accuracy.table(predictions)) if predictions else None,
        uplifts=uplifts(predictions),
        source=best.kernel.source if best else "",
        by_model=by_model,
    )


def _validation(best: Trial | None) -> dict[str, Any] | None:
    """Return the JSON of `validate` if it is of this champion and has times."""
    path = environment.root() / "reports" / "validate.json"
    if best is None or not path.is_file():
        return None
    validation = cast(dict[str, Any], json.loads(path.read_text()))
    return validation if validation["digest"] == best.kernel.digest and validation["speedups"] else None


def kernel_table(population: Population, best: Trial | None, by_model: bool) -> Table:
    """Return all kernels with their times, and predicted and actual uplift over their bases."""
    rows: list[dict[str, str]] = []
    for trial in population:
        uplift, experiment = population.uplift(trial), trial.kernel.experiment
        changes = {
            "predicted": "{:+.0f} to {:+.0f}".format(*experiment.uplift) if experiment else "",
            "uplift": f"{uplift:+.1f}" if uplift is not None and score(trial) else "",
        }
        anchor = {"id": trial.kernel.name, "hint": trial.evaluation.reason[:400]}
        rows.append({**tables.kernel_row(trial, best), **changes, **anchor})
    uplifts = {"predicted": "uplift over base, predicted %", "uplift": "by the model %" if by_model else "measured %"}
    return Table({**(tables.PREDICTED if by_model else tables.MEASURED), **uplifts}, rows)


def speeds(curves: Mapping[str, Curve], kernels: Mapping[str, float], by_model: bool) -> Markup:
    """Return curves over the number of kernels tried, and a dot per kernel that links to its row in the page."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.add_subplot(xlabel="kernels tried", ylabel="share of the roofline" if by_model else "speedup")
    axes.set_yscale("log", base=2, nonpositive="mask")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: tables.score_text(value, by_model))
    axes.grid(axis="y", alpha=0.4)
    for (name, (low, median, high)), colour in zip(curves.items(), COLOURS, strict=False):
        tried = range(1, len(median) + 1)
        axes.plot(tried, median, color=colour, label=name, drawstyle="steps-post")
        axes.fill_between(tried, low, high, color=colour, alpha=0.15, step="post")
    axes.scatter(range(1, len(kernels) + 1), list(kernels.values()), color=RIGHT).set_urls([f"#{k}" for k in kernels])
    if len(curves) > 1:
        axes.legend(frameon=False)
    return _svg(figure)


def uplifts(predictions: Sequence[UpliftPrediction]) -> Markup:
    """Return a bar per experiment: its predicted range at the height of the measured uplift, in percent."""
    figure = Figure(figsize=(5.6, 3.7), layout="constrained")
    axes = figure.add_subplot(xlabel="predicted uplift, min to max, %", ylabel="measured uplift, %")
    timed = [(p, p.measured) for p in predictions if p.measured is not None]
    heights, colours = [measured for _, measured in timed], [RIGHT if p.within else WRONG for p, _ in timed]
    bars = axes.hlines(heights, [p.low for p, _ in timed], [p.high for p, _ in timed], colours, linewidth=3)
    bars.set_urls([f"#{p.kernel}" for p, _ in timed])
    axes.axline((0, 0), slope=1, color="#c6ccd6", linestyle="--")
    return _svg(figure)


def _svg(figure: Figure) -> Markup:
    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "page"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    _, start, picture = out.getvalue().partition("<svg")
    return Markup(start + picture.replace(' target="_blank"', ""))  # links lead to rows of the same page
