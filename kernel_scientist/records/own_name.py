"""Messages about a person's file, which is executed and compiled as a copy: they call it by its own name."""

import re
from typing import TypeVar, cast

from kernel_scientist.records.base import Record

COPY = "kernel.py"
"""What the copy is called."""
_OF_COPY = re.compile(rf'(?<![\w./-]){re.escape(COPY)}(?=, line |: |", line )')
Json = TypeVar("Json")
Kind = TypeVar("Kind", bound=Record)


def told(value: Json, name: str) -> Json:
    """Return a text, or a JSON value with all its texts, in which places in the copy are places in the file `name`."""
    if isinstance(value, str):
        return cast(Json, _OF_COPY.sub(lambda _: name, value))
    if isinstance(value, dict):
        return cast(Json, {key: told(one, name) for key, one in cast(dict[str, object], value).items()})
    if isinstance(value, (list, tuple)):
        return cast(Json, [told(one, name) for one in cast(list[object], value)])
    return value


def of(record: Kind, name: str) -> Kind:
    """Return a record with all its texts told so."""
    return type(record).model_validate(told(record.model_dump(mode="json"), name))
