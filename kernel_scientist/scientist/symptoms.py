"""Cards of symptoms: what a kernel's report shows, what that usually means, what to try.

They stand in the files `symptoms.yaml` of the folders with background documents, by name. A card applies if all its
conditions hold on the facts of a report (`report_facts`). Cards are read when a campaign starts and never written.
"""

import operator
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, ValidationError

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.yaml_text import read_mapping
from kernel_scientist.scientist.knowledge import LANGUAGES, TARGETS, Document
from kernel_scientist.scientist.report_facts import KINDS, ReportFacts, Value

FILE = "symptoms.yaml"
MOST_SHOWN = 3
"""Cards in one prompt."""
ALL = "all"
"""Key of what to try in every language."""
_KNOWN = "kernel_scientist/scientist/report_facts.py has their names"
_FIELD = re.compile(r"\{[^{}]*\}")
_COMPARISON = re.compile(r"^(<=|>=|!=|<|>|=) *(\S.*)$")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


@dataclass(frozen=True)
class FactCondition:
    """A condition on one fact."""

    fact: str
    sign: str
    value: Value

    @staticmethod
    def of(fact: str, text: object) -> "FactCondition":
        """Read a condition such as `> 0`, `!= fp32`; without a sign it is equality. Raises ValueError."""
        if fact not in KINDS:
            raise ValueError(f"there is no fact {fact!r}; {_KNOWN}")
        kind, match = KINDS[fact], _COMPARISON.match(str(text))
        sign, word = (match[1], match[2].strip()) if match else ("=", str(text).strip())
        if kind in (bool, str) and sign not in ("=", "!="):
            raise ValueError(f"{fact} is no number: compare it by = or !=")
        if kind is bool and word.lower() not in ("true", "false"):
            raise ValueError(f"{fact} is true or false, not {word!r}")
        if kind in (bool, str):
            return FactCondition(fact, sign, word.lower() == "true" if kind is bool else word)
        try:
            return FactCondition(fact, sign, float(word))
        except ValueError:
            raise ValueError(f"{fact} is a number, not {word!r}") from None

    def holds(self, known: Mapping[str, Value]) -> bool:
        """Whether the fact is known and as the condition wants it."""
        return self.fact in known and _OPERATORS[self.sign](known[self.fact], self.value)


class SymptomCard(Record):
    """One symptom. Texts may name facts in braces, as in `{load_bits}`, or `{over_floor:.0f}` with a format."""

    title: _Text
    """A few words, by which the card is found."""
    when: dict[str, bool | int | float | str] = Field(min_length=1)
    """Conditions by fact; all must hold."""
    seen: _Text
    """What the report shows, in a sentence."""
    means: _Text
    """What that usually means."""
    moves: dict[str, tuple[_Text, ...]] = Field(min_length=1)
    """What to try, by language; `all` for every one."""
    at_most: str = ""
    """The most that can be expected; left out where a fact that it names is not known."""
    cost: Finite | str
    """What orders cards: a fact in percent, or a number that stands for what the symptom usually costs in percent of
    the time. The number is an estimate, and is never shown."""
    languages: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    """Languages and targets (`cpu`, `rocm`, `cuda`) that it is for; empty means all."""
    replaces: tuple[str, ...] = ()
    """Remedies in the performance model's sentences that the card says more fully, so that they are left out."""
    source: _Text
    """Background document and section, from which the advice is."""

    @property
    def conditions(self) -> tuple[FactCondition, ...]:
        """The conditions, read. Raises ValueError."""
        return tuple(FactCondition.of(fact, text) for fact, text in self.when.items())

    def is_for(self, language: str, target: str) -> bool:
        """Whether it is for a language and a target, and has something to try there."""
        suits = (not self.languages or language in self.languages) and (not self.targets or target in self.targets)
        return suits and bool(self.moves_in(language))

    def moves_in(self, language: str) -> tuple[str, ...]:
        """Return what to try in a language."""
        return (*self.moves.get(ALL, ()), *self.moves.get(language, ()))

    def advice(self, language: str) -> str:
        """Return what it usually means and what to try, without the facts of a report."""
        texts = (self.means, *(f"- {move}" for move in self.moves_in(language)), f"({self.source})")
        return _FIELD.sub("...", "\n".join(texts))

    def weight(self, known: Mapping[str, Value]) -> float:
        """Return what orders it among others."""
        value = known.get(self.cost, 0.0) if isinstance(self.cost, str) else self.cost
        return float(value)


