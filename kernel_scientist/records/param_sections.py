"""The base of all sections of params.yaml, and those sections that stand alone: their values refer to no others."""

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """Base of all sections: frozen; an unknown key, NaN and infinity are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Repair(Section):
    """Repair of kernels that failed."""

    rounds: int = Field(default=2, ge=0)


class Tuning(Section):
    """The search over a kernel's tunable values."""

    tries: int = Field(default=6, ge=0)
    predictions: int = Field(default=100, ge=1)
    promising: float = Field(default=1.0, gt=0, le=1)
    share: float = Field(default=0.25, ge=0, le=1)


class Validate(Section):
    """Choice and confirmation of a champion."""

    processes: int = Field(default=3, ge=1)
    blocks: int = Field(default=6, ge=2)
    finalists: int = Field(default=4, ge=1)
    torch_compile: bool = False
    approval: bool = False
    approval_wait_s: float = Field(default=86_400, gt=0)


class Tracking(Section):
    """Where MLflow runs are written."""

    uri: str = ""
    experiment: str = ""
    suite: str = ""
    register_champion: bool = Field(default=True, alias="register")


class Kernelbot(Section):
    """GPU MODE's leaderboard as the evaluator (`target: kernelbot`)."""

    leaderboard: str = ""
    gpu: str = "MI300"
    rewrite: bool = False
    margin: float = Field(default=0.03, ge=0)
    events: bool = False
    poll_s: float = Field(default=5.0, gt=0)
    settle_s: float = Field(default=20.0, ge=0)
    timeout_s: float = Field(default=3600.0, gt=0)
