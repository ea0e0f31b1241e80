"""What each role must answer, as records: lenient in form (a number in quotes, a string for a list), not in content."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from kernel_scientist.records.kernel import Experiment
from kernel_scientist.scientist.llm.parsing import Answer, ReplyError, metadata
from kernel_scientist.scientist.roles import Avenue, Design

TITLE, PROSE, STEPS = 120, 4000, 20
MOST_PERCENT = 10_000.0
AVENUES, PLANS = 10, 5


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """Read `"15 %"` and `15.0` as numbers."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*([+-]?\d{1,6}(?:\.\d{1,6})?)\s*%?\s*", value)):
        return float(match[1])
    return value


Text = Annotated[str, Field(min_length=1)]
Number = Annotated[float, BeforeValidator(_plain), Field(allow_inf_nan=False, ge=-MOST_PERCENT, le=MOST_PERCENT)]


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SelectionReply(_Reply):
    """The Selector's."""

    base: Text
    reference: Text
    rationale: str = ""


class AvenueReply(_Reply):
    """A direction."""

    title: Text
    examine: str = ""


class PlanReply(_Reply):
    """An experiment."""

    title: Text
    description: Text
    rubric: Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1)]
    uplift: tuple[Number, Number]
    innovation: Number

    @field_validator("uplift")
    @classmethod
    def _ordered(cls, value: tuple[float, float]) -> tuple[float, float]:
        return (min(value), max(value))

    def experiment(self) -> Experiment:
        """Return the plan as the laboratory's record."""
        return Experiment(
            title=_line(self.title),
            description=self.description[:PROSE],
            rubric=tuple(step[:PROSE] for step in self.rubric[:STEPS]),
            uplift=self.uplift,
            innovation=round(min(max(self.innovation, 0.0), 100.0)),
        )


class DesignReply(_Reply):
    """The Designer's."""

    avenues: tuple[AvenueReply, ...] = ()
    plans: Annotated[tuple[PlanReply, ...], Field(min_length=1)]

    def design(self) -> Design:
        """Return avenues and plans as the laboratory's records; plans of one title are one plan."""
        plans = {plan.title: plan for plan in (p.experiment() for p in self.plans[: 2 * PLANS])}
        avenues = [Avenue(title=_line(a.title), examine=a.examine[:PROSE]) for a in self.avenues[:AVENUES]]
        return Design(avenues=tuple(avenues), plans=tuple(plans.values())[:PLANS])


class FindingReply(_Reply):
    """One thing that was learnt."""

    text: Text
    kernels: Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1)]


class DistilReply(_Reply):
    """The Distiller's."""

    findings: tuple[FindingReply, ...] = ()
    struck: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()


class JudgeReply(_Reply):
    """The Judge's."""

    best: Annotated[int, BeforeValidator(_plain), Field(ge=1)]
    why: str = ""


def verdict(answer: Answer, drafts: int) -> JudgeReply:
    """Read which of so many drafts is the best. Raises ReplyError."""
    found = metadata(answer, JudgeReply)
    if found.best > drafts:
        raise ReplyError(f"best: there is no draft {found.best}; there are {drafts}")
    return found


def selection(answer: Answer, right: frozenset[str]) -> SelectionReply:
    """Read a selection among the kernels that are right. Raises ReplyError."""
    found = metadata(answer, SelectionReply)
    for role, name in (("base", found.base), ("reference", found.reference)):
        if name not in right:
            raise ReplyError(
                f"{role} {name[:40]!r} is no kernel with verdict ok; those are: {', '.join(sorted(right))}"
            )
    return found


def section(answer: Answer, name: str) -> str:
    """Return the prose after a line that begins with `NAME:`, up to the next such line; all prose without one."""
    lines, found, inside, seen = answer.prose.splitlines(), list[str](), False, False
    for line in lines:
        head = re.match(r"\s{0,3}(?:[#*_]{0,4}\s?)([A-Z]{4,12})(?:[*_]{0,2}):[*_]{0,2}\s?(.*)$", line)
        if head:
            inside = head[1] == name
            seen = seen or inside
            line = head[2]
        if inside:
            found.append(line)
    return ("\n".join(found) if seen else answer.prose).strip()[:PROSE]


def _line(text: str) -> str:
    return " ".join(text.split())[:TITLE] or "untitled"