@dataclass(frozen=True)
class Symptom:
    """A card that applies, with the facts put in."""

    id: str
    seen: str
    means: str
    moves: tuple[str, ...]
    at_most: str
    """Empty if unknown."""
    source: str
    replaces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The symptom as it stands in a prompt."""
        most = [f"At most: {self.at_most}."] if self.at_most else []
        lines = (f"- **{self.seen}** {self.means} ({self.source})", *(f"- {move}" for move in self.moves), *most)
        return "\n  ".join(lines)


def load(paths: Sequence[Path], documents: Sequence[Document] = ()) -> dict[str, SymptomCard]:
    """Read the cards of the files `symptoms.yaml` in these folders, by name; other paths have none.

    `documents`: those by whose titles a model may ask for what the cards rest on. Raises SetupError naming file and
    card for an unknown fact, an empty text or a name that is there twice.
    """
    cards = dict[str, SymptomCard]()
    titles = {document.name: document.title for document in documents}
    for file in dict.fromkeys(path.resolve() / FILE for path in paths if (path / FILE).is_file()):
        for name, values in read_mapping(file, "the cards in ").items():
            if name in cards:
                raise SetupError(f"knowledge: {file}: there is another card {name!r}; give one of them another name")
            card = _card(f"knowledge: {file}: card {name}", values)
            document, _, section = card.source.partition(", ")
            source = f"{titles[document]}: {section}" if document in titles else card.source
            cards[name] = card.model_copy(update={"source": source})
    return cards


def matching(cards: Mapping[str, SymptomCard], facts: ReportFacts, language: str, target: str) -> list[Symptom]:
    """Return the cards that apply to a report, the most costly first, MOST_SHOWN at most."""
    known = facts.known()
    found = [
        (card.weight(known), name, card)
        for name, card in cards.items()
        if card.is_for(language, target)
        and all(one.holds(known) for one in card.conditions)
        and _fields(_texts(card)) <= known.keys()
    ]
    ordered = sorted(found, key=lambda one: (-one[0], one[1]))[:MOST_SHOWN]
    return [_shown(name, card, known, language) for _, name, card in ordered]


def _shown(name: str, card: SymptomCard, known: Mapping[str, Value], language: str) -> Symptom:
    most = card.at_most.format(**known) if _fields([card.at_most]) <= known.keys() else ""
    moves = tuple(move.format(**known) for move in card.moves_in(language))
    return Symptom(name, card.seen.format(**known), card.means.format(**known), moves, most, card.source, card.replaces)


def _card(where: str, values: object) -> SymptomCard:
    """Return a card. Raises SetupError."""
    try:
        card = SymptomCard.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the card"
        raise SetupError(f"{where}: {place}: {first['msg']}") from error
    try:
        _require_sense(card)
    except (ValueError, KeyError, IndexError) as error:
        raise SetupError(f"{where}: {error}") from error
    return card


def _require_sense(card: SymptomCard) -> None:
    """Raise ValueError for a condition, a fact, a language or a target that does not exist."""
    if not card.conditions:
        raise ValueError("it has no condition")
    for words, known in ((card.languages, LANGUAGES), (card.targets, TARGETS), (card.moves, (ALL, *LANGUAGES))):
        if wrong := next((word for word in words if word not in known), None):
            raise ValueError(f"{wrong!r} is none of {', '.join(known)}")
    named = _fields([*_texts(card), card.at_most]) | ({card.cost} if isinstance(card.cost, str) else set[str]())
    if wrong := next((name for name in sorted(named) if name not in KINDS), None):
        raise ValueError(f"there is no fact {wrong!r}; {_KNOWN}")
    if isinstance(card.cost, str) and KINDS[card.cost] in (bool, str):
        raise ValueError(f"cost: {card.cost} is no number")
    samples: dict[str, Any] = {name: kind(1) for name, kind in KINDS.items()}
    for text in (*_texts(card), card.at_most):
        text.format(**samples)  # a format that does not fit its fact is an error here, not in a campaign


def _texts(card: SymptomCard) -> Iterator[str]:
    yield from (card.seen, card.means)
    for moves in card.moves.values():
        yield from moves


def _fields(texts: Iterable[str]) -> set[str]:
    """Return the names in braces. Raises ValueError for a lone brace."""
    parsed = cast(Iterable[Any], (part for text in texts for part in string.Formatter().parse(text)))
    return {name for _, name, _, _ in parsed if name is not None}
