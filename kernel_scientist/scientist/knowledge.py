"""Background documents: Markdown files, and the choice of those that go into a prompt.

A document may begin with YAML front matter (title, topics, languages, targets, sections, bound, about, sources) between
two lines of `---`. Without it, a document applies to every language, target and problem. Documents are read when a
campaign starts and never written.
"""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import yaml

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.yaml_text import parse_yaml

LANGUAGES: tuple[str, ...] = get_args(Language)
TARGETS = ("cpu", "cuda", "rocm")
BOUNDS = ("memory",)
CHARACTERS_PER_TOKEN = 4
HEAD_WEIGHT = 2.0
"""Weight of a match in title or topics; a match in the text has weight 1."""
_FENCE = "---"
_SECTION = re.compile(r"^## (.+?)[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_WORD = r"[^\W_]{2,}"
"""Identifiers are split at underscores, so that the query `b128` matches `ds_read_b128`."""


@dataclass(frozen=True)
class Document:
    """One document and its subject. Empty `languages`, `targets` or `bound` mean all."""

    name: str
    """The file's name without its suffix."""
    title: str
    topics: tuple[str, ...]
    languages: tuple[str, ...]
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    text: str
    """Without the front matter."""
    bound: tuple[str, ...] = ()
    """`memory`: the document is only for problems whose roofline floor memory sets in every timed case."""
    about: tuple[str, ...] = ()
    """The document is only for problems whose text has one of these words; empty means all."""
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Targets of those sections (by the text of their `##` heading) that are not for all."""

    def on(self, target: str) -> "Document":
        """Return the document without the sections that are for other targets."""
        if not self.sections:
            return self
        start, *parts = _SECTION.split(self.text)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        kept = [f"## {head}{body}" for head, body in pairs if _applies(target, self.sections.get(head, ()))]
        return dataclasses.replace(self, text=(start + "".join(kept)).strip())

    def section(self, heading: str) -> "Document":
        """Return the document with one `##` section only; without text if it has none of that heading."""
        _, *parts = _SECTION.split(self.text)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return dataclasses.replace(self, text="".join(f"## {head}{body}" for head, body in pairs if head == heading))

    def within(self, tokens: int) -> "Document":
        """Return the document up to the last `##` section that fits; without text if none does."""
        starts = [match.start() for match in _SECTION.finditer(self.text)]
        parts = [self.text[:end].strip() for end in (*starts[1:], len(self.text))]
        text = next((part for part in reversed(parts) if estimated_tokens(part) <= tokens), "")
        return dataclasses.replace(self, text=text)


@dataclass(frozen=True)
class Background:
    """The documents of a prompt, and those that may be asked for."""

    documents: tuple[Document, ...]
    others: Mapping[str, Document]
    """The other applicable ones, by title."""
    tokens: int
    """What documents may take."""

    def beginning_with(self, wanted: Sequence[Document]) -> tuple[Document, ...]:
        """Return the documents if some others are wanted: these first, each within its share, then what still fits."""
        return tuple(_fitting(wanted, self.documents, self.tokens))


def load(paths: Sequence[Path]) -> tuple[Document, ...]:
    """Read the documents in `paths`: Markdown files, and folders with all their `*.md` except README.md.

    The order is that of `paths`, and by name within a folder. A file named twice is read once; a blank file is left
    out. Raises SetupError naming a file that is missing, unreadable or has invalid front matter.
    """
    files = {file.resolve(): file for path in paths for file in _markdown(path)}
    documents = [_read(file) for file in files.values()]
    return tuple(document for document in documents if document.text)


def applicable(
    documents: Sequence[Document], language: str, target: str, memory_bound: bool, problem: str
) -> list[Document]:
    """Return the documents for a language, a target and a problem, without the sections that are for other targets.

    target: `cpu`, `rocm` or `cuda`. memory_bound: whether documents for memory-bound problems apply, too. problem: its
    name, description and reference, which decide on documents about certain problems.
    """
    suitable = [d.on(target) for d in documents if _applies(language, d.languages) and _applies(target, d.targets)]
    return [d for d in suitable if (memory_bound or not d.bound) and _concerns(d.about, problem)]


def choose(
    documents: Sequence[Document],
    query: str,
    language: str,
    target: str,
    tokens: int,
    memory_bound: bool = True,
    problem: str = "",
    plan: str = "",
) -> Background:
    """Choose among the `applicable` documents, most relevant to `query` first, within a budget of `tokens`.

    problem: see `applicable`; default: the query. plan: of the experiment. A document precedes the others if the plan
    names a topic that only this document has: a plan for a matrix unit needs its notes although neither problem nor
    base speaks of it. Such documents are ordered by their relevance to the plan, and one that exceeds its share of
    the budget is cut at the end of a section. Others are whole, or skipped.
    """
    suitable = applicable(documents, language, target, memory_bound, problem or query)
    named = _named(suitable, plan)
    first = _ranked(named, plan)
    rest = _ranked([d for d in suitable if d not in named], query)
    chosen = tuple(_fitting(first, rest, tokens))
    names = {document.name for document in chosen}
    return Background(chosen, {d.title: d for d in suitable if d.name not in names}, tokens)


def estimated_tokens(text: str) -> int:
    """Return the estimated tokens of a text in a prompt: a quarter of its characters, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def _applies(wanted: str, offered: tuple[str, ...]) -> bool:
    return not offered or wanted in offered


def _concerns(about: tuple[str, ...], problem: str) -> bool:
    """Whether a problem's text has one of the words that a document is about."""
    return not about or not {word.lower() for word in about}.isdisjoint(re.findall(_WORD, problem.lower()))


def _named(documents: Sequence[Document], plan: str) -> list[Document]:
    """Return the documents that alone have a topic of which a plan speaks."""
    words, topics = f" {_plain(plan)} ", Counter(topic for document in documents for topic in {*document.topics})
    return [d for d in documents if any(topics[t] == 1 and f" {_plain(t)} " in words for t in d.topics)]


def _plain(text: str) -> str:
    """Return a text's words in lower case, a space between two."""
    return " ".join(re.findall(r"\w+", text.lower()))


def _fitting(first: Sequence[Document], rest: Sequence[Document], tokens: int) -> Iterator[Document]:
    """Yield the first documents, each cut to its share at the end of a section, then the others that fit.

    Shares are equal; what shorter documents leave of theirs goes to longer ones.
    """
    left, cut = tokens, dict[int, Document]()
    for done, place in enumerate(sorted(range(len(first)), key=lambda i: len(first[i].text))):
        cut[place] = first[place].within(left // (len(first) - done))
        left -= estimated_tokens(cut[place].text)
    yield from (cut[place] for place in range(len(first)) if cut[place].text)
    for document in rest:
        if (cost := estimated_tokens(document.text)) <= left:
            left -= cost
            yield document


def _ranked(documents: Sequence[Document], query: str) -> list[Document]:
    """Return the documents, most relevant first; ties are ordered by name."""
    scored = zip(_relevance(documents, query), documents, strict=True)
    return [d for _, d in sorted(scored, key=lambda pair: (-pair[0], pair[1].name, pair[1].title, pair[1].text))]


def _relevance(documents: Sequence[Document], query: str) -> list[float]:
    """Return each document's relevance to a query: the cosine similarity of TF-IDF vectors, with title and topics
    separate from the text; 0 if they share no word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow: takes about a second; mlflow depends on it

    count = len(documents)
    heads = [" ".join((d.title, d.name, *d.topics)) for d in documents]
    vectorizer: Any = TfidfVectorizer(token_pattern=_WORD, stop_words="english", sublinear_tf=True)
    try:
        vectors = vectorizer.fit_transform([*heads, *(d.text for d in documents)])
    except ValueError:  # raised for an empty vocabulary
        return [0.0] * count
    cosines: list[float] = (vectors @ vectorizer.transform([query]).T).toarray().ravel().tolist()
    # Rounded: the order of summation must not decide between equal scores.
    return [round(HEAD_WEIGHT * head + text, 9) for head, text in zip(cosines[:count], cosines[count:], strict=True)]


def _markdown(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in sorted(path.rglob("*.md")) if file.is_file() and file.name.lower() != "readme.md"]
    if path.suffix.lower() != ".md":
        raise SetupError(f"knowledge: {path} is neither a folder nor a Markdown file; give the file the suffix .md")
    return [path]


def _read(file: Path) -> Document:
    try:
        content = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SetupError(f"knowledge: cannot read {file}: {error.strerror}; check path and permissions") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"knowledge: {file} is not UTF-8 text; save it as UTF-8") from error
    front, text = _split(content, file)
    heading = _HEADING.search(text)
    title = front.get("title") or (heading.group(1) if heading else file.stem)
    return Document(
        name=file.stem,
        title=str(title),
        topics=_strings(front, "topics", file),
        languages=_strings(front, "languages", file, LANGUAGES),
        targets=_strings(front, "targets", file, TARGETS),
        sources=_strings(front, "sources", file),
        text=text.strip(),
        bound=_strings(front, "bound", file, BOUNDS),
        about=_strings(front, "about", file),
        sections=_sections(front, text, file),
    )


def _split(content: str, file: Path) -> tuple[dict[str, Any], str]:
    """Return a file's front matter and its text; a file that does not begin with `---` has no front matter."""
    lines = content.splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return {}, content
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise SetupError(f"knowledge: {file}: the front matter has no end; add a line {_FENCE} after it")
    try:
        front = parse_yaml("\n".join(["", *lines[1:end]]))  # the fence is a line
    except yaml.YAMLError as error:
        raise SetupError(f"knowledge: {file}: the front matter is not YAML: {' '.join(str(error).split())}") from error
    if front is not None and not isinstance(front, dict):
        raise SetupError(f"knowledge: {file}: the front matter must contain keys such as `title: ...`, one per line")
    return cast(dict[str, Any], front or {}), "\n".join(lines[end + 1 :])


def _sections(front: dict[str, Any], text: str, file: Path) -> dict[str, tuple[str, ...]]:
    """Return the targets of sections by heading. Raises SetupError for a heading that the text does not have."""
    given: object = front.get("sections") or {}
    if not isinstance(given, dict):
        raise SetupError(f"knowledge: {file}: sections must give targets by heading, such as {{CPU: cpu}}")
    named, headings = cast(dict[str, Any], given), set(_SECTION.findall(text))
    if unknown := next((head for head in named if head not in headings), None):
        raise SetupError(f"knowledge: {file}: sections: there is no heading '## {unknown}'")
    return {head: _strings(named, head, file, TARGETS) for head in named}


def _strings(front: dict[str, Any], key: str, file: Path, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a key's list of words; a single word is read as a list of one.

    Raises SetupError for a word that is none of the `known` ones, if any: the document would silently never be used.
    """
    value: object = front.get(key) or []
    items = cast(list[object], value) if isinstance(value, list) else [value]
    if any(isinstance(item, (dict, list)) for item in items):
        raise SetupError(f"knowledge: {file}: {key} must be a list of words, such as [one, two]")
    values = tuple(str(item) for item in items)
    if known and (wrong := next((value for value in values if value not in known), None)):
        raise SetupError(f"knowledge: {file}: {key}: {wrong!r} is none of {', '.join(known)}; [] means all")
    return values
