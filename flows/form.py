"""The form that the Prefect UI shows for the parameters of a campaign: all of params.yaml, typed and described.

What is filled in takes precedence over the params.yaml of the machine that runs the flow; the rest is as it is there.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import GetJsonSchemaHandler, TypeAdapter, ValidationError, model_serializer
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kernel_scientist.records import environment, param_comments, params
from kernel_scientist.records.errors import SetupError

_PARAMS = TypeAdapter(params.Params)


class Form(params.Params):
    """Parameters that take precedence over those of params.yaml."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema, with the comments and the values of params.yaml as descriptions and defaults."""
        schema = handler(core)
        file = environment.root() / "params.yaml"
        try:
            defaults = params.load(file).model_dump(mode="json", by_alias=True)
        except SetupError:  # an installed package without a laboratory: the defaults of the package
            defaults = {}
        comments = param_comments.read(file)
        _number(schema, handler, set())
        for key, field in handler.resolve_ref_schema(schema)["properties"].items():
            _fill(field, key, comments, defaults)
            if "$ref" in field:
                for name, part in handler.resolve_ref_schema({"$ref": field["$ref"]})["properties"].items():
                    _fill(part, f"{key}.{name}", comments, defaults.get(key, {}))
        return schema

    @model_serializer
    def _only_given(self) -> dict[str, Any]:
        """Return what was filled in: a form that nobody touched must not change the parameters."""
        return _PARAMS.dump_python(self, mode="json", by_alias=True, exclude_unset=True)

    def overrides(self, more: Iterable[str] | None) -> list[str]:
        """Return what was filled in as `key.sub=value`, and more overrides, which take precedence."""
        return [*(f"{key}={json.dumps(value)}" for key, value in _leaves(self.model_dump())), *(more or ())]


UNTOUCHED = Form()
"""Nothing is filled in: all parameters are those of params.yaml."""


def subject(flow_parameters: dict[str, Any]) -> str:
    """Return what a flow run is about, for its name: problem, language and target; the problem if others are wrong."""
    form, file = flow_parameters.get("params"), flow_parameters.get("params_file")
    more = flow_parameters.get("overrides")
    try:
        given = Form.model_validate(form or {}).overrides(more)
        found = params.load(file, given)
    except (SetupError, ValidationError):
        return f"{_problem(form, more, file)}, with wrong parameters"
    return f"{Path(found.problem).stem} in {found.language} on {found.target}"


def _problem(form: Any, more: Any, file: Any) -> str:
    """Return the problem that wrong parameters name, as far as it can be told."""
    filled_in = [f"problem={value}" for key, value in dict(form or {}).items() if key == "problem"]
    named = [one for one in (*filled_in, *(more or ())) if one.partition("=")[0].strip() == "problem"]
    try:
        return Path(params.load(file, named).problem).stem
    except SetupError:
        return "a problem"


def _number(schema: JsonSchemaValue, handler: GetJsonSchemaHandler, done: set[str]) -> None:
    """Give every field, at every level, its place in the order of declaration: PostgreSQL sorts the keys of JSON.

    `done`: references that were followed.
    """
    reference = schema.get("$ref", "")
    if reference and reference not in done:
        done.add(reference)
        _number(handler.resolve_ref_schema({"$ref": reference}), handler, done)
    for place, field in enumerate(schema.get("properties", {}).values()):
        field["position"] = place
        _number(field, handler, done)
    for part in (*schema.get("anyOf", ()), *filter(None, [schema.get("items")])):
        _number(part, handler, done)


def _fill(field: dict[str, Any], key: str, comments: dict[str, str], defaults: dict[str, Any]) -> None:
    name = key.rpartition(".")[2]
    if key in comments:
        field["description"] = comments[key]
    if name in defaults:
        field["default"] = defaults[name]


def _leaves(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(cast(dict[str, Any], value), f"{prefix}{key}.")
        else:
            yield prefix + key, value
