"""Smaller cases for a CPU: sizes are halved while they stay multiples of what they were multiples of.

A size keeps its factor of `grain`: with a grain of 128, 7168 may become 896 (7 x 128), 576 (9 x 64) stays. So blocks of
scales, heads and tiles still fit. Sizes up to LEAST stay: they are mostly counts, such as experts per token.
"""

import math
from collections.abc import Iterable

from kernel_scientist.records.kernel import Case, Size

GRAINS = (4, 16, 32, 64, 128, 256)
LEAST = 8
MOST_HALVINGS = 20


def smallest(case: Case, grain: int) -> Case:
    """Return a case with each size halved as often as possible."""
    return Case(sizes={name: _halved(size, grain, MOST_HALVINGS) for name, size in case.sizes.items()}, seed=case.seed)


def larger(case: Case, original: Case, grain: int, names: Iterable[str]) -> Case | None:
    """Return a case with some sizes halved once less than they are; None if all of them have their original value."""
    sizes = {**case.sizes, **{name: _next(case.sizes[name], original.sizes[name], grain) for name in names}}
    return Case(sizes=sizes, seed=case.seed) if sizes != case.sizes else None


def _next(size: Size, whole: Size, grain: int) -> Size:
    values = [_halved(whole, grain, halvings) for halvings in range(MOST_HALVINGS + 1)]
    return values[max(0, values.index(size) - 1)]


def other(case: Case, original: Case, grain: int) -> Case | None:
    """Return a case of other sizes: the size that was halved most becomes about half as large again.

    If none was halved, the largest becomes about a quarter smaller. Sizes of the same value change with it, as they may
    have to fit each other. None if no size may change.
    """
    ratios = {name: original.whole(name) / case.whole(name) for name, size in case.sizes.items() if _is_size(size)}
    if not ratios:
        return None
    name = max(ratios, key=lambda n: (ratios[n], case.whole(n)))
    size, unit = case.whole(name), math.gcd(original.whole(name), grain)
    parts = size // unit
    changed = parts + max(1, parts // 2) if ratios[name] > 1 else parts - max(1, parts // 4)
    if not changed:
        return None
    same = {n for n, whole in original.sizes.items() if whole in (original.sizes[name], [original.sizes[name]])}
    new = {n: [changed * unit] if isinstance(case.sizes[n], list) else changed * unit for n in same}
    return Case(sizes={**case.sizes, **new}, seed=case.seed + 1)


def _is_size(value: Size) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > LEAST


def _halved(value: Size, grain: int, halvings: int) -> Size:
    if isinstance(value, list):
        return [_half(item, grain, halvings) for item in value]
    return _half(value, grain, halvings) if isinstance(value, int) and not isinstance(value, bool) else value


def _half(value: int, grain: int, halvings: int) -> int:
    if value <= LEAST:
        return value
    unit = math.gcd(value, grain)
    for _ in range(halvings):
        if value % 2 or value // 2 % unit or value // 2 < unit:
            break
        value //= 2
    return value
