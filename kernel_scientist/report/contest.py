"""Two ways of searching at equal budget: best-so-far curves with bands over repeats, and a paired test.

A side is one campaign or several (repeats, told apart by `search.seed`). The budget is the number of kernels that every
campaign of both sides has tried. Repeats with equal seeds are pairs; the test flips their signs, all ways, so it
assumes nothing but that neither side is better. With fewer than five pairs it cannot say anything at 5 %, and says so.
"""

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from pydantic import Field

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.report import recorded

BAND = (0.1, 0.9)
EXACT = 16
"""Pairs up to which all sign flips are counted; beyond, they are drawn."""
DRAWS = 20_000
NEEDED = 5
"""Pairs from which a one-sided p of 0.05 can be reached at all: 1/2^5."""


class Entry(Record):
    """A campaign as a contestant: the best speed over the reference after each kernel, and what it cost."""

    name: str
    seed: str
    curve: tuple[float, ...]
    usd: float = 0.0
    by_model: bool = False
    """Its speeds are predicted, as parts of the roofline's."""
    settings: dict[str, str] = Field(default_factory=dict[str, str])


def curve(population: Population) -> tuple[float, ...]:
    """Return the speed over the reference of the incumbent after each kernel; 0 while nothing is right.

    The incumbent changes by a test alone, so luck of a single timing does not lift the curve.
    """
    found: list[float] = []
    seen = Population()
    for trial in population:
        seen = seen.add(trial)
        best = seen.best()
        found.append(score(best) if best else 0.0)
    return tuple(found)


def of_campaigns(params: Params, first: Sequence[str], second: Sequence[str]) -> dict[str, Any]:
    """Compare recorded campaigns by name.

    Raises SetupError when one is not there, has tried nothing, or is on both sides.
    """
    if both := sorted(set(first) & set(second)):
        raise SetupError(f"campaign {both[0]} is on both sides")
    sides = [[_entry(params, name) for name in side] for side in (first, second)]
    if empty := next((e.name for side in sides for e in side if not e.curve), None):
        raise SetupError(f"campaign {empty} has tried no kernel")
    if len(kinds := {e.by_model for side in sides for e in side}) > 1:
        raise SetupError("measured and predicted campaigns cannot be compared with one another")
    return {**compare(*sides), "by_model": kinds.pop()}


def _entry(params: Params, name: str) -> Entry:
    found = recorded.read(params, name)
    return Entry(
        name=name,
        seed=found.run.params.get("search.seed", ""),
        curve=curve(found.population),
        usd=found.run.metrics.get("llm.usd", 0.0),
        by_model=any(t.evaluation.by_model for t in found.population),
        settings=found.run.params,
    )


