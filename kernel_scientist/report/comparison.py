"""A comparison of two ways of searching, for terminal and page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernel_scientist.records import factors
from kernel_scientist.records.comparison_result import CampaignPair, ComparisonResult, Incumbent
from kernel_scientist.report.output import Table, html, parts, write
from kernel_scientist.report.pages import plots

SIDES = ("first", "second")


def shown(comparison: ComparisonResult) -> Iterator[str | Table]:
    """Yield a comparison for terminal or page."""
    by_model = comparison.by_model
    sides = [
        {
            "side": name,
            "campaigns": side.campaigns,
            "speed, own runs": speed(side.best, side.best_interval, by_model),
            "usd": side.usd,
        }
        for name, side in zip(SIDES, comparison.sides, strict=True)
    ]
    kind = "predicted" if by_model else "measured"
    settings = [{"parameter": k, **dict(zip(SIDES, v, strict=True))} for k, v in comparison.differ_in.items()]
    beside = [{"case": one.case, **one.ours_us, "best published": one.best_us} for one in comparison.published]
    untimed = f"not measured, as the incumbents were not timed in one run: {comparison.untimed}"
    when = "at each campaign's end" if comparison.at_end else f"after {comparison.budget_kernels} kernels"
    yield from parts(
        {
            f"incumbents {when}": sides,
            "pairs, predicted" if by_model else "pairs, each timed in one run": [
                _pair(pair, by_model) for pair in comparison.pairs
            ],
            "first / second": untimed if comparison.untimed else speed(comparison.ratio, comparison.interval, by_model),
            "conclusion": comparison.conclusion,
            "the sides differ in": settings,
            f"champions, {kind} us, beside the best published kernel": beside,
        }
    )


def _pair(pair: CampaignPair, by_model: bool) -> dict[str, str | float | None]:
    return {
        "first": _named(pair.first),
        "second": _named(pair.second),
        "first, us": pair.first_us,
        "second, us": pair.second_us,
        "first / second": speed(pair.ratio, pair.interval, by_model),
    }


def _named(one: Incumbent) -> str:
    return f"{one.kernel or ''} of {one.campaign}"


def speed(ratio: float | None, interval: Sequence[float] | None, by_model: bool) -> str:
    """Return a factor with its interval; a predicted one has none."""
    return f"{ratio:.4g} predicted" if by_model and ratio else factors.factor(ratio, interval)


def write_page(comparison: ComparisonResult, out: Path) -> None:
    """Write a comparison as a page with its curves."""
    by_model = comparison.by_model
    lines = {", ".join(side.campaigns): (side.low, side.median, side.high) for side in comparison.sides}
    picture = plots.speeds(lines, {}, by_model)
    write(out, html("comparison.html", shown=shown(comparison), curves=picture, by_model=by_model))
