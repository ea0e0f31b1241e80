"""Base class of all records (frozen, typed, converted to and from JSON), and readers of text and of YAML."""

from pathlib import Path
from typing import Annotated, Any, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field

from kernel_scientist.records.errors import SetupError

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def parse_yaml(text: str) -> object:
    """Return the value of a YAML text. Raises yaml.YAMLError. libyaml, where PyYAML has it, is ten times as fast."""
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def read_text(path: Path, what: str = "") -> str:
    """Return the text of a file, which a byte order mark may precede.

    `what`: name of the content in messages, such as `kernel `. Raises SetupError if the file cannot be read, is empty,
    or is not text.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SetupError(f"cannot read {what}{path}: it is not text (byte {error.start + 1} is not UTF-8)") from error
    except (OSError, ValueError) as error:
        raise SetupError(f"cannot read {what}{path}: {getattr(error, 'strerror', None) or error}") from error
    if "\0" in text:
        raise SetupError(f"cannot read {what}{path}: it is not text (it has zero bytes)")
    if not text.strip():
        raise SetupError(f"cannot read {what}{path}: it is empty")
    return text


def read_mapping(path: Path, what: str = "") -> dict[str, Any]:
    """Return a YAML file's mapping. Raises SetupError if it cannot be read or is not a mapping.

    `what`: name of the content in messages, such as `the parameters in `.
    """
    try:
        value = parse_yaml(read_text(path, what))
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} must hold a mapping, not {type(value).__name__}")
    return cast(dict[str, Any], value)