def write(found: dict[str, Any], out: Path) -> None:
    """Write a comparison as a page with its curves."""
    template = Environment(loader=PackageLoader("kernel_scientist.report", "."), autoescape=True).get_template(
        "contest.html"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(template.render(found=found, plot=_plot(found), by_model=found.get("by_model")))


def _plot(found: dict[str, Any]) -> dict[str, Any]:
    """Return lines and bands in the picture's coordinates; the vertical axis is logarithmic."""
    values = [v for side in found["sides"] for v in (*side["low"], *side["high"]) if v > 0]
    low = math.floor(math.log2(min(values))) if values else 0
    high = max(math.ceil(math.log2(max(values))), low + 1) if values else 1
    last = max(1, found["budget_kernels"] - 1)

    def points(series: Sequence[float]) -> list[str]:
        return [
            f"{60 + 820 * i / last:.1f},{260 - 240 * (math.log2(max(v, 2.0**low)) - low) / (high - low):.1f}"
            for i, v in enumerate(series)
        ]

    sides = [
        {
            "name": ", ".join(side["campaigns"]),
            "line": " ".join(points(side["median"])),
            "band": " ".join([*points(side["high"]), *reversed(points(side["low"]))]),
        }
        for side in found["sides"]
    ]
    ticks = [{"y": 260 - 240 * (e - low) / (high - low), "label": f"{2.0**e:g}x"} for e in range(low, high + 1)]
    return {"sides": sides, "ticks": ticks}


def compare(first: Sequence[Entry], second: Sequence[Entry]) -> dict[str, Any]:
    """Return curves, final figures and the test of two sides.

    Raises ValueError for a side without a campaign, or when no kernel was tried.
    """
    if not first or not second or not all(c.curve for c in (*first, *second)):
        raise ValueError("each side needs a campaign that has tried a kernel")
    budget = min(len(c.curve) for c in (*first, *second))
    pairs = _pairs(first, second)
    gains = [_log(a.curve[budget - 1]) - _log(b.curve[budget - 1]) for a, b in pairs]
    return {
        "budget_kernels": budget,
        "sides": [_side(side, budget) for side in (first, second)],
        "pairs": [[a.name, b.name] for a, b in pairs],
        "ratio": round(math.exp(statistics.mean(gains)), 4) if gains else None,
        "p_first_better": round(_sign_flips(gains), 4) if len(gains) >= NEEDED else None,
        "p_second_better": round(_sign_flips([-g for g in gains]), 4) if len(gains) >= NEEDED else None,
        "says": _says(gains),
        "differ_in": _differences(first, second),
    }


def _pairs(first: Sequence[Entry], second: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """Pair campaigns of equal seeds, in order; a campaign without a partner is left out of the test."""
    waiting = list(second)
    pairs: list[tuple[Entry, Entry]] = []
    for one in first:
        partner = next((c for c in waiting if c.seed == one.seed), None)
        if partner is not None:
            waiting.remove(partner)
            pairs.append((one, partner))
    return pairs


def _side(side: Sequence[Entry], budget: int) -> dict[str, Any]:
    finals = [c.curve[budget - 1] for c in side]
    low, high = (_quantiles([c.curve for c in side], budget, q) for q in BAND)
    return {
        "campaigns": [c.name for c in side],
        "best": round(statistics.median(finals), 4),
        "worst_to_best": [round(min(finals), 4), round(max(finals), 4)],
        "usd": round(sum(c.usd for c in side), 4),
        "median": _quantiles([c.curve for c in side], budget, 0.5),
        "low": low,
        "high": high,
    }


def _quantiles(curves: Sequence[Sequence[float]], budget: int, q: float) -> list[float]:
    out: list[float] = []
    for index in range(budget):
        ordered = sorted(c[index] for c in curves)
        place = q * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        out.append(round(ordered[below] + (place - below) * (ordered[above] - ordered[below]), 4))
    return out


def _sign_flips(gains: Sequence[float]) -> float:
    """Return how often chance alone gives a mean gain as large: one-sided p of the sign-flip test."""
    seen, size = sum(gains) - 1e-12, [abs(g) for g in gains]
    if len(gains) <= EXACT:
        flips = itertools.product((1, -1), repeat=len(gains))
        sums = [sum(s * g for s, g in zip(signs, size, strict=True)) for signs in flips]
        return sum(total >= seen for total in sums) / len(sums)
    rng = random.Random(0)
    drawn = sum(sum(rng.choice((1, -1)) * g for g in size) >= seen for _ in range(DRAWS))
    return (drawn + 1) / (DRAWS + 1)


def _log(speed: float) -> float:
    return math.log(max(speed, 1e-3))


def _says(gains: Sequence[float]) -> str:
    if len(gains) < NEEDED:
        return f"{len(gains)} pairs with equal search.seed; a test at 5 % needs {NEEDED}: nothing can be said"
    p, q = _sign_flips(gains), _sign_flips([-g for g in gains])
    if min(p, q) > 0.05:
        return f"no difference is shown ({len(gains)} pairs, p = {min(p, q):.3f})"
    return f"the {'first' if p < q else 'second'} is better ({len(gains)} pairs, p = {min(p, q):.3f})"


def _differences(first: Sequence[Entry], second: Sequence[Entry]) -> dict[str, list[str]]:
    """Return the parameters, seeds aside, in which the sides differ: what is really being compared."""
    keys = sorted({k for c in (*first, *second) for k in c.settings} - {"search.seed"})
    found: dict[str, list[str]] = {}
    for key in keys:
        ours, theirs = ({c.settings.get(key, "") for c in side} for side in (first, second))
        if ours != theirs:
            found[key] = [" or ".join(sorted(ours)), " or ".join(sorted(theirs))]
    return found
