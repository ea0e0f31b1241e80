"""Snapshots of a population: files with some hundred kernels each, so that a long campaign is read back in seconds.

Everything in a snapshot is also in the kernels' own runs; without snapshots they are read run by run.
"""

import base64
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

from kernel_scientist.population.entry import Entry
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.kernel import Verdict

KERNELS = 250
"""Kernels after which a snapshot is written."""
FOLDER = "population"
"""Folder of the campaign's artifacts."""
VERSION = 1
"""Version of the format; others are not read."""


def dump(population: Population, names: Iterable[str]) -> str:
    """Return a snapshot of these kernels: a line with version and time, then a line per kernel."""
    head = {"version": VERSION, "time_ms": int(time.time() * 1000), "fields": Entry._fields}
    lines = [json.dumps(head)]
    for name in names:
        record = base64.b64encode(population.record(name)).decode()
        lines.append(json.dumps([*population.entry(name), record]))
    return "\n".join(lines)


def load(text: str) -> tuple[int, Iterator[tuple[Entry, bytes]]]:
    """Return when a snapshot was written, in milliseconds, and its kernels; none if its format is another one."""
    lines = iter(text.splitlines())
    head: dict[str, Any] = json.loads(next(lines))
    if head["version"] != VERSION or tuple(head["fields"]) != Entry._fields:
        return 0, iter(())
    return head["time_ms"], map(_kernel, lines)


def _kernel(line: str) -> tuple[Entry, bytes]:
    *values, record = json.loads(line)
    entry = Entry(*values)
    entry = entry._replace(verdict=Verdict(entry.verdict), beaten=tuple(entry.beaten), cell=tuple(entry.cell))
    return entry, base64.b64decode(record)
