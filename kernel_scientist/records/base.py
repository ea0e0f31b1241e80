"""Base class of all records (frozen, typed, converted to and from JSON), and a reader of YAML."""

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


def read_mapping(path: Path, what: str = "") -> dict[str, Any]:
    """Return a YAML file's mapping. Raises SetupError if it cannot be read or is not a mapping.

    `what`: name of the content in messages, such as `the parameters in `.
    """
    try:
        value = parse_yaml(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"cannot read {what}{path}: {getattr(error, 'strerror', None) or error}") from error
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} must hold a mapping, not {type(value).__name__}")
    return cast(dict[str, Any], value)
