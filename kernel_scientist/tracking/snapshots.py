"""Snapshots of a population: files with some hundred kernels each, so that a long campaign is read back in seconds.

Everything in a snapshot is also in the kernels' own runs; without snapshots they are read run by run.
"""

import base64
import json
import time
from collections.abc import Iterable
from typing import Any

from kernel_scientist.population.entry import Entry, Pair
from kernel_scientist.population.lineage import Population, unpack
from kernel_scientist.records.kernel import Verdict

KERNELS = 250
"""Kernels after which a snapshot is written."""
FOLDER = "population"
"""Folder of the campaign's artifacts."""
VERSION = 1
"""Version of the format; others are not read."""
FIELDS = (*Entry._fields, *Pair._fields)
"""Entries with other fields are made anew."""


def dump(population: Population, names: Iterable[str]) -> str:
    """Return a snapshot of these kernels: a line with version and time, then a line per kernel."""
    head = {"version": VERSION, "time_ms": int(time.time() * 1000), "fields": FIELDS}
    lines = [json.dumps(head)]
    for name in names:
        record = base64.b64encode(population.record(name)).decode()
        lines.append(json.dumps([*population.entry(name), record]))
    return "\n".join(lines)


def load(text: str, population: Population) -> int:
    """Add a snapshot's kernels to a population; return when it was written, in milliseconds.

    The entries of an older version, which had other fields, are made anew from the records. Returns 0, and adds
    nothing, if the format is another one.
    """
    lines = iter(text.splitlines())
    head: dict[str, Any] = json.loads(next(lines))
    if head["version"] != VERSION:
        return 0
    is_current = tuple(head["fields"]) == FIELDS
    for line in lines:
        *values, encoded = json.loads(line)
        record = base64.b64decode(encoded)
        if is_current:
            entry = Entry(*values)
            pairs = tuple(Pair(*pair) for pair in entry.pairs)
            entry = entry._replace(verdict=Verdict(entry.verdict), cell=tuple(entry.cell), pairs=pairs)
            population.insert(entry, record)
        else:
            population.add(unpack(record))
    return head["time_ms"]
