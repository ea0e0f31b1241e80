"""A campaign's parameters: all that are in force in an artifact, those that people compare as MLflow's params.

MLflow's params cannot change, and a page with all 140 hides the three that somebody set. So its params are what a
campaign is (`ALWAYS`) and what differs from the defaults, as they were at its start.
"""

import json
from collections.abc import Mapping
from typing import Any

from kernel_scientist.records.params import Params
from kernel_scientist.tracking.run_content import flat

FILE = "params.json"
"""Artifact: every parameter in force, by its full name, as a text. A resumed campaign writes its own."""
ROLES = ("selector", "designer", "writer", "repairer", "distiller", "judge")
ALWAYS = (
    *("problem", "language", "target", "profile", "compat"),
    *(f"search.{name}" for name in ("strategy", "generations", "experiments", "seed")),
    *(f"budget.{name}" for name in ("minutes", "kernels", "usd", "tokens")),
    *(f"llm.{role}.model" for role in ROLES),
)
"""Parameters that are MLflow's params whether or not they have their defaults."""


def texts(params: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters (nested, as in params.yaml) by their full names."""
    return {key: str(value) for key, value in flat({**params}).items()}


def compared(values: Mapping[str, str]) -> dict[str, str]:
    """Return those that become MLflow's params."""
    default = texts(Params().model_dump(by_alias=True))
    return {key: value for key, value in values.items() if key in ALWAYS or value != default.get(key)}


def dump(values: Mapping[str, str]) -> str:
    """Return the artifact."""
    return json.dumps({**values}, indent=1) + "\n"


def in_force(artifact: str | None, params: Mapping[str, str]) -> dict[str, str]:
    """Return all parameters of a campaign. Those of older versions have no artifact, and all as MLflow's `params`."""
    return {**params, **json.loads(artifact or "{}")}
