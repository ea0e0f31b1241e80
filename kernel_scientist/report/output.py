"""How results are shown: numbers as text, tables for terminal and page, lines in the terminal, files."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, PackageLoader
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.factors import bounds, factor, number

WIDTH = 240
"""Most characters per line of a table where there is no terminal."""
LONG = 60
"""Characters from which the items of a list have lines of their own."""
EMPTY = (None, "", [], (), {})
STYLES = {"champion": "bold green", "failed": "red", "running": "dim", "total": "bold"}
"""Styles of rows in the terminal; pages have CSS classes of the same names."""


@dataclass(frozen=True)
class Table:
    """A table for terminal and page.

    `columns`: headers by the key of a value. A row may also have a `style` (one of `STYLES`) and a `link` (the anchor
    to which a page links its `kernel`).
    """

    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    title: str = ""

    @cached_property
    def cells(self) -> list[dict[str, str]]:
        """Return the rows as texts."""
        return [{key: _cell(row, key) for key in row} for row in self.rows]

    def numeric(self, column: str) -> bool:
        """Whether a column is aligned to the right: its cells begin like numbers or intervals."""
        return all(row.get(column, "")[:1] in "+-[0123456789" for row in self.cells)

    def __rich__(self) -> RichTable:
        table = RichTable(title=self.title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2))
        for key, header in self.columns.items():
            table.add_column(header, justify="right" if self.numeric(key) else "left")
        for row in self.cells:
            table.add_row(*(Text(row.get(key, "")) for key in self.columns), style=STYLES.get(row.get("style", ""), ""))
        return table


def _cell(row: Mapping[str, Any], key: str) -> str:
    """Return a cell's text. A speedup in a row with its interval is stated as the interval allows."""
    value = row[key]
    is_factor = key.endswith(("speedup", "ratio")) and isinstance(value, float) and "interval" in row
    return factor(value, row["interval"], str(row.get("dropped") or "")) if is_factor else text(value, key)


def text(value: Any, key: str = "") -> str:
    """Return a JSON value as text; its key tells intervals. Empty fields of an object are left out.

    A speedup is a text before it gets here: `records.factors.factor` puts it beside its interval.
    """
    if key.endswith("interval") and value:
        return bounds(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (list, tuple)):
        listed = ", ".join(text(item) for item in cast(list[Any], value))
        return f"[{listed}]" if key == "interval_us" else listed
    if isinstance(value, dict):
        return ", ".join(f"{k} {text(v, k)}" for k, v in cast(dict[str, Any], value).items() if v not in EMPTY)
    return "" if value is None else str(value)


def parts(value: Mapping[str, Any]) -> Iterator[str | Table]:
    """Yield a JSON object: lists of records as tables, lists of sentences as lists, other values as lines.

    Empty values are left out.
    """
    for key, field in value.items():
        if isinstance(field, list) and field and isinstance(field[0], dict):
            rows = cast(list[dict[str, Any]], field)
            yield Table({column: column for row in rows for column in row}, rows, key)
        elif isinstance(field, list) and any(len(str(item)) > LONG for item in cast(list[Any], field)):
            yield f"{key}:"
            yield from (f"- {text(item)}" for item in cast(list[Any], field))
        elif field not in EMPTY:
            yield f"{key + ':':16} {text(field, key)}"


def say(shown: Iterable[str | Table]) -> None:
    """Print lines and tables."""
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console = Console(soft_wrap=True, width=WIDTH)
    for position, part in enumerate(shown):
        if position and isinstance(part, Table):
            console.print()
        console.print(part, highlight=False, markup=False)


def html(template: str, **values: Any) -> str:
    """Return a page from its template in `pages/`."""
    loader = PackageLoader("kernel_scientist.report.pages", ".")
    templates = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return templates.get_template(template).render(values)


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV with a header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def write_json(path: Path, value: Any) -> None:
    """Write a JSON value or a record to a file. Raises like `write`."""
    write(path, json_text(value))


def json_text(value: Any) -> str:
    """Return a JSON value or a record as the text of a file."""
    return json.dumps(as_json(value), indent=1) + "\n"


def as_json(value: Any) -> Any:
    """Return a record as a JSON value, and a list of records; anything else as it is."""
    if isinstance(value, list):
        return [as_json(one) for one in cast(list[Any], value)]
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def write(path: Path, content: str) -> None:
    """Write a file and the folders above it. Raises SetupError when that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from error
