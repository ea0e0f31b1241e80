"""The form of a deployment: its fields come in the order of params.yaml, whatever the database does with keys."""

import importlib
import logging
from typing import Any

import pytest
from prefect.utilities.callables import parameter_schema

from flows.form import subject
from kernel_scientist.records import params
from kernel_scientist.records.errors import SetupError


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


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"overrides": ["problem=rmsnorm", "budget.kernels=three"]}, "rmsnorm, with wrong parameters"),
        ({"params": {"problem": "softmax", "budget": {"kernels": "three"}}}, "softmax, with wrong parameters"),
    ],
)
def test_a_run_with_wrong_parameters_is_named_after_its_problem(parameters: dict[str, Any], name: str) -> None:
    assert subject(parameters) == name


def test_a_wrong_parameter_is_one_sentence_in_a_workers_log(caplog: pytest.LogCaptureFixture) -> None:
    """The records that Prefect's engine makes of it in a worker's process."""
    runs, engine = logging.getLogger("prefect.flow_runs"), logging.getLogger("prefect.engine")
    for logger in (runs, engine):
        logger.addHandler(caplog.handler)
    try:
        raise SetupError("unknown problem 'identiti'") from ValueError("what it comes from")
    except SetupError:
        runs.error("Encountered exception during execution: SetupError(...)", exc_info=True)
        runs.error("Engine execution exited with unexpected exception", exc_info=True)
        engine.error("Execution of flow run 'x' exited with unexpected exception", exc_info=True)
    finally:
        for logger in (runs, engine):
            logger.removeHandler(caplog.handler)
    assert {caplog.handler.format(one) for one in caplog.records} == {caplog.handler.format(caplog.records[0])}
    (text,) = {one.getMessage() for one in caplog.records}
    assert text == "unknown problem 'identiti'" and not any(one.exc_info for one in caplog.records)
