"""The reply of each role as a record: lenient in form (a number in quotes, a string for a list), not in content."""

import re
from collections.abc import Container
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from kernel_scientist.records.kernel import Experiment
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError
from kernel_scientist.scientist.llm.structured import record
from kernel_scientist.scientist.proposals import Avenue, Design

MAX_TITLE, MAX_PROSE, MAX_STEPS = 120, 4000, 20
MAX_PERCENT = 10_000.0
MAX_AVENUES, MAX_PLANS = 10, 5


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _number(value: Any) -> Any:
    """Read `"15 %"` and `15.0` as numbers."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*([+-]?\d{1,6}(?:\.\d{1,6})?)\s*%?\s*", value)):
        return float(match[1])
    return value


def _range(value: Any) -> Any:
    """Read one number, `"5-20 %"` and `{"min": 5, "max": 20}` as the two ends of a range."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, str) and (match := re.fullmatch(_RANGE, value)):
        return [match[1], match[2]]
    return [value, value] if isinstance(value, int | float | str) and not isinstance(value, bool) else value


_RANGE = r"\s*([+-]?\d{1,6}(?:\.\d{1,6})?)\s*%?\s*(?:-|–|to|\.\.)\s*([+-]?\d{1,6}(?:\.\d{1,6})?)\s*%?\s*"  # noqa: RUF001


def _named(value: Any) -> Any:
    """Read `"kernel K00012 (the fastest)"` as the kernel's name."""
    names = re.findall(r"\bk\d{5}\b", value.lower()) if isinstance(value, str) else []
    return names[0] if len(set(names)) == 1 else value


Text = Annotated[str, Field(min_length=1)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False, ge=-MAX_PERCENT, le=MAX_PERCENT)]


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SelectionReply(_Reply):
    """The selector's reply."""

    base: Annotated[Text, BeforeValidator(_named)]
    reference: Annotated[Text, BeforeValidator(_named)]
    rationale: str = ""


class AvenueReply(_Reply):
    """One avenue."""

    title: Text
    examine: str = ""


class PlanReply(_Reply):
    """One experiment plan."""

    title: Text
    description: Text
    rubric: Annotated[tuple[Text, ...], BeforeValidator(_as_list), Field(min_length=1)]
    uplift: Annotated[tuple[Number, Number], BeforeValidator(_range)]
    innovation: Number
    mechanism: str = ""
    refuted_if: str = ""
    probability: Number | None = None
    """In percent; a number below 1 is a fraction."""
    effort: Number = 1

    @model_validator(mode="before")
    @classmethod
    def _given(cls, value: Any) -> Any:
        """Take a null as a field that is left out."""
        return {key: part for key, part in value.items() if part is not None} if isinstance(value, dict) else value

    @field_validator("uplift")
    @classmethod
    def _ordered(cls, value: tuple[float, float]) -> tuple[float, float]:
        return (min(value), max(value))

    def experiment(self) -> Experiment:
        """Return the plan as an Experiment."""
        return Experiment(
            title=_line(self.title),
            description=self.description[:MAX_PROSE],
            rubric=tuple(step[:MAX_PROSE] for step in self.rubric[:MAX_STEPS]),
            uplift=self.uplift,
            innovation=round(min(max(self.innovation, 0.0), 100.0)),
            mechanism=" ".join(self.mechanism.split())[:MAX_TITLE],
            refuted_if=self.refuted_if[:MAX_PROSE],
            probability=None if self.probability is None else _fraction(self.probability),
            effort=round(min(max(self.effort, 1.0), 3.0)),
        )


def _fraction(value: float) -> float:
    return min(max(value if value < 1 else value / 100, 0.0), 1.0)


