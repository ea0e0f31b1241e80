"""The process in which kernelguard's rules read one source. It limits its own CPU time and memory and opens no file.

Run as a script, with the folder that holds kernelguard; it imports nothing of this project. The source is on standard
input. It writes a line of JSON (rule, outcome, evidence) for each match and exits with 0 when all rules have ended.
"""

import importlib
import json
import re
import resource
import signal
import sys
from typing import Any

CPU_S = 0.5
"""CPU time for all rules on one source; an honest kernel takes some milliseconds."""


def print_matches(guard: Any, text: str) -> None:
    """Print what each rule matches. Long runs of newlines and of word characters, which take long, are cut."""
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    facts = guard.build_submission_facts(re.sub(r"(?<!\w)(\w{200})\w+", r"\1", text))
    for detect in guard.CODE_DETECTORS:
        try:
            hits = [
                (h["pattern"], guard.get_rule_policy(h["pattern"]).max_outcome, h["evidence"]) for h in detect(facts)
            ]
        except Exception:
            continue
        for hit in hits:
            print(json.dumps(hit), flush=True)


def main() -> None:
    """Load the rules, read the source, print the matches."""
    sys.path.insert(0, sys.argv[1])
    import kernelguard as guard

    importlib.import_module("unicodedata")  # Python loads it late, for identifiers outside ASCII
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    print_matches(guard, text)


if __name__ == "__main__":
    main()
