"""Print JSON values in the terminal: values as lines, lists of records as tables."""

from collections.abc import Iterator
from typing import Any, cast

from rich.console import Console
from rich.table import Table

WIDTH = 120
MOST_COLUMNS, RECORDS_PER_TABLE = 12, 6
"""Records with at most `MOST_COLUMNS` fields are rows; larger ones are columns, `RECORDS_PER_TABLE` in one table."""
EMPTY = (None, "", [], (), {})


def terminal() -> Console:
    """Return the console; without a terminal (in a pipeline's log) it is `WIDTH` characters wide."""
    console = Console(soft_wrap=True)
    return console if console.is_terminal else Console(soft_wrap=True, width=WIDTH)


def show(value: Any) -> None:
    """Print a result: plain values as lines, lists of records as tables; empty values are left out."""
    console = terminal()
    for key, field in value.items() if isinstance(value, dict) else [("", value)]:
        _show(console, str(key), field)


def _show(console: Console, key: str, value: Any) -> None:
    rows = cast(list[Any], value) if isinstance(value, list) else []
    if rows and all(isinstance(r, dict) for r in rows):
        for table in _tables(key, cast(list[dict[str, Any]], rows)):
            console.print(table)
    elif value not in EMPTY:
        console.print(f"{key + ':':16} {text(value)}", highlight=False, markup=False)


def _tables(title: str, rows: list[dict[str, Any]]) -> Iterator[Table]:
    """Yield a table with a row per record; for records with many fields, tables with a column per record."""
    fields = list(rows[0])
    if len(fields) <= MOST_COLUMNS:
        yield _table(title, [fields, *([text(row.get(f)) for f in fields] for row in rows)])
        return
    for first in range(0, len(rows), RECORDS_PER_TABLE):
        part = rows[first : first + RECORDS_PER_TABLE]
        yield _table(title, [[field, *(text(row.get(field)) for row in part)] for field in fields])


def _table(title: str, cells: list[list[str]]) -> Table:
    table = Table(*cells[0], title=title, title_justify="left")
    for row in cells[1:]:
        table.add_row(*row)
    return table


def text(value: Any) -> str:
    """Return a value as readable text."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(text(v) for v in cast(list[Any], value))
    if isinstance(value, dict):
        return ", ".join(f"{k} {text(v)}" for k, v in cast(dict[str, Any], value).items() if v not in EMPTY)
    return "" if value is None else str(value)
