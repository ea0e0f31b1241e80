"""What a calibration is worth: ranks, errors and what trusting the model would have cost, on entries not fitted on."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from scipy.stats import rankdata

from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.records.base import Record

RHO, REGRET = 0.9, 0.10
"""The goal, within every family."""
FIGURES = 4
"""Digits after the point that are kept."""


class FamilyFit(Record):
    """How one family's held-out entries were predicted."""

    family: str
    entries: int
    cases: int
    rho: float | None
    """Spearman's, predicted and measured; None where all times are equal or there are under three."""
    error: float
    """Median of |predicted / measured - 1|."""
    regret: float | None
    """Of each case's entries the one predicted fastest: its time over the best one's, less 1; the mean over cases."""
    worst_regret: float | None


class Fit(Record):
    """Constants, and what they predict."""

    constants: dict[str, float]
    kept: dict[str, str]
    """Constants that the times say nothing of, and why: they have their defaults."""
    rho: float | None
    error: float | None
    families: tuple[FamilyFit, ...]
    fitted_on: int
    held_out: int
    seed: int
    predicted_us: dict[str, float]
    """Of every entry, those that were fitted on included."""

    @property
    def least_rho(self) -> float | None:
        """Of the family that is ranked worst."""
        return min((f.rho for f in self.families if f.rho is not None), default=None)

    @property
    def most_regret(self) -> float | None:
        """Of the family that is chosen from worst."""
        return max((f.regret for f in self.families if f.regret is not None), default=None)

    @property
    def met(self) -> bool:
        """Whether every family is ranked and chosen from as well as the goal says; what is unknown is not."""
        rho, regret = self.least_rho, self.most_regret
        return rho is not None and regret is not None and rho >= RHO and regret <= REGRET


def judged(
    constants: Constants,
    kept: Mapping[str, str],
    measured: Mapping[str, float],
    predicted: Mapping[str, float],
    places: Mapping[str, tuple[str, str]],
    fitted_on: int,
    seed: int,
) -> Fit:
    """Report on held-out entries: their measured and predicted times, and family and case, all by name."""
    names = sorted(measured)
    families = dict.fromkeys(places[name][0] for name in names)
    errors = [abs(predicted[n] / measured[n] - 1) for n in names]
    values = {name: value for name, value in asdict(constants).items() if name != "calibrated"}
    return Fit(
        constants={name: float(f"{value:.4g}") for name, value in values.items()},
        kept=dict(kept),
        rho=rank_correlation([predicted[n] for n in names], [measured[n] for n in names]),
        error=round(statistics.median(errors), FIGURES) if errors else None,
        families=tuple(
            _family(f, [n for n in names if places[n][0] == f], measured, predicted, places) for f in families
        ),
        fitted_on=fitted_on,
        held_out=len(names),
        seed=seed,
        predicted_us={name: round(value, 3) for name, value in predicted.items()},
    )


def _family(
    family: str,
    names: Sequence[str],
    measured: Mapping[str, float],
    predicted: Mapping[str, float],
    places: Mapping[str, tuple[str, str]],
) -> FamilyFit:
    cases: dict[str, list[str]] = {}
    for name in names:
        cases.setdefault(places[name][1], []).append(name)
    regrets = [regret(group, measured, predicted) for group in cases.values() if len(group) > 1]
    return FamilyFit(
        family=family,
        entries=len(names),
        cases=len(cases),
        rho=rank_correlation([predicted[n] for n in names], [measured[n] for n in names]),
        error=round(statistics.median(abs(predicted[n] / measured[n] - 1) for n in names), FIGURES),
        regret=round(statistics.mean(regrets), FIGURES) if regrets else None,
        worst_regret=round(max(regrets), FIGURES) if regrets else None,
    )


def regret(group: Sequence[str], measured: Mapping[str, float], predicted: Mapping[str, float]) -> float:
    """Return how much slower than the best is the one predicted fastest; of equal predictions, the slowest of them."""
    least = min(predicted[name] for name in group)
    chosen = max(measured[name] for name in group if predicted[name] <= least * (1 + 1e-9))
    return chosen / min(measured[name] for name in group) - 1


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rho; None below three pairs, or where all of either are equal."""
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    found = statistics.correlation(list(map(float, rankdata(first))), list(map(float, rankdata(second))))
    return round(found, FIGURES) if math.isfinite(found) else None
