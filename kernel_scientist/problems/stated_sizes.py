"""Which of a problem's texts state the sizes that are timed, so that who reads them can fit a kernel to these."""

import re
from collections.abc import Iterable, Sequence

from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.records.kernel import Case

TELLING = 256
"""A whole number from which on a size of a timed case is looked for by itself; a smaller one beside its name only."""
NEAR = 24
"""Characters between a size's name and its value that count as beside each other."""
_PARAGRAPH = re.compile(r"\n\s*\n")
_TIMED = re.compile(r"\bthe timed cases\b", re.I)


def general(description: str) -> str:
    """Return a description without its paragraphs on the timed cases."""
    return "\n\n".join(part for part in _PARAGRAPH.split(description) if not _TIMED.search(part))


def numbers(profile: Profile) -> frozenset[int]:
    """Return the whole numbers among the timed sizes, from TELLING on, that no checking case has."""
    checked = {n for case in profile.tests if not profile.times(case) for n in whole(case)}
    return frozenset({n for case in profile.benchmarks for n in whole(case) if n >= TELLING} - checked)


def whole(case: Case) -> list[int]:
    """Return a case's whole numbers."""
    found = [n for size in case.sizes.values() for n in (size if isinstance(size, list) else [size])]
    return [n for n in found if isinstance(n, int) and not isinstance(n, bool)]


def has_number(text: str, wanted: Iterable[int]) -> bool:
    """Whether a text has one of some whole numbers, however it groups their digits; parts of others do not count."""
    plain = re.sub(r"(?<=\d)[_,'](?=\d{3}(?!\d))", "", text)
    return not {*map(str, wanted)}.isdisjoint(re.findall(r"(?<![\d.])\d+(?!\.?\d)", plain))


def states(text: str, case: Case) -> bool:
    """Whether a text has each size of a case beside its name."""
    return bool(case.sizes) and all(_beside(text, name, str(size)) for name, size in case.sizes.items())


def _beside(text: str, name: str, value: str) -> bool:
    between = rf"[^\w\n]{{1,{NEAR}}}|[^\w\n]{{0,{NEAR}}}\b(?:is|of|to)\b[^\w\n]{{0,{NEAR}}}"
    name, value = re.escape(name), re.escape(value)
    return bool(re.search(rf"\b{name}(?:{between}){value}(?!\.?\d)|(?<![\d.]){value}\s{{1,{NEAR}}}{name}\b", text))


def where(problem: Problem, profiles: Sequence[Profile], language: str) -> str:
    """Return what states sizes of timed cases, empty if nothing does: the description without its paragraphs on the
    timed cases, the reference, a seed."""
    if problem.adapter:
        return f"{problem.reference_file.name} has them as constants"
    described = {"its description": general(problem.description), "its reference": problem.reference_text}
    seeds = {f"its seed {file.name}": file.read_text() for file in problem.seeds(language)}
    for profile in profiles:
        for what, text in described.items():
            if has_number(text, numbers(profile)):
                return f"{what} names some of them"
        for what, text in (described | seeds).items():
            if any(case.name in text or states(text, case) for case in profile.benchmarks):
                return f"{what} names a timed case"
    return ""
