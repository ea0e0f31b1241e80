"""Results for people, in the terminal."""

from collections.abc import Iterator
from typing import Any, cast

from rich.console import Console
from rich.table import Table

WIDTH = 120
MOST_COLUMNS, AT_ONCE = 12, 6
"""Fields of a record beside each other, and records beside each other where there are more."""
EMPTY = (None, "", [], (), {})


def terminal() -> Console:
    """Return the console; where no terminal tells its width (a pipeline's log), wide enough for our tables."""
    console = Console(soft_wrap=True)
    return console if console.is_terminal else Console(soft_wrap=True, width=WIDTH)


def show(value: Any) -> None:
    """Print a result: plain values as lines, lists of records as tables, records within as their own lines."""
    console = terminal()
    for key, item in value.items() if isinstance(value, dict) else [("", value)]:
        _show(console, str(key), item)


def _show(console: Console, key: str, item: Any) -> None:
    items = cast(list[Any], item) if isinstance(item, list) else []
    if items and all(isinstance(r, dict) for r in items):
        for table in _tables(key, cast(list[dict[str, Any]], items)):
            console.print(table)
    elif item not in EMPTY:
        console.print(f"{key + ':':16} {text(item)}", highlight=False, markup=False)


def _tables(title: str, rows: list[dict[str, Any]]) -> Iterator[Table]:
    """Yield a table of records, a row each; where they have more fields than a screen has room for, a column each."""
    fields = list(rows[0])
    if len(fields) <= MOST_COLUMNS:
        yield _table(title, [fields, *([text(row.get(f)) for f in fields] for row in rows)])
        return
    for first in range(0, len(rows), AT_ONCE):
        part = rows[first : first + AT_ONCE]
        yield _table(title, [[field, *(text(row.get(field)) for row in part)] for field in fields])


def _table(title: str, cells: list[list[str]]) -> Table:
    table = Table(*cells[0], title=title, title_justify="left")
    for row in cells[1:]:
        table.add_row(*row)
    return table


def text(value: Any) -> str:
    """Return a value as a person writes it."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(text(v) for v in cast(list[Any], value))
    if isinstance(value, dict):
        return ", ".join(f"{k} {text(v)}" for k, v in cast(dict[str, Any], value).items() if v not in EMPTY)
    return "" if value is None else str(value)
