"""The process in which kernelguard's rules run: a fork for each source, ended by its own timer, that opens no file.

Run as a script, with the folder that holds kernelguard and the number of a socket, and nothing of this project to
import. On the socket, again and again: a source's length in bytes (u32) and the source; then what each rule hits, a
line of JSON each, perhaps half a line, and at last a line with a number: 0 when the rules came to their end. It ends
with the socket.
"""

import importlib
import json
import os
import re
import resource
import signal
import socket
import struct
import sys
from typing import Any


def hits(guard: Any, text: str) -> None:
    """Print what each rule hits."""
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    facts = guard.build_submission_facts(re.sub(r"(?<!\w)(\w{200})\w+", r"\1", text))
    for detect in guard.CODE_DETECTORS:
        try:
            found = [
                (h["pattern"], guard.get_rule_policy(h["pattern"]).max_outcome, h["evidence"]) for h in detect(facts)
            ]
        except Exception:
            continue
        for hit in found:
            print(json.dumps(hit), flush=True)


def answer(guard: Any, text: str, sock: socket.socket) -> int:
    """Read one source in a fork; return its exit status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.dup2(sock.fileno(), 1)
            signal.setitimer(signal.ITIMER_PROF, 0.5)
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
            hits(guard, text)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def main() -> None:
    """Load the rules once; read what comes."""
    sock = socket.socket(fileno=int(sys.argv[2]))
    sys.path.insert(0, sys.argv[1])
    import kernelguard as guard

    importlib.import_module("unicodedata")  # Python loads it late, for identifiers outside ASCII
    while len(length := sock.recv(4, socket.MSG_WAITALL)) == 4:
        text = sock.recv(struct.unpack("<I", length)[0], socket.MSG_WAITALL).decode("utf-8", "replace")
        sock.sendall(b"\n%d\n" % answer(guard, text, sock))


if __name__ == "__main__":
    main()
