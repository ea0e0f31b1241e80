"""Factors: quotients of two times of one run, each with its interval. One rule says which are stated, and how.

A factor is *resolved* if its interval excludes 1, or reaches at most `NARROW` from its middle in either direction: then
it says "faster", "slower", or "alike within so much". Any other interval, and a measurement with too few blocks for
one, says nothing about the number in its middle, so that number is not printed.
"""

import math
from collections.abc import Mapping, Sequence

UNRESOLVED = (1e-9, 1e9)
"""Interval of a ratio if there are too few blocks for the requested confidence."""
TOO_FEW = "fewer blocks were timed than an interval at this confidence needs"
PREDICTED = "the times are predicted: a model has no interval"
UNTIMED = "the two were not timed in one run"
NARROW = 1.25
"""Most that an interval which includes 1 may reach from its middle, as a factor: the smallest gains that are worth an
experiment are smaller, so a wider one does not even tell a large gain from a loss."""
UNKNOWN = "not resolved"
OTHERS_PERCENT = 10.0
"""Share of a machine's CPU time, used by others, from which it counts as busy. A timing pauses for nobody: on two cores
this is a fifth of one core, so about every fifth row of a kernel with a thread per core is disturbed. Judgement, not
fitted to a machine."""
STEAL_PERCENT = 1.0
"""The same of the CPU time that the host took from a virtual machine."""
Interval = tuple[float, float]


def is_known(interval: Sequence[float] | None) -> bool:
    """Whether there were enough blocks for an interval."""
    return interval is not None and interval[1] < UNRESOLVED[1]


def why_unknown(interval: Sequence[float] | None, dropped: str = "") -> str:
    """Return why there is no interval; empty if there is one. `dropped`: as in `Speedup`."""
    return "" if is_known(interval) else dropped or TOO_FEW


def dropped(blocks: int, baseline: str, below: float) -> str:
    """Return why a timing ended after so many blocks; empty for 0."""
    whole = f"the whole interval of its speed over {baseline}, row by row, was below {below:g}"
    return f"dropped after {blocks} blocks: {whole}" if blocks else ""


def is_resolved(interval: Sequence[float] | None) -> bool:
    """Whether a factor with this interval is stated."""
    if interval is None or not is_known(interval):
        return False
    low, high = interval
    return low > 1 or high < 1 or high <= low * NARROW**2


def bounds(interval: Sequence[float] | None, dropped: str = "") -> str:
    """Return an interval of factors, such as `[1.2, 1.3]`; there is none with too few blocks, and in old records."""
    if interval is None or not is_known(interval):
        why = dropped or (TOO_FEW if interval is not None else "")
        return f"(no interval: {why})" if why else "(no interval)"
    return f"[{', '.join(map(_digits, interval))}]"


def number(value: float | None, digits: int = 5) -> str:
    """Return significant digits: five of a time, so that the quotient of two times matches the ratio next to them."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if abs(value) < 10**digits - 0.5 else f"{value:.0f}"


def factor(ratio: float | None, interval: Sequence[float] | None, dropped: str = "") -> str:
    """Return a factor with its interval, such as `1.25x [1.2, 1.3]`, or that it is not resolved; empty for None.

    `dropped`: why the timing ended early, if it did (`Speedup`).
    """
    if ratio is None:
        return ""
    return f"{f'{_digits(ratio)}x' if is_resolved(interval) else UNKNOWN} {bounds(interval, dropped)}"


def _digits(value: float) -> str:
    """Return four significant digits, without an exponent above one."""
    return f"{value:.4g}" if value < 9999.5 else f"{value:.0f}"


def percent(ratio: float, interval: Sequence[float] | None, dropped: str = "") -> str:
    """Return a gain with its interval, such as `+25 % [+20, +30]`, or that it is not resolved."""
    if interval is None or not is_known(interval):
        return f"{UNKNOWN} {bounds(interval, dropped)}"
    low, high = (100 * (bound - 1) for bound in interval)
    value, ends = 100 * (ratio - 1), f"[{_signed(low, high - low)}, {_signed(high, high - low)}]"
    return f"{_signed(value, high - low)} % {ends}" if is_resolved(interval) else f"{UNKNOWN} {ends}"


def _signed(value: float, width: float) -> str:
    return f"{value:+.1f}" if width < 20 and abs(value) < 100 else f"{value:+.0f}"


def mean(pairs: Sequence[tuple[float, Sequence[float]]]) -> tuple[float, Interval]:
    """Return the geometric mean of independent factors with intervals, and its interval. Raises ZeroDivisionError.

    It is about these measurements: how much other experiments of the kind would gain, it does not say.
    """
    count, middle = len(pairs), sum(math.log(ratio) for ratio, _ in pairs) / len(pairs)
    below, above = (
        math.sqrt(sum(math.log(interval[end] / ratio) ** 2 for ratio, interval in pairs)) / count for end in range(2)
    )
    return math.exp(middle), (math.exp(middle - below), math.exp(middle + above))


def significant(value: float, low: float, high: float) -> float:
    """Return a value rounded to what its interval supports: two digits of the interval's half-width."""
    half = (high - low) / 2
    if not value or not math.isfinite(half) or half <= 0 or not is_known((low, high)):
        return value
    return round(value, 1 - math.floor(math.log10(half)))


def busy(environment: Mapping[str, str]) -> str:
    """Return a sentence if a measurement was made on a busy machine; empty if not, or if nobody looked.

    `environment`: that of an evaluation. `others_percent` is the share of the machine's CPU time that processes other
    than the evaluator and its workers used.
    """
    others, steal = (_number(environment.get(key)) for key in ("others_percent", "steal_percent"))
    parts = [f"other processes used {others:.0f} % of its CPU time"] if others >= OTHERS_PERCENT else []
    parts += [f"its host took {steal:.0f} % away"] if steal >= STEAL_PERCENT else []
    if not parts:
        return ""
    load = f", load {environment['load']} on {environment.get('cores', '?')} cores" if "load" in environment else ""
    return f"measured on a busy machine: {' and '.join(parts)}{load}"


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
