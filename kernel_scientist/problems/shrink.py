"""Smaller cases for a CPU: sizes are halved while they stay multiples of what they were multiples of.

A size keeps its factor of its grain: with a grain of 128, 7168 may become 896 (7 x 128), 576 (9 x 64) stays. So blocks
of scales, heads and tiles still fit. Sizes up to LEAST stay: they are mostly counts, such as experts per token. Large
odd sizes stay odd: 5921 becomes 2961.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernel_scientist.records.kernel import Case, Size

GRAINS = (4, 16, 32, 64, 128, 256)
LEAST = 8
LEAST_ODD = 512
"""Odd sizes up to this one stay."""
SMALL = 32
"""Sizes up to this one are not halved further than the others of their case."""
MOST_HALVINGS = 20
Grains = Mapping[str, int]
"""The grain of each size, by name."""


def grains(cases: Sequence[Case], least: int, common: bool = True) -> Grains:
    """Return each size's grain: `least`, or (`common`) the power of two that divides all its values, if it has several.

    Kernels may rely on what all listed sizes have in common, such as k being a multiple of 128.
    """
    values = dict[str, set[int]]()
    for case in cases:
        for name, size in case.sizes.items():
            each = size if isinstance(size, list) else [size]
            values.setdefault(name, set()).update(n for n in each if isinstance(n, int) and _is_size(n))
    shared = {name: math.gcd(*found, GRAINS[-1]) for name, found in values.items() if common and len(found) > 1}
    return {name: max(least, shared.get(name, least)) for name in values}


@dataclass(frozen=True)
class Rule:
    """How sizes are halved: all of a case equally often as long as possible (`together`), or each by itself."""

    grains: Grains
    together: bool
    common: bool

    def smallest(self, case: Case) -> Case:
        """Return the smallest version of a case."""
        return (together if self.together else smallest)(case, self.grains)


def smallest(case: Case, grains: Grains) -> Case:
    """Return a case with each size halved as often as possible."""
    sizes = {name: _halved(size, grains[name], MOST_HALVINGS) for name, size in case.sizes.items()}
    return Case(sizes=sizes, seed=case.seed)


def together(case: Case, grains: Grains) -> Case:
    """Return a case with all sizes that can be halved halved equally often, as often as the first allows.

    So the sizes keep their ratios, such as channels per group. Then those above SMALL are halved further.
    """
    possible = {name: n for name, size in case.sizes.items() if (n := _halvings(size, grains[name]))}
    halvings = dict.fromkeys(case.sizes, min(possible.values(), default=0))
    for name, most in possible.items():
        while halvings[name] < most and _largest(_halved(case.sizes[name], grains[name], halvings[name])) > SMALL:
            halvings[name] += 1
    sizes = {name: _halved(size, grains[name], halvings[name]) for name, size in case.sizes.items()}
    return Case(sizes=sizes, seed=case.seed)


def _largest(size: Size) -> int:
    each = size if isinstance(size, list) else [size]
    return max((n for n in each if isinstance(n, int)), default=0)


def _halvings(size: Size, grain: int) -> int:
    """Return how often a size can be halved."""
    values = [_halved(size, grain, halvings) for halvings in range(MOST_HALVINGS + 1)]
    return sum(a != b for a, b in itertools.pairwise(values))


def larger(case: Case, original: Case, grains: Grains, names: Iterable[str]) -> Case | None:
    """Return a case with some sizes halved once less than they are; None if all of them have their original value."""
    sizes = {**case.sizes, **{name: _next(case.sizes[name], original.sizes[name], grains[name]) for name in names}}
    return Case(sizes=sizes, seed=case.seed) if sizes != case.sizes else None


def _next(size: Size, whole: Size, grain: int) -> Size:
    values = [_halved(whole, grain, halvings) for halvings in range(MOST_HALVINGS + 1)]
    return values[max(0, values.index(size) - 1)]


def others(case: Case, original: Case, grains: Grains) -> Iterator[Case]:
    """Yield cases of other sizes: the size that was halved most becomes about half as large again, then the next.

    A size that was not halved becomes about a quarter smaller. Sizes of the same value change with it, as they may have
    to fit each other.
    """
    ratios = {n: original.whole(n) / case.whole(n) for n, size in original.sizes.items() if _is_size(size)}
    for name in sorted(ratios, key=lambda n: (ratios[n], case.whole(n)), reverse=True):
        size, unit = case.whole(name), math.gcd(original.whole(name), grains[name])
        parts = max(1, size // unit)
        changed = parts + max(1, parts // 2) if ratios[name] > 1 else parts - max(1, parts // 4)
        if not changed:
            continue
        same = {n for n, whole in original.sizes.items() if whole in (original.sizes[name], [original.sizes[name]])}
        new = {n: [changed * unit] if isinstance(case.sizes[n], list) else changed * unit for n in same}
        yield Case(sizes={**case.sizes, **new}, seed=case.seed + 1)


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
        if value % 2 and unit == 1 and value > LEAST_ODD:
            value = value // 2 | 1
        elif value % 2 or value // 2 % unit or value // 2 < unit:
            break
        else:
            value //= 2
    return value
