"""Screening of a kernel's source before it runs: this project's tampering rules and kernelguard's rules."""

import functools
import importlib.util
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_scientist.evaluation.screen.source import PythonFile, RuleMatch, Severity
from kernel_scientist.evaluation.screen.tampering import tampering

MAX_SOURCE = 200_000
"""Longest source that is screened, in characters; honest kernels have at most a tenth of that."""
MAX_MATCHES = 8
"""Most findings with the same name that are kept."""
REMEMBERED = 256
"""Sources whose findings are cached: incumbents, champions and tuned kernels are screened repeatedly."""
TIMEOUT_S = 120
"""Elapsed time for kernelguard's rules; what ends them is the limit on CPU time, which a busy machine leaves alone."""
KERNELGUARD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
sys.path.insert(0, sys.argv.pop(1))
import kernelguard
kernelguard.main()
"""
"""Program that runs kernelguard under CPU and memory limits: some of its rules backtrack for minutes."""
ADDRESSED = re.compile(
    r"\b(?:note|message)? ?(?:to|for) the (?:\w+ing )?(?:reviewer|judge|grader|evaluator|model)\b|\bas an? (?:ai|llm)\b"
    r"|\b(?:ignore|disregard) (?:\w+ ){0,2}(?:previous|prior|above|earlier|instructions)\b|\brate this kernel\b",
    re.IGNORECASE,
)
"""Pattern of prose that addresses the evaluator, such as a note to a language model that judges kernels."""


@functools.lru_cache(maxsize=REMEMBERED)
def screen(source: str) -> tuple[RuleMatch, ...]:
    """Return the findings of a source: tampering first, then by severity and line. The result is deterministic.

    Never raises, for any text, and ends in bounded time.
    """
    by_name: defaultdict[str, dict[int | None, RuleMatch]] = defaultdict(dict)
    for finding in sorted(findings(source), key=_order):
        lines = by_name[finding.name]
        if finding.line not in lines and len(lines) < MAX_MATCHES:
            detail = " ".join(finding.detail[:200].split()).encode("unicode_escape").decode()
            lines[finding.line] = finding._replace(detail=detail[:120])
    return tuple(sorted((finding for lines in by_name.values() for finding in lines.values()), key=_order))


def _order(finding: RuleMatch) -> tuple[bool, int, int, str, str]:
    rank = list(Severity).index(finding.severity)
    return not finding.tampering, -rank, finding.line or 0, finding.name, finding.detail


def findings(source: str) -> Iterator[RuleMatch]:
    """Yield every finding, in no particular order. An unreadable source yields the finding `unreadable`."""
    if len(source) > MAX_SOURCE:
        detail = f"{len(source)} characters: more than {MAX_SOURCE} are not screened"
        yield RuleMatch("too-long", Severity.HIGH, None, detail)
        return
    for match in ADDRESSED.finditer(source):
        yield RuleMatch("judge-addressed", Severity.MEDIUM, source.count("\n", 0, match.start()) + 1, match[0])
    yield from of_kernelguard(source)
    try:
        yield from tampering(PythonFile(source))
    except SyntaxError as error:
        yield RuleMatch("unreadable", Severity.MEDIUM, error.lineno, error.msg)
    except ValueError as error:
        yield RuleMatch("unreadable", Severity.MEDIUM, None, str(error))
    except (RecursionError, MemoryError):
        yield RuleMatch("unreadable", Severity.HIGH, None, "nested too deeply to be read")


def of_kernelguard(source: str) -> Iterator[RuleMatch]:
    """Yield the matches of kernelguard's rules, which run in a separate process."""
    spec = importlib.util.find_spec("kernelguard")
    assert spec is not None and spec.origin is not None, "kernelguard is a dependency"
    command = [sys.executable, "-I", "-S", "-B", "-c", KERNELGUARD, str(Path(spec.origin).parent), "--api-mode"]
    text = source.encode("utf-8", "replace")
    try:
        run = subprocess.run(command, input=text, capture_output=True, timeout=TIMEOUT_S, env={}, check=True)
        matches: list[dict[str, Any]] = json.loads(run.stdout)["matched_patterns"]
    except (subprocess.SubprocessError, ValueError, KeyError):
        yield RuleMatch(
            "kernelguard:unfinished", Severity.MEDIUM, None, "its rules did not finish on this text in time"
        )
        return
    for match in matches:
        severity = Severity.HIGH if match["severity"] == "critical" else Severity(match["severity"])
        yield RuleMatch(f"kernelguard:{match['pattern'].lower().replace('_', '-')}", severity, None, match["evidence"])
