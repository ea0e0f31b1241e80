"""What all records are: frozen, typed, JSON both ways."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
