"""Records of cases, kernels and their origin: frozen, typed, converted to and from JSON."""

import difflib
import hashlib
from enum import StrEnum
from typing import Literal

from pydantic import AliasChoices, Field, model_validator

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.names import FILE

REFERENCE = "reference"
"""Name of a problem's reference in timings."""
EAGER, COMPILED = "PyTorch eager", "torch.compile"
"""Names of the reference as PyTorch runs it and as torch.compile compiles it, beside a champion."""
Language = Literal["cpp", "triton", "hip", "cuda"]


class Verdict(StrEnum):
    """Result of a kernel. `no_change`: it was compiled to its base's machine code, so it is neither checked nor timed.
    `compiled`: it was compiled and could not be executed here, so nobody knows whether it is right. `declined`: its
    writer gave a reason why the experiment should not be carried out, and wrote no kernel. `absent`: no reply of its
    writer, or of its repairer, contained a kernel. `infrastructure` means a failure outside the kernel: it is retried
    and never scored."""

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    INCORRECT = "incorrect"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    NO_CHANGE = "no_change"
    COMPILED = "compiled"
    DECLINED = "declined"
    ABSENT = "absent"
    INFRASTRUCTURE = "infrastructure"

    def because(self, reason: str) -> str:
        """Return the verdict with its reason: `incorrect: ...`; `compiled, not executed: ...`."""
        return f"{self.value}, {reason}" if self is Verdict.COMPILED else f"{self.value}: {reason}"


Size = bool | int | float | str | list[int]
"""A case's value of one argument of `generate_input`; most are whole numbers."""


class Case(Record):
    """One set of sizes. The seed of a published case is fixed; timed calls draw secret ones."""

    sizes: dict[str, Size]
    """Arguments of `generate_input` by name, without the seed."""
    seed: int
    """Seed of the inputs that everybody may know."""
    label: str = ""
    """Tells the case apart from others of the same sizes; empty if there are none."""

    def whole(self, name: str) -> int:
        """Return a size that is a whole number. Raises ValueError for another value."""
        value = self.sizes[name]
        if isinstance(value, int):
            return value
        raise ValueError(f"{name} is {value!r}, no whole number")

    @property
    def name(self) -> str:
        """Stable name for columns, metrics and files, such as `m64-n576-k512` (`records.names`)."""
        parts = [f"{key}{_shown(value)}" for key, value in self.sizes.items()]
        return FILE.encode("-".join((*parts, *filter(None, [self.label]))) or "only")


def _shown(value: Size) -> str:
    """Return a size as part of a name. A list's numbers stand between underscores, as text that looks so may not."""
    return f"_{'_'.join(map(str, value))}_" if isinstance(value, list) else str(value)


class Work(Record):
    """Minimum work of a case, for the roofline."""

    flops: Finite
    """Operations: a multiplication with its addition counts as two."""
    bytes: Finite
    """Bytes read and written if each is moved once."""
    dtype: str
    """Type of the operations, such as `fp32`: it chooses the peak of the machine table."""


class Experiment(Record):
    """A hypothesis with a plan (papers: GPU Kernel Scientist, section 3.2)."""

    title: str
    """Short, stable title: the name of the transformation, or a headline."""
    description: str
    """Hypothesis: the change, and why it should be faster."""
    rubric: tuple[str, ...]
    """Concrete edits."""
    uplift: tuple[Finite, Finite]
    """Predicted uplift [min, max] in percent of speed."""
    innovation: int = Field(ge=0, le=100)
    """How new the idea is, by the designer's own judgement."""
    mechanism: str = ""
    """What makes it faster, in a few words, such as `fewer bytes from HBM`; empty if nobody said."""
    refuted_if: str = ""
    """What would refute the hypothesis, by its designer; empty if nobody said."""
    probability: Finite | None = Field(default=None, ge=0, le=1)
    """Probability of a gain, by its designer; None if nobody said."""
    effort: int = Field(default=1, ge=1, le=3)
    """Work to implement it: 1 some lines, 2 a part of the kernel, 3 a rewrite."""
    hypothesis: str = ""
    """Name within its campaign, such as `h3.2`: plan 2 of generation 3; empty before it is recorded."""

    @model_validator(mode="after")
    def _ordered(self) -> "Experiment":
        if self.uplift[0] > self.uplift[1]:
            raise ValueError(f"uplift {self.uplift}: the minimum is above the maximum")
        return self