class DesignReply(_Reply):
    """The designer's reply: plans, or the titles of documents that it wants to read first."""

    read: Annotated[tuple[Text, ...], BeforeValidator(_as_list)] = ()
    avenues: tuple[AvenueReply, ...] = ()
    plans: tuple[PlanReply, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _only_plans(cls, value: Any) -> Any:
        return {"plans": value} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _with_content(self) -> "DesignReply":
        if not self.plans and not self.read:
            raise ValueError("plans: there is none")
        return self

    def design(self) -> Design:
        """Return avenues and plans; of several plans with one title, the last."""
        plans = {plan.title: plan for plan in (p.experiment() for p in self.plans[: 2 * MAX_PLANS])}
        avenues = [Avenue(title=_line(a.title), examine=a.examine[:MAX_PROSE]) for a in self.avenues[:MAX_AVENUES]]
        return Design(avenues=tuple(avenues), plans=tuple(plans.values())[:MAX_PLANS])


class FindingReply(_Reply):
    """One finding."""

    text: Text
    kernels: Annotated[tuple[Text, ...], BeforeValidator(_as_list), Field(min_length=1)]


class FindingsReply(_Reply):
    """The distiller's reply."""

    findings: tuple[FindingReply, ...] = ()
    retracted: Annotated[tuple[str, ...], BeforeValidator(_as_list)] = Field(
        default=(),
        validation_alias=AliasChoices("retracted", "struck"),  # cached replies of older versions: `struck`
    )


class JudgeReply(_Reply):
    """The judge's reply."""

    best: Annotated[int, BeforeValidator(_number), Field(ge=1)]
    why: str = ""


def design(reply: ParsedReply, titles: Container[str] = ()) -> DesignReply:
    """Return the designer's reply; it may ask for documents with one of these titles. Raises ReplyError."""
    found = record(reply, DesignReply)
    unknown = [title for title in found.read if title not in titles]
    if unknown and not found.plans:
        raise ReplyError(f"read: there is no further document {unknown[0][:80]!r}; send avenues and plans")
    return found.model_copy(update={"read": ()}) if found.plans else found


def declined(reply: ParsedReply) -> str:
    """Return the reason of a reply that declines an experiment; empty if it does not."""
    has_line = re.search(r"^\W{0,6}DECLINE\b", reply.prose, re.M)
    return section(reply, "DECLINE") if has_line else ""


def own_experiment(reply: ParsedReply, title: str) -> Experiment:
    """Return the writer's own plan; its title begins with `title`. Raises ReplyError."""
    plan = record(reply, PlanReply).experiment()
    return plan.model_copy(update={"title": _line(f"{title}: {plan.title}")})


def judgement(reply: ParsedReply, drafts: int) -> JudgeReply:
    """Return the judge's choice among `drafts` drafts. Raises ReplyError."""
    choice = record(reply, JudgeReply)
    if choice.best > drafts:
        raise ReplyError(f"best: there is no draft {choice.best}; there are {drafts}")
    return choice


def selection(reply: ParsedReply, correct: frozenset[str]) -> SelectionReply:
    """Return the selector's choice among the correct kernels. Raises ReplyError."""
    choice = record(reply, SelectionReply)
    for role, name in (("base", choice.base), ("reference", choice.reference)):
        if name not in correct:
            raise ReplyError(
                f"{role} {name[:40]!r} is not a kernel with verdict ok; those are: {', '.join(sorted(correct))}"
            )
    return choice


def findings(reply: ParsedReply, kernels: Container[str]) -> FindingsReply:
    """Return the distiller's findings, which may cite only these kernels. Raises ReplyError."""
    result = record(reply, FindingsReply)
    if unknown := sorted({k for f in result.findings for k in f.kernels if k not in kernels}):
        raise ReplyError(f"there are no kernels {', '.join(unknown)[:200]}")
    return result


def section(reply: ParsedReply, name: str) -> str:
    """Return the prose from a line that begins with `NAME:` to the next such line; all prose if there is none."""
    lines, inside, exists = list[str](), False, False
    for line in reply.prose.splitlines():
        if head := re.match(r"\s{0,3}(?:[#*_]{0,4}\s?)([A-Z]{4,12})(?:[*_]{0,2}):[*_]{0,2}\s?(.*)$", line):
            inside, line = head[1] == name, head[2]
            exists = exists or inside
        if inside:
            lines.append(line)
    return ("\n".join(lines) if exists else reply.prose).strip()[:MAX_PROSE]


def _line(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE] or "untitled"
