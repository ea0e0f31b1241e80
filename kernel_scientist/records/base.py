"""Base class of all records (frozen, typed, converted to and from JSON), and the reader of text."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kernel_scientist.records.errors import SetupError

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


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
