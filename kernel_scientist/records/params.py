"""params.yaml as typed, frozen values. An unknown key or a wrong type raises an error that names the key."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.overrides import apply, no_text, valid_keys
from kernel_scientist.records.param_sections import Kernelbot, Repair, Section, Tracking, Tuning, Validate
from kernel_scientist.records.yaml_text import read_mapping

Strategy = Literal["scientist", "hypotheses", "tree", "islands", "fsr", "best_of_n", "greedy", "agent"]
PLAYBOOK = "playbook"
"""The model name that selects the rule-based agent instead of a model."""
REMOTE_TARGETS = ("pool",)
"""Prefixes of targets on other hosts. Each is the name of the module of `campaign.targets` that opens it."""
WRITER = "writer"
"""The designer's model name that leaves the hypothesis to the writer: one model call a kernel."""


class Search(Section):
    """The search strategy and its size."""

    from_: Literal["champion", "seeds"] = Field(default="champion", alias="from")
    strategy: Strategy = "scientist"
    generations: int = Field(default=4, ge=0)
    experiments: int = Field(default=3, ge=1, le=5)
    prescreen: int = Field(default=0, ge=0)
    seed: int = 2025
    agent: str = ""
    agent_minutes: float = Field(default=20, gt=0)
    agent_writes: tuple[str, ...] = ()
    hide_shapes: bool = False

    @property
    def submitted(self) -> bool:
        """Whether a client of the MCP server writes the kernels, so that a campaign has none of its own to make."""
        return self.strategy == "agent" and not self.agent


class Rates(Section):
    """A model's price in USD per million tokens."""

    input_usd: float = Field(ge=0)
    """Per million tokens of prompts."""
    output_usd: float = Field(ge=0)
    """Per million tokens of replies."""


class Model(Section):
    """A model by its litellm name, and its endpoint. `playbook` is the rule-based agent, which calls no model."""

    model: str = Field(default=PLAYBOOK, min_length=1)
    """litellm's name of the model."""
    api_base: str = ""
    """Address of an endpoint that speaks OpenAI's protocol; empty: the provider's."""
    api_key_env: str = ""
    """Environment variable that holds the key for `api_base`."""
    price: Rates | None = None
    """Needed for a model whose price litellm does not know."""
    weight: float = Field(default=1.0, gt=0)
    """Share of the calls among the models of `mix`."""
    structured: bool | None = None
    """Whether it accepts a JSON schema; none: as litellm reports."""
    functions: bool | None = None
    """Whether it calls tools as functions, or by words; none: as litellm reports."""


def _named(value: Any) -> Any:
    return [{"model": v} if isinstance(v, str) else v for v in value] if isinstance(value, (list, tuple)) else value


Models = Annotated[tuple[Model, ...], BeforeValidator(_named)]
"""A list of models, each a name or a mapping of `Model`'s fields."""


Temperature = Annotated[float | None, Field(ge=0, le=2)]


class Role(Model):
    """The models of one role of the Scientist."""

    temperature: Temperature = None
    """Sampling temperature; null: the model's own."""
    max_tokens: int = Field(default=16_384, ge=16)
    """Limit of one reply."""
    fallbacks: Models = ()
    """Models that are asked when this one does not answer."""
    mix: Models = ()
    """Models that share the calls with this one."""

    @model_validator(mode="after")
    def _mixes_models(self) -> "Role":
        if self.mix and any(model.model in (PLAYBOOK, WRITER) for model in self.models):
            raise PydanticCustomError("mix", "`mix` is for models: `playbook` and `writer` cannot share calls")
        return self

    @property
    def models(self) -> tuple[Model, ...]:
        """Return the models that share this role's calls."""
        return (self, *self.mix)


class Deciding(Role):
    """A role that weighs what is known. Temperatures of roles are STARK's (arXiv 2510.16996)."""

    temperature: Temperature = 0.3


class Looking(Role):
    """A role that may look around by tools before it answers."""

    tools: bool = False
    """Whether it may read, search and look at kernels; a writer or repairer may also compile, check and time drafts."""
    calls: int = Field(default=12, ge=1, le=100)
    """Most calls of tools for one design, draft or repair."""


class Designing(Looking):
    """A role that plans."""

    temperature: Temperature = 0.8


class Coding(Role):
    """A role that writes or reads code."""

    temperature: Temperature = 0.1


class Writing(Looking):
    """A role that writes kernels."""

    temperature: Temperature = 0.1
    looks: int = Field(default=3, ge=0, le=20)
    """Most quick timings beside the base among its calls of tools."""


class Llm(Section):
    """The Scientist's roles. A role that is named in part keeps its other defaults."""

    selector: Deciding = Deciding()
    designer: Designing = Designing()
    writer: Writing = Writing()
    repairer: Writing = Writing()
    distiller: Deciding = Deciding()
    judge: Coding = Coding()
    concurrency: int = Field(default=0, ge=0, le=64)
    drafts: int = Field(default=1, ge=1, le=8)
    attempts: int = Field(default=3, ge=1)
    timeout_s: float = Field(default=600, gt=0)
    first_delay_s: float = Field(default=1.0, ge=0)
    longest_delay_s: float = Field(default=60.0, ge=0)
    break_after: int = Field(default=5, ge=1)
    rest_s: float = Field(default=60.0, ge=0)
    corrections: int = Field(default=2, ge=0)
    choice: Literal["weights", "bandit"] = "weights"
    replies: str = "data/replies"
    replay: str = ""

    def calls_in_flight(self, roles: Iterable[str]) -> int:
        """Return `concurrency`; if 0, 8 if a role has a model, else 2: the playbook plans before results are in."""
        models = any(model.model != PLAYBOOK for name in roles for model in self.role(name).models)
        return self.concurrency or (8 if models else 2)

    def role(self, name: str) -> Role:
        """Return a role by its name."""
        role = getattr(self, name)
        assert isinstance(role, Role)
        return role

    def calls(self, name: str) -> int:
        """Return how many calls of tools a role has for one answer."""
        return role.calls if isinstance(role := self.role(name), Looking) and role.tools else 0


