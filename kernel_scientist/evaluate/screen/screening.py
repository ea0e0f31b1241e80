"""Reads a kernel's source before it runs: tampering, and what kernelguard's rules match."""

import functools
import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kernel_scientist.evaluate.screen import kernelguard_process
from kernel_scientist.evaluate.screen.finding import HIGH, LOW, MEDIUM, Finding
from kernel_scientist.evaluate.screen.source import PythonFile
from kernel_scientist.evaluate.screen.tampering import tampering

MAX_SOURCE = 200_000
"""Characters of a source that are read; an honest kernel has a tenth of that."""
MAX_MATCHES = 8
"""Findings of one name that are kept."""
REMEMBERED = 256
"""Texts: an incumbent, a champion and a kernel that is tuned come many times."""
TIMEOUT_S = 10
"""For kernelguard's rules on one source; its process limits its own CPU time to less."""
SEVERITIES = {"auto_filter": HIGH, "suspicious": MEDIUM, "low_confidence": LOW}
"""By what kernelguard does about a match."""
ADDRESSED = re.compile(
    r"\b(?:note|message)? ?(?:to|for) the (?:\w+ing )?(?:reviewer|judge|grader|evaluator|model)\b|\bas an? (?:ai|llm)\b"
    r"|\b(?:ignore|disregard) (?:\w+ ){0,2}(?:previous|prior|above|earlier|instructions)\b|\brate this kernel\b",
    re.IGNORECASE,
)
"""Prose addressed to whoever evaluates, a language model perhaps."""


@functools.lru_cache(maxsize=REMEMBERED)
def screen(source: str) -> tuple[Finding, ...]:
    """Return the findings of a source: tampering first, then by severity and line; the same for the same text.

    Raises nothing, whatever the text is, and ends in bounded time.
    """
    unique: dict[tuple[str, int | None], Finding] = {}
    for finding in sorted(findings(source), key=_order):
        unique.setdefault((finding.name, finding.line), finding)
    count: Counter[str] = Counter()
    shown: list[Finding] = []
    for finding in unique.values():
        count[finding.name] += 1
        if count[finding.name] <= MAX_MATCHES:
            detail = " ".join(finding.detail[:200].split()).encode("unicode_escape").decode()
            shown.append(finding._replace(detail=detail[:120]))
    return tuple(shown)


def _order(finding: Finding) -> tuple[bool, int, int, str, str]:
    rank = (HIGH, MEDIUM, LOW).index(finding.severity)
    return not finding.tampering, rank, finding.line or 0, finding.name, finding.detail


def findings(source: str) -> Iterator[Finding]:
    """Yield every finding, in no order. A source that cannot be read has a finding that says so."""
    if len(source) > MAX_SOURCE:
        yield Finding("too-long", HIGH, None, f"{len(source)} characters: more than {MAX_SOURCE} are not screened")
        return
    for match in ADDRESSED.finditer(source):
        yield Finding("judge-addressed", MEDIUM, source.count("\n", 0, match.start()) + 1, match[0])
    yield from of_kernelguard(source)
    try:
        yield from tampering(PythonFile(source))
    except (SyntaxError, ValueError) as error:
        yield Finding("unreadable", MEDIUM, None, str(error))
    except (RecursionError, MemoryError):
        yield Finding("unreadable", HIGH, None, "nested too deeply to be read")


def of_kernelguard(source: str) -> Iterator[Finding]:
    """Yield what kernelguard's rules match, read in a process of its own: some of them backtrack for minutes."""
    spec = importlib.util.find_spec("kernelguard")
    if spec is None or spec.origin is None:
        yield Finding("kernelguard:missing", LOW, None, "kernelguard is not installed")
        return
    script = [kernelguard_process.__file__, str(Path(spec.origin).parent)]
    run = functools.partial(subprocess.run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, check=False)
    try:
        ended = run(
            [sys.executable, "-I", "-S", "-B", *script], input=source.encode("utf-8", "replace"), timeout=TIMEOUT_S
        )
        output, finished = ended.stdout, ended.returncode == 0
    except subprocess.TimeoutExpired as expired:
        output, finished = expired.stdout or b"", False
    if not finished:
        yield Finding("kernelguard:unfinished", MEDIUM, None, "its rules did not come to an end on this text")
    for line in output.decode("ascii", "replace").splitlines():
        if line.endswith("]"):  # a process that is ended may leave half a line
            pattern, outcome, evidence = json.loads(line)
            name = f"kernelguard:{pattern.lower().replace('_', '-')}"
            yield Finding(name, SEVERITIES.get(outcome, LOW), None, str(evidence))
