"""The form of a deployment: its fields come in the order of params.yaml, whatever the database does with keys."""

import importlib
from typing import Any

import pytest
from prefect.utilities.callables import parameter_schema

from kernel_scientist.records import params


@pytest.mark.parametrize("name", ["optimize", "evaluate", "validate", "suite"])
def test_every_field_at_every_level_has_its_place(name: str) -> None:
    flow = getattr(importlib.import_module(f"flows.{name}"), name)
    schema = parameter_schema(flow.fn).model_dump_for_openapi()
    assert order(schema) == list(schema["properties"])
    definitions = schema["definitions"]
    assert order(definitions["Form"])[:4] == ["problem", "compat", "language", "target"]
    for title in set(definitions) - {"Form"}:
        model = getattr(params, title)
        assert order(definitions[title]) == [field.alias or key for key, field in model.model_fields.items()], title
    assert {"Llm", "Writing", "Model", "Rates"} <= set(definitions), "also those that others refer to"


def order(schema: dict[str, Any]) -> list[str]:
    """Fields as the page shows them: PostgreSQL's jsonb sorts keys by length, the page sorts fields by position."""
    stored = sorted(schema["properties"].items(), key=lambda item: (len(item[0]), item[0]))
    return [key for key, _ in sorted(stored, key=lambda item: item[1]["position"])]