ROLES = ("selector", "designer", "writer", "repairer", "distiller", "judge")


class Knowledge(Section):
    """Background documents and findings in prompts."""

    paths: tuple[str, ...] = ("knowledge",)
    tokens: int = Field(default=6000, ge=0)
    distil_every: int = Field(default=4, ge=0)
    findings: int = Field(default=12, ge=0)


class Budget(Section):
    """Limits of a campaign. None: no limit."""

    kernels: int = Field(default=100, ge=1)
    minutes: float = Field(default=30, gt=0)
    usd: float | None = Field(default=5.0, ge=0)
    tokens: int | None = Field(default=None, ge=0)


class Harness(Section):
    """Limits and statistics of the evaluator."""

    sandbox: Literal["auto", "basic", "none"] = "auto"
    tampering: Literal["reject", "allow"] = "reject"
    inspect_timeout_s: float = Field(default=120, gt=0)
    build_timeout_s: float = Field(default=180, gt=0)
    import_timeout_s: float = Field(default=20, gt=0)
    call_timeout_s: float = Field(default=10, gt=0)
    memory_mib: int = Field(default=4096, ge=64, le=1 << 20)
    output_mib: float = Field(default=16, gt=0)
    threads: int = Field(default=0, ge=0)
    blocks: int = Field(default=4, ge=2)
    pairs: int = Field(default=12, ge=0)
    row_us: float = Field(default=1000, gt=0)
    stages: int = Field(default=3, ge=1, le=3)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    margin: float = Field(default=0.005, ge=0)
    noise_runs: int = Field(default=8, ge=0)
    drop_after: int = Field(default=2, ge=0)
    drop_below: float = Field(default=0.7, ge=0, lt=1)
    warmup_calls: int = Field(default=2, ge=0)
    gpu_warmup_s: float = Field(default=1.0, ge=0)
    executed_s: float = Field(default=5.0, ge=0)
    executed_timeout_s: float = Field(default=180.0, gt=0)
    device_wait_s: float = Field(default=300, gt=0)
    quiet_wait_s: float = Field(default=30, ge=0)
    counters: Literal["auto", "off"] = "auto"
    counters_timeout_s: float = Field(default=180, gt=0)


def _target(name: str) -> str:
    if not re.fullmatch(
        rf"auto|cpu|cuda|rocm|model:[a-z0-9]+|(?:{'|'.join(REMOTE_TARGETS)}):[^/%&<>\s]+|kernelbot", name
    ):
        known = "auto, cpu, cuda, rocm, model: with a machine (model:mi300x), kernelbot"
        known += "".join(f", {name}: with a name" for name in REMOTE_TARGETS)
        raise PydanticCustomError("target", "expected {known}", {"known": known})
    return name


class Params(Section):
    """All of params.yaml."""

    problem: str = "fp8-blockwise-gemm"
    compat: Literal["intended", "official"] = "intended"
    language: Language = "cpp"
    target: Annotated[str, AfterValidator(_target)] = "auto"
    profile: str = "auto"
    search: Search = Search()
    llm: Llm = Llm()
    budget: Budget = Budget()
    repair: Repair = Repair()
    tuning: Tuning = Tuning()
    knowledge: Knowledge = Knowledge()
    harness: Harness = Harness()
    validate_: Validate = Field(default=Validate(), alias="validate")
    tracking: Tracking = Tracking()
    kernelbot: Kernelbot = Kernelbot()


def load(file: str | Path | None, overrides: Iterable[str] = (), options: Mapping[str, str] | None = None) -> Params:
    """Read params.yaml, then apply `key.sub=value` overrides and options of the command line (`--problem`).

    `file`: None is the project's own. Values of overrides are YAML (`search.generations=10`); a mapping changes the
    keys that it names. Raises SetupError that names the file or option and the wrong key.
    """
    path = Path(file) if file else environment.root() / "params.yaml"
    values = read_mapping(path, "the parameters in ")
    origins: dict[str, str] = {}
    for override in overrides:
        origins[apply(values, override)] = f"--set {override}"
    for key, value in (options or {}).items():
        values[key], origins[key] = value, f"--{key} {value}"
    if key := no_text(values):
        at = next((option for part, option in origins.items() if f"{key}.".startswith(f"{part}.")), str(path))
        raise SetupError(f"{at!r}: parameter '{key}' has a zero byte or a lone surrogate, which no text has")
    return parse(values, str(path), origins)


def parse(values: dict[str, Any], source: str = "params", origins: Mapping[str, str] | None = None) -> Params:
    """Validate a mapping of parameters. Raises SetupError with the first wrong key and the keys that are valid there.

    `origins`: by key, the option that set it, if it does not come from `source`.
    """
    try:
        return Params.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        for part, option in (origins or {}).items():
            source = option if f"{key}.".startswith(f"{part}.") or part.startswith(f"{key}.") else source
        if first["type"] == "extra_forbidden":
            valid = ", ".join(valid_keys(Params, first["loc"][:-1]))
            raise SetupError(f"{source}: unknown parameter '{key}'; valid here: {valid}") from error
        raise SetupError(f"{source}: parameter '{key}': {first['msg']}, got {first['input']!r}") from error
