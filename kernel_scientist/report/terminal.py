"""Results for people, in the terminal."""

from typing import Any, cast

from rich.console import Console
from rich.table import Table

WIDTH = 120


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
        rows = cast(list[dict[str, Any]], items)
        table = Table(title=key, title_justify="left")
        columns = list(rows[0])
        for column in columns:
            table.add_column(column)
        for row in rows:
            table.add_row(*(text(row.get(c)) for c in columns))
        console.print(table)
    elif item not in (None, "", [], {}):
        console.print(f"{key + ':':16} {text(item)}", highlight=False, markup=False)


def text(value: Any) -> str:
    """Return a value as a person writes it."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(text(v) for v in cast(list[Any], value))
    if isinstance(value, dict):
        return ", ".join(f"{k} {text(v)}" for k, v in cast(dict[str, Any], value).items())
    return "" if value is None else str(value)
