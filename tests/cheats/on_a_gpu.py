"""The table of `gpu/README.md`: what stops each cheat, and how it ended on a GPU. `python -m tests.cheats.on_a_gpu`.

What stops it is the line `# stopped by: ...` in its header. How it ended is the newest entry of `cheats` in a
`benchmarks/results/first-light-*/summary.json`; a cheat without one has never run on a GPU.
"""

import json
import re
from pathlib import Path
from typing import Any

from tests.cheats import corpus
from tests.conftest import ROOT

PAGE = corpus.GPU / "README.md"
STOPPED_BY = re.compile(r"^# stopped by: (.+)$", re.MULTILINE)
HEAD = """# The corpus for GPUs

`python -m tests.cheats.on_a_gpu` writes this page from the headers of the files and from the results of
`make first-light`. "Stopped by" names the mechanism that is meant to stop the kernel. The last column says what
happened on a GPU. There "incorrect" or "rejected" may have another reason than the one that is named.

"x times as fast" compares with the quickest honest kernel of the same run. Up to 1.05 counts as no gain.
"""


def page() -> str:
    """Return the whole page."""
    ended, fixtures = results(), corpus.load(corpus.GPU)
    cheats = [fixture for fixture in fixtures if fixture.cheat]
    honest = [fixture for fixture in fixtures if not fixture.cheat]
    lines = [HEAD, "| cheat | stopped by | on a GPU |", "|---|---|---|"]
    lines += [f"| {one.name} | {stopped_by(one)} | {ended.get(one.name, 'never run on a GPU')} |" for one in cheats]
    lines += ["", "| honest kernel | on a GPU |", "|---|---|"]
    lines += [f"| {one.name} | {ended.get(one.name, 'never run on a GPU')} |" for one in honest]
    return "\n".join(lines) + "\n"


def stopped_by(fixture: corpus.Fixture) -> str:
    """Return what a cheat's header says; empty without it."""
    found = STOPPED_BY.search(fixture.source)
    return found[1] if found else ""


def results() -> dict[str, str]:
    """Return how each kernel ended on a GPU, in words, by name: from the newest run of it."""
    found: dict[str, str] = {}
    for file in sorted((ROOT / "benchmarks" / "results").glob("first-light-*/summary.json"), key=_date):
        summary: dict[str, Any] = json.loads(file.read_text())
        gpu = f"{summary['device'].removeprefix('NVIDIA ').split()[0]}, {summary['date']}"
        found |= {name: f"{_words(one)} ({gpu})" for name, one in summary["cheats"].items()}
    return found


def _date(file: Path) -> str:
    return str(json.loads(file.read_text())["date"])


def _words(one: dict[str, Any]) -> str:
    honest = [ratio for name, ratio in one.get("faster_than", {}).items() if name != "reference"]
    speed = f", {min(honest):.2f} times as fast" if honest else ""
    return f"{one['verdict']}{speed}{'' if one['as_expected'] else ': **it gained**'}"


if __name__ == "__main__":
    PAGE.write_text(page())