class LlmCall(Record):
    """One request to a model, and what its reply cost."""

    role: str
    """Role of the agent: `selector`, `designer`, `writer`, `repairer`, `distiller`, `judge`."""
    call_key: str = Field(validation_alias=AliasChoices("call_key", "place"))  # older stores: `place`
    """The request's place in the campaign, such as `write/k00012-1a2b3c4d/0`."""
    model: str
    """The model that replied, by its litellm name."""
    key: str
    """Key of the reply in the response cache."""
    prompt: str
    """Digest of the prompt's templates, which are the same for all kernels."""
    input_tokens: int
    """Tokens of the prompt, as the provider counts them."""
    output_tokens: int
    """Tokens of the reply, with those of its reasoning."""
    usd: Finite
    """Cost of the reply when it was paid for."""
    seconds: Finite
    """Wall time of the call."""
    recalled: bool = False
    """Whether the reply came from the response cache, at no cost."""
    fault: str = ""
    """Error in parsing the reply; empty if it was parsed."""


class Author(Record):
    """The agent that filled a role: a model, an agent's command, or `playbook`, the rule-based agent."""

    model: str
    """The model's litellm name, the command, or `playbook`."""
    prompt: str = ""
    """Digest of the prompt's templates."""

    @staticmethod
    def of(llm_calls: "tuple[LlmCall, ...]") -> "Author":
        """Return the model that replied last; the rule-based agent if no model was called."""
        last = llm_calls[-1] if llm_calls else None
        return Author(model=last.model, prompt=last.prompt) if last else Author(model="playbook")


class Attempt(Record):
    """A version of a kernel that failed and was repaired."""

    source: str
    """The version's source."""
    verdict: Verdict
    """Why it failed."""
    reason: str
    """The verdict in a sentence."""
    failed_untimed: bool = False
    """Whether it failed where no timed case took part (`Evaluation`)."""
    bug: str
    """Class of the bug, A.1 to C.4 (`scientist.context.bug_taxonomy`)."""
    critique: str = ""
    """The repairer's diagnosis."""


class Try(Record):
    """One configuration of a kernel's tunables, evaluated against the untuned kernel."""

    values: dict[str, int | float | str]
    """The configuration: a value for each tunable."""
    source: str
    """The kernel with these values."""
    verdict: Verdict
    """Verdict of the configuration."""
    reason: str = ""
    """The verdict in a sentence."""
    log2_ratio: Finite | None = None
    """Binary logarithm of the speedup over the untuned kernel; None if the configuration is not correct."""
    seconds: Finite = 0.0
    """Wall time of the evaluation."""


class Origin(Record):
    """Where the standing champion comes from, with which a later campaign starts."""

    campaign: str
    """The campaign that made it."""
    kernel: str
    """Its name there."""
    date: str
    """Day on which it became the standing champion."""

    @property
    def words(self) -> str:
        """Return what names it in another campaign, where its own name is another kernel's."""
        return f"the standing champion, {self.kernel} of campaign {self.campaign} ({self.date})"


class Kernel(Record):
    """A source in one language that solves a problem."""

    name: str
    """`k00042`, unique within its campaign."""
    language: Language
    """Language of the source."""
    source: str
    """The kernel's file."""
    base: str | None = None
    """Name of the base kernel; None for a seed and for the standing champion."""
    origin: Origin | None = None
    """Set if an earlier campaign made it: the standing champion with which this campaign starts."""
    reference: str | None = None
    """Name of the reference kernel of the experiment."""
    experiment: Experiment | None = None
    """The experiment that it implements; None for a seed and for the standing champion."""
    generation: int = 0
    """Generation of its experiment; 0 for a seed."""
    report: str = ""
    """The Writer's report on its changes."""
    llm_calls: tuple[LlmCall, ...] = ()
    """Model calls made for this kernel."""
    transcript: str = ""
    """What the agent's command printed, the end of each run."""
    attempts: tuple[Attempt, ...] = ()
    """Earlier versions that failed, oldest first."""
    authors: dict[str, Author] = Field(default_factory=dict[str, Author])
    """By role."""
    tuned_from: str | None = None
    """Name of the kernel whose tunables were searched to get this one; None unless tuned."""
    tries: tuple[Try, ...] = ()
    """Configurations tried in tuning."""

    @property
    def is_seed(self) -> bool:
        """Whether people wrote it."""
        return self.base is None and self.origin is None

    @property
    def title(self) -> str:
        """Return its experiment's title; for a kernel without one what it is."""
        if self.experiment:
            return self.experiment.title
        return self.origin.words if self.origin else "seed"

    @property
    def digest(self) -> str:
        """sha256 of the source."""
        return digest(self.source)


def digest(text: str) -> str:
    """Return the sha256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def edits(before: str, after: str, name_before: str, name_after: str) -> str:
    """Return the difference of two sources as a unified diff."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, name_before, name_after))
