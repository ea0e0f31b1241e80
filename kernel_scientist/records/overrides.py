"""Overrides of parameters, as the command line gives them: `key.sub=value`; the keys that there are."""

import ast
from collections.abc import Iterable
from typing import Any, cast, get_args

import yaml
from pydantic import BaseModel

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.yaml_text import DoubledKeyError, parse_yaml


def apply(values: dict[str, Any], override: str) -> str:
    """Apply an override (`search.generations=10`, the value as YAML) to a mapping of parameters; return its key.

    A mapping changes the keys that it names. Raises SetupError.
    """
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise SetupError(f"--set {override!r}: expected KEY=VALUE, such as search.generations=10")
    try:
        value = parse_yaml(text, yaml.SafeLoader)  # libyaml does not say what is wrong with half a character
    except DoubledKeyError as error:
        raise SetupError(f"--set {override!r}: {error}") from error
    except yaml.YAMLError as error:
        raise SetupError(f"--set {override!r}: the value is not YAML") from error
    node = values
    for part in parts[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise SetupError(f"--set {override!r}: '{part}' is a value, not a section")
        node = cast(dict[str, Any], child)
    node[parts[-1]] = _merged(node.get(parts[-1]), value)
    return ".".join(parts)


def names(overrides: Iterable[str], key: str) -> bool:
    """Whether one of some overrides is of this parameter."""
    return any(one.partition("=")[0].strip() == key for one in overrides)


def of(key: str, text: str) -> str:
    """Return the override that gives a parameter the value with this text, as `str` writes it."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    written = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=2**31)
    return f"{key}={written.removesuffix(chr(10)).removesuffix('...').strip()}"


def _merged(before: Any, value: Any) -> Any:
    """Return a value that takes the place of another; a mapping leaves the keys that it does not name."""
    if not isinstance(before, dict) or not isinstance(value, dict):
        return value
    old, new = cast(dict[str, Any], before), cast(dict[str, Any], value)
    return old | {key: _merged(old.get(key), part) for key, part in new.items()}


def no_text(value: object, key: str = "") -> str:
    """Return the key of a text that no file or terminal can hold, with a zero byte or a lone surrogate; empty if there
    is none. YAML's escapes can make both."""
    if isinstance(value, str):
        return key if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value) else ""
    if isinstance(value, dict):
        items = cast(dict[str, object], value).items()
        return next(filter(None, (no_text(part, f"{key}.{name}".lstrip(".")) for name, part in items)), "")
    if isinstance(value, list):
        return next(filter(None, (no_text(part, key) for part in cast(list[object], value))), "")
    return ""


def valid_keys(model: type[BaseModel], location: Iterable[int | str]) -> list[str]:
    """Return the keys that a record of parameters has at a location; none where there is no record."""
    for part in location:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        child = model if isinstance(part, int) else _model(fields[part].annotation) if part in fields else None
        if child is None:
            return []
        model = child
    return [field.alias or name for name, field in model.model_fields.items()]


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the record that a value, or each item of a value, is; None for others."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model(part))), None)
