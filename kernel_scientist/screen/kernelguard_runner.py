"""kernelguard's rules, in a process that ends in time.

They are regular expressions, and some backtrack for minutes on a hostile text, with the interpreter's lock held.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernel_scientist.screen import kernelguard_process
from kernel_scientist.screen.finding import HIGH, LOW, MEDIUM, Finding

OUTCOMES = {"auto_filter": HIGH, "suspicious": MEDIUM, "low_confidence": LOW}
"""What kernelguard would do about a hit: that is what its authors found the rule to be worth."""


def start(source: str) -> subprocess.Popen[bytes] | None:
    """Start the process on a source; None when kernelguard is not installed."""
    spec = importlib.util.find_spec("kernelguard")
    if spec is None or spec.origin is None:
        return None
    command = [sys.executable, "-I", "-S", "-B", kernelguard_process.__file__, str(Path(spec.origin).parent)]
    with tempfile.TemporaryFile() as text:  # a pipe would hold no more than 64 KiB before the helper reads
        text.write(source.encode("utf-8", "replace"))
        text.seek(0)
        return subprocess.Popen(command, stdin=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={})


def answers(helper: subprocess.Popen[bytes] | None) -> Iterator[Finding]:
    """Yield what the process says, once it has ended."""
    if helper is None:
        yield Finding("kernelguard:missing", LOW, None, "kernelguard is not installed")
        return
    try:
        out, _ = helper.communicate(timeout=10)
    except subprocess.TimeoutExpired:  # its own timer counts processor time, and the machine may be busy
        helper.kill()
        out, _ = helper.communicate()
    if helper.returncode:
        yield Finding("kernelguard:unfinished", MEDIUM, None, "its rules did not come to an end on this text")
    for line in out.decode("ascii", "replace").splitlines():
        if line.endswith("]"):  # a process that is ended may leave half a line
            pattern, outcome, evidence = json.loads(line)
            name = f"kernelguard:{pattern.lower().replace('_', '-')}"
            yield Finding(name, OUTCOMES.get(outcome, LOW), None, str(evidence))
