"""The pictures of pages: matplotlib draws them as SVG, and the page's CSS colours them, for light and dark.

A figure is as wide as a phone's screen at its own size, so its text stays readable there.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kernel_scientist.population.curves import Point
from kernel_scientist.population.prediction_accuracy import UpliftPrediction

VARIABLES = ("ink", "line", "first", "second", "right", "wrong", "muted")
COLOURS = {f"#{number:06x}": variable for number, variable in enumerate(VARIABLES, start=1)}
"""Colours in matplotlib, and the CSS variables that replace them."""
INK, LINE, FIRST, SECOND, RIGHT, WRONG, MUTED = COLOURS
WIDTH = 5.2
"""Width of a figure in inches (374 points)."""
WIDE = 4
"""Ratio of the highest to the lowest score from which their axis is logarithmic."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "page",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LINE,
    "grid.color": LINE,
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    "savefig.transparent": True,
}
Curve = tuple[Sequence[float], Sequence[float], Sequence[float]]
"""Low bound of a band, median, high bound, by number of kernels; 0 before the first correct kernel."""
Bars = Mapping[str, Mapping[str, float]]
"""Times in us by source, then by case."""


@rc_context(STYLE)
def speeds(
    curves: Mapping[str, Curve], kernels: Mapping[str, Point | None], by_model: bool, champion: str = ""
) -> Markup:
    """Return curves over the number of kernels tried, and per kernel a dot that links to it, with its interval.

    The champion's dot has a ring and its name.
    """
    figure, axes = _axes(2.9, "kernels tried", "share of the roofline" if by_model else "speedup over the reference")
    points = {number: point for number, point in enumerate(kernels.values(), start=1) if point}
    shown = [*(p.ratio for p in points.values()), *(v for curve in curves.values() for v in curve[1])]
    _score_axis(axes, shown, by_model)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for (name, (low, median, high)), colour in zip(curves.items(), (FIRST, SECOND), strict=False):
        tried = range(1, len(median) + 1)
        axes.plot(tried, median, color=colour, label=name, drawstyle="steps-post")
        axes.fill_between(tried, low, high, color=colour, alpha=0.15, step="post")
    axes.vlines([*points], [p.low for p in points.values()], [p.high for p in points.values()], RIGHT, linewidth=0.6)
    dots = axes.scatter([*points], [p.ratio for p in points.values()], s=14, color=RIGHT, linewidths=0)
    dots.set_urls([f"#{name}" for name, point in kernels.items() if point])
    for number, (name, point) in enumerate(kernels.items(), start=1):
        if name == champion and point:
            axes.scatter([number], [point.ratio], s=70, facecolors="none", edgecolors=FIRST)
            axes.annotate(name, (number, point.ratio), (6, 6), textcoords="offset points")
    if len(curves) > 1:
        axes.legend(frameon=False)
    return _svg(figure)


@rc_context(STYLE)
def costs(usd: Sequence[float], best: Curve, by_model: bool) -> Markup:
    """Return the incumbent's speed over the money spent on the kernels' own model calls, in USD."""
    figure, axes = _axes(2.9, "USD for the kernels' model calls", "share of the roofline" if by_model else "speedup")
    low, middle, high = best
    _score_axis(axes, middle, by_model)
    axes.plot(usd, middle, color=FIRST, drawstyle="steps-post")
    axes.fill_between(usd, low, high, color=FIRST, alpha=0.15, step="post")
    return _svg(figure)


@rc_context(STYLE)
def cases(times: Bars, floors_us: Mapping[str, float]) -> Markup:
    """Return a bar per case and source, and a mark at each case's roofline floor; the time axis is logarithmic."""
    names = list(dict.fromkeys(case for by_case in times.values() for case in by_case))
    figure, axes = _axes(0.9 + len(names) * (0.16 + 0.15 * len(times)), "us per call (logarithmic)", "")
    axes.set_xscale("log")
    thick = 0.8 / len(times)
    for position, ((source, by_case), colour) in enumerate(zip(times.items(), (FIRST, MUTED, SECOND), strict=False)):
        rows = [(row, by_case[case]) for row, case in enumerate(names) if case in by_case]
        heights = [row - 0.4 + (position + 0.5) * thick for row, _ in rows]
        axes.barh(heights, [us for _, us in rows], thick, color=colour, label=source)
    marks = [(row, floors_us[case]) for row, case in enumerate(names) if case in floors_us]
    if marks:
        ends = [row - 0.45 for row, _ in marks], [row + 0.45 for row, _ in marks]
        axes.vlines([us for _, us in marks], *ends, color=INK, linewidth=1.5, label="roofline floor")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", alpha=0.6)
    figure.legend(frameon=False, loc="outside upper left", ncols=2)
    return _svg(figure)


@rc_context(STYLE)
def uplifts(predictions: Sequence[UpliftPrediction]) -> Markup:
    """Return a bar per experiment: its predicted range at the height of the measured uplift, in percent, and a line
    that spans the measured one's interval."""
    figure, axes = _axes(3.2, "predicted uplift, min to max, %", "measured uplift, %")
    timed = [(p, p.measured) for p in predictions if p.measured is not None]
    heights, colours = [measured for _, measured in timed], [RIGHT if p.within else WRONG for p, _ in timed]
    bars = axes.hlines(heights, [p.low for p, _ in timed], [p.high for p, _ in timed], colours, linewidth=3)
    bars.set_urls([f"#{p.kernel}" for p, _ in timed])
    ends = [(p.middle, *p.interval) for p, _ in timed if p.interval]
    axes.vlines([e[0] for e in ends], [e[1] for e in ends], [e[2] for e in ends], MUTED, linewidth=0.6)
    axes.axline((0, 0), slope=1, color=MUTED, linestyle="--")
    return _svg(figure)


def _axes(height: float, x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot(xlabel=x, ylabel=y)
    axes.grid(axis="y", alpha=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _score_axis(axes: Axes, scores: Sequence[float], by_model: bool) -> None:
    """Scale an axis of scores: logarithmic if they differ much. Kernels without a score are not drawn."""
    known = [score for score in scores if score]
    if known and max(known) > WIDE * min(known):
        axes.set_yscale("log", base=2, nonpositive="mask")
        axes.yaxis.set_minor_formatter(lambda value, _: "")
    elif known:
        axes.set_ylim(0.9 * min(known), 1.1 * max(known))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %" if by_model else f"{value:.4g}x")


def _svg(figure: Figure) -> Markup:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    _, start, picture = out.getvalue().partition("<svg")
    for colour, variable in COLOURS.items():
        picture = picture.replace(colour, f"var(--{variable})")
    return Markup(start + picture.replace(' target="_blank"', ""))  # links lead to places in the same page
