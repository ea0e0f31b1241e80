"""Every label of a source."""

import functools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from kernel_scientist.evaluate.screen.finding import HIGH, LONGEST, LOW, MEDIUM, MOST, Finding, Label
from kernel_scientist.evaluate.screen.guard import Guard
from kernel_scientist.evaluate.screen.rules import findings
from kernel_scientist.records.kernel import Language

REMEMBERED = 256
"""Texts: an incumbent, a champion and a kernel that is tuned come many times."""


class Screen:
    """Reads sources. Keeps a process for kernelguard's rules; `close` ends it. Thread-safe."""

    def __init__(self) -> None:
        self._guard = Guard()
        self.labels = functools.lru_cache(maxsize=REMEMBERED)(self._labels)

    def close(self) -> None:
        """End what was started; it starts again when it is needed."""
        self._guard.close()

    def _labels(self, source: str, language: Language) -> tuple[Label, ...]:
        """Return what a kernel's source looks like: the worst first, without duplicates, the same for the same text.

        Never raises, whatever the text is, and takes bounded time; a file that is too long, or is no Python, says so.
        """
        if len(source) > LONGEST:
            detail = f"{len(source)} characters: more than {LONGEST} are not screened"
            return (Label(name="too-long", severity=HIGH, line=None, detail=detail),)
        with ThreadPoolExecutor(1) as beside:
            guarded = beside.submit(lambda: list(self._guard.findings(source)))
            found = [*findings(source, language), *guarded.result()]
        return _sorted(found)


def _sorted(found: list[Finding]) -> tuple[Label, ...]:
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
