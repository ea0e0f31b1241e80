"""Writes parameters, commands and records in docs/reference/ from the code (`make docs`)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from kernel_scientist.cli import main
from kernel_scientist.records import (
    campaign_result,
    comparison_result,
    compilation,
    control_result,
    evaluation,
    evidence,
    gpu,
    kernel,
    param_comments,
    params,
    problem_result,
    raw_samples,
    results,
    sampled,
    source_line,
    suite_result,
)
from kernel_scientist.records.base import Record
from kernel_scientist.report import screen, status
from kernel_scientist.search import hypotheses

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by `make docs`; do not edit. -->\n\n"
COLUMNS = ("name", "type", "default", "meaning")


def pages() -> dict[str, str]:
    """Return the content of the pages by file name."""
    made = {"params.md": _params(), "cli.md": _cli(), "records.md": _records()}
    return {name: NOTE + re.sub(r"\n{3,}", "\n\n", text).strip() + "\n" for name, text in made.items()}


def _params() -> str:
    comments = param_comments.read(ROOT / "params.yaml")
    rows: list[list[str]] = []
    for section, field in _named(params.Params):
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, params.Section):
            rows += [_field(f"{section}.{key}", part, comments, field.default) for key, part in _named(kind)]
        else:
            rows.append(_field(section, field, comments))
    roles = "\n\n".join(
        f"**{title}.** {_doc(model)}\n\n{_table(COLUMNS, [_field(key, part, {}) for key, part in fields])}"
        for title, model, fields in (
            ("Role", params.Role, _named(params.Role)),
            ("Designer, writer and repairer, in addition", params.Looking, _added(params.Looking, params.Role)),
            ("Writer and repairer, in addition", params.Writing, _added(params.Writing, params.Looking)),
            ("Rates", params.Rates, _named(params.Rates)),
        )
    )
    return f"""# Parameters

All parameters of [params.yaml](../../params.yaml). `--set NAME=VALUE` overrides one; in the pipeline
`dvc exp run -S NAME=VALUE` does. An unknown name, a wrong type and a value out of range are errors.

{_table(COLUMNS, rows)}

## Values of `llm.selector` to `llm.judge`

{roles}
"""


def _named(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    return [(field.alias or name, field) for name, field in model.model_fields.items()]


def _field(name: str, field: FieldInfo, comments: Mapping[str, str], section: Any = None) -> list[str]:
    """Return a row of a table. `section`: the default of the section that the field belongs to."""
    default = field.get_default(call_default_factory=True)
    if section is not None:
        default = next(getattr(section, own) for own, f in type(section).model_fields.items() if f is field)
    limits = [f"{sign} {getattr(m, key)}" for m in field.metadata for key, sign in LIMITS.items() if hasattr(m, key)]
    meaning = comments.get(name) or field.description or ROLE * (_type(field.annotation) == "Role")
    return [f"`{name}`", ", ".join([_type(field.annotation), *limits]), _default(default), meaning]


ROLE = "who plays this role, see below"
LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def _type(kind: Any) -> str:
    """Return a type in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys("null" if part is type(None) else _type(part) for part in parts))
    if origin in (tuple, list):
        return f"[{', '.join(_type(part) for part in parts if part is not ...)}{', ...' if ... in parts else ''}]"
    if origin is dict:
        return f"{_type(parts[0])} → {_type(parts[1])}"
    if origin is not None and hasattr(kind, "__metadata__"):
        return _type(parts[0])
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return params.Role.__name__ if issubclass(kind, params.Role) else kind.__name__
    plain = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return plain.get(kind) or getattr(kind, "__name__", str(kind))


def _added(kind: type[BaseModel], to: type[BaseModel]) -> list[tuple[str, Any]]:
    """Return the fields that a kind has in addition to those of another."""
    return [(key, part) for key, part in _named(kind) if key not in to.model_fields]


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, params.Role):  # the kinds of roles differ by their defaults, which are to be seen
        value = params.Role(**value.model_dump(include=set(params.Role.model_fields)))
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    shown = {None: "null", True: "true", False: "false"}.get(value) if isinstance(value, bool | None) else None
    if isinstance(value, tuple | list):
        shown = f"[{', '.join(map(str, value))}]"
    if isinstance(value, dict):
        shown = "{" + ", ".join(f"{key}: {part}" for key, part in value.items()) + "}"
    return f"`{str(value) if shown is None else shown}`" if value != "" else "empty"


def _cli() -> str:
    context = click.Context(main, info_name="kernel-scientist")
    return f"""# Commands

`kernel-scientist COMMAND --help` prints the same. `--json` prints the result on standard output; progress and errors
go to standard error.

| exit code | meaning |
|---|---|
| 0 | done; a correct kernel that is not faster also gives 0 |
| 1 | the work says no: no correct kernel, not confirmed, does not compile |
| 2 | the call or the set-up is wrong; one sentence says what to do |
| 3 | undecided: the evaluator could not decide, or a kernel was compiled and nothing here executes it |
| 130 | stopped by Ctrl-C; a campaign also by SIGTERM or SIGHUP |
| 141 | nobody reads what it prints any more |

{chr(10).join(_command(main, context))}
"""


def _command(group: click.Group, context: click.Context) -> Iterable[str]:
    for name, command in sorted(group.commands.items()):
        own = click.Context(command, parent=context, info_name=name)
        if isinstance(command, click.Group):
            yield from _command(command, own)
            continue
        usage = " ".join((own.command_path, *command.collect_usage_pieces(own)))
        yield f"## {own.command_path.removeprefix('kernel-scientist ')}\n\n```\n{usage}\n```\n\n{_help(command)}\n"
        options = [p.get_help_record(own) for p in command.get_params(own)]
        rows = [[f"`{record[0]}`", record[1]] for record in options if record and "--help" not in record[0]]
        yield _table(("option", "meaning"), rows) + "\n" if rows else ""


def _help(command: click.Command) -> str:
    """Return a command's help; its examples as code."""
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    return re.sub(r"Example: (.+)", r"```\n\1\n```", text)


def _records() -> str:
    modules = (
        results,
        campaign_result,
        suite_result,
        comparison_result,
        control_result,
        compilation,
        kernel,
        evaluation,
        problem_result,
        raw_samples,
        sampled,
        evidence,
        source_line,
        gpu,
        hypotheses,
        status,
        screen,
    )
    found = [r for module in modules for r in vars(module).values() if _own(r, module.__name__)]
    sections = [f"## {record.__name__}\n\n{_doc(record)}\n\n{_record(record)}" for record in found]
    verdicts = ", ".join(f"`{verdict.value}`" for verdict in kernel.Verdict)
    return f"""# Records

Records are frozen and typed; an unknown field is an error. MLflow's artifacts hold them as JSON, and
`kernel-scientist watch --json` prints a `Screen`. `model_validate_json` reads one, `model_json_schema` returns its JSON
Schema:

```python
from kernel_scientist.records.evaluation import Evaluation

Evaluation.model_validate_json(open("evaluation.json").read()).speedup_over("reference")
Evaluation.model_json_schema()
```

`Verdict` is one of {verdicts}.

{chr(10).join(sections)}
"""


def _own(value: Any, module: str) -> bool:
    return isinstance(value, type) and issubclass(value, Record) and value.__module__ == module


def _record(record: type[Record]) -> str:
    return _table(COLUMNS, [_field(name, field, {}) for name, field in record.model_fields.items()]) + "\n"


def _doc(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [[*columns], ["---" for _ in columns], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
