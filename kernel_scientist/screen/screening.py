"""Every label of a source."""

import functools
from collections import Counter

from kernel_scientist.records import Language
from kernel_scientist.screen import kernelguard_runner
from kernel_scientist.screen.finding import HIGH, LOW, MEDIUM, Finding, Label
from kernel_scientist.screen.limits import LONGEST, MOST
from kernel_scientist.screen.rules import findings


@functools.lru_cache(maxsize=256)
def screen(source: str, language: Language) -> tuple[Label, ...]:
    """Return what a kernel's source looks like: the worst first, without duplicates, the same for the same text.

    A text that was read lately is not read again: an incumbent, a champion and a kernel that is tuned come many times.

    Never raises, whatever the text is, and takes bounded time; a file that is too long, or is no Python, says so.
    """
    if len(source) > LONGEST:
        detail = f"{len(source)} characters: more than {LONGEST} are not screened"
        return (Label(name="too-long", severity=HIGH, line=None, detail=detail),)
    helper = kernelguard_runner.start(source)  # it works while our own rules do
    found = [*findings(source, language), *kernelguard_runner.answers(helper)]
    kept: dict[tuple[str, int | None], Finding] = {}
    for finding in sorted(found, key=_order):
        kept.setdefault((finding.label, finding.line), finding)
    labels: list[Label] = []
    count: Counter[str] = Counter()
    for name, severity, line, detail in kept.values():
        count[name] += 1
        if count[name] <= MOST:
            plain = " ".join(detail[:200].split()).encode("unicode_escape").decode()
            labels.append(Label(name=name, severity=severity, line=line, detail=plain[:120]))
    return tuple(labels)


def _order(finding: Finding) -> tuple[int, str, int, str]:
    return (HIGH, MEDIUM, LOW).index(finding.severity), finding.label, finding.line or 0, finding.detail
