"""kernelguard's rules, in a process that is loaded once and reads each source in a fork that ends in time.

They are regular expressions, and some backtrack for minutes on a hostile text, with the interpreter's lock held.
"""

import contextlib
import importlib.util
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from kernel_scientist.evaluate.screen import kernelguard_process
from kernel_scientist.evaluate.screen.finding import HIGH, LOW, MEDIUM, Finding

OUTCOMES = {"auto_filter": HIGH, "suspicious": MEDIUM, "low_confidence": LOW}
"""What kernelguard would do about a hit: that is what its authors found the rule to be worth."""
PATIENCE_S = 10
"""For one source: the fork's own timer counts processor time, and the machine may be busy."""


class Guard:
    """The process, started when it is first asked; it ends with `close`, or with this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """End the process, and what it is reading."""
        with self._lock:
            self._stop()

    def findings(self, source: str) -> Iterator[Finding]:
        """Yield what the rules say of a source. Never raises."""
        if importlib.util.find_spec("kernelguard") is None:
            yield Finding("kernelguard:missing", LOW, None, "kernelguard is not installed")
            return
        with self._lock:
            text = source.encode("utf-8", "replace")
            lines = self._ask(text) or self._ask(text)  # somebody may have ended it since it was last asked
        if lines[-1:] != ["0"]:
            yield Finding("kernelguard:unfinished", MEDIUM, None, "its rules did not come to an end on this text")
        for line in lines:
            if line.endswith("]"):  # a process that is ended may leave half a line
                pattern, outcome, evidence = json.loads(line)
                name = f"kernelguard:{pattern.lower().replace('_', '-')}"
                yield Finding(name, OUTCOMES.get(outcome, LOW), None, str(evidence))

    def _ask(self, source: bytes) -> list[str]:
        """Return the answer's lines: the last one is a number, or the process has ended."""
        said, sock = b"", self._socket or self._start()
        with contextlib.suppress(OSError):
            sock.settimeout(PATIENCE_S)
            sock.sendall(struct.pack("<I", len(source)) + source)
            while more := sock.recv(1 << 16):
                said += more
                lines = said.decode("ascii", "replace").splitlines()
                if said.endswith(b"\n") and lines[-1].isdigit():
                    return lines
        self._stop()
        return said.decode("ascii", "replace").splitlines()

    def _start(self) -> socket.socket:
        spec = importlib.util.find_spec("kernelguard")
        assert spec is not None and spec.origin is not None
        ours, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            script = [kernelguard_process.__file__, str(Path(spec.origin).parent), str(end)]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", *script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                pass_fds=[end],
                process_group=0,
            )
        self._socket = ours
        return ours

    def _stop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = self._socket = None
