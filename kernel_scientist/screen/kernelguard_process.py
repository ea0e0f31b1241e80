"""The process in which kernelguard's rules run: its own timer ends it, and it can open no file once they are loaded.

Run as a script, with the folder that holds kernelguard, a source on its input, and nothing of this project to import.
"""

import importlib
import json
import re
import resource
import signal
import sys


def main() -> None:
    """Print what each rule hits, a line of JSON each."""
    signal.setitimer(signal.ITIMER_PROF, 0.5)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    sys.path.insert(0, sys.argv[1])
    import kernelguard as guard

    importlib.import_module("unicodedata")  # Python loads it late, for identifiers outside ASCII
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
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


if __name__ == "__main__":
    main()
