"""What the Scientist has read: digests in Markdown, and which of them go into a prompt.

A digest may begin with YAML front matter (title, topics, languages, targets, sources) between two lines of `---`; a
file without it is used too and applies to everything. Texts are read when a campaign starts and never written here.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import yaml

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language

LANGUAGES: tuple[str, ...] = get_args(Language)
TARGETS = ("cpu", "cuda", "rocm")
CHARACTERS_PER_TOKEN = 4
HEAD_WEIGHT = 2.0
"""What a match in title or topics counts, against 1 for one in the text."""
_FENCE = "---"
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_WORD = r"[^\W_]{2,}"
"""Identifiers fall apart at their underscores, so that `ds_read_b128` is found by `b128`."""


@dataclass(frozen=True)
class Digest:
    """One text and what it is about. Empty `languages` or `targets` mean all of them."""

    name: str
    """The file's name without its suffix."""
    title: str
    topics: tuple[str, ...]
    languages: tuple[str, ...]
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    text: str
    """Without the front matter."""


def load(paths: Sequence[Path]) -> tuple[Digest, ...]:
    """Read the digests among `paths`: Markdown files, and folders with all their `*.md` but README.md, in the order of
    `paths` and within a folder by name. A file named twice is read once, a blank one is left out.

    Raises SetupError naming the file that is missing, unreadable or has front matter that cannot be understood.
    """
    files = {file.resolve(): file for path in paths for file in _markdown(path)}
    digests = [_read(file) for file in files.values()]
    return tuple(digest for digest in digests if digest.text)


def choose(digests: Sequence[Digest], query: str, language: str, target: str, tokens: int) -> tuple[Digest, ...]:
    """Return the digests for a kernel in `language` on `target`, most relevant to `query` first, whole ones only and as
    long as they fit into `tokens` (by `estimated_tokens` of their texts); one that does not fit is passed over.

    Relevance is cosine similarity of TF-IDF vectors, title and topics apart from the text. Ties go by name.
    """
    applicable = [d for d in digests if _applies(language, d.languages) and _applies(target, d.targets)]
    scores = _relevance(applicable, query)
    ranking = sorted(
        zip(scores, applicable, strict=True), key=lambda pair: (-pair[0], pair[1].name, pair[1].title, pair[1].text)
    )
    return tuple(_fitting((digest for _, digest in ranking), tokens))


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text costs in a prompt: a quarter of its characters, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def _applies(wanted: str, offered: tuple[str, ...]) -> bool:
    return not offered or wanted in offered


def _fitting(ranking: Iterable[Digest], tokens: int) -> Iterator[Digest]:
    left = tokens
    for digest in ranking:
        cost = estimated_tokens(digest.text)
        if cost <= left:
            left -= cost
            yield digest


def _relevance(digests: Sequence[Digest], query: str) -> list[float]:
    """Return each digest's relevance to a query, 0 when they have no word in common."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # a second; mlflow brings it

    count = len(digests)
    heads = [" ".join((d.title, d.name, *d.topics)) for d in digests]
    vectorizer: Any = TfidfVectorizer(token_pattern=_WORD, stop_words="english", sublinear_tf=True)
    try:
        vectors = vectorizer.fit_transform([*heads, *(d.text for d in digests)])
    except ValueError:  # how it says that there is no word in any of them, or nothing at all
        return [0.0] * count
    cosines: list[float] = (vectors @ vectorizer.transform([query]).T).toarray().ravel().tolist()
    # Rounded, so that the order of summation cannot decide between equals.
    return [round(HEAD_WEIGHT * head + text, 9) for head, text in zip(cosines[:count], cosines[count:], strict=True)]


def _markdown(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in sorted(path.rglob("*.md")) if file.is_file() and file.name.lower() != "readme.md"]
    if path.suffix.lower() != ".md":
        raise SetupError(f"knowledge: {path} is neither a folder nor a Markdown file; give it the suffix .md")
    return [path]


def _read(file: Path) -> Digest:
    try:
        content = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SetupError(f"knowledge: cannot read {file}: {error.strerror}; correct the path or its rights") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"knowledge: {file} is not UTF-8 text; save it as UTF-8") from error
    front, text = _split(content, file)
    heading = _HEADING.search(text)
    title = front.get("title") or (heading.group(1) if heading else file.stem)
    return Digest(
        name=file.stem,
        title=str(title),
        topics=_strings(front, "topics", file),
        languages=_known(_strings(front, "languages", file), "languages", LANGUAGES, file),
        targets=_known(_strings(front, "targets", file), "targets", TARGETS, file),
        sources=_strings(front, "sources", file),
        text=text.strip(),
    )


def _split(content: str, file: Path) -> tuple[dict[str, Any], str]:
    """Split a file into its front matter and the rest; a file that does not begin with `---` has none."""
    lines = content.splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return {}, content
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise SetupError(f"knowledge: {file}: its front matter has no end; put a line {_FENCE} after it")
    try:
        front: object = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError as error:
        raise SetupError(f"knowledge: {file}: its front matter is not YAML: {' '.join(str(error).split())}") from error
    if front is not None and not isinstance(front, dict):
        raise SetupError(f"knowledge: {file}: its front matter must hold keys such as `title: ...`, one a line")
    return cast(dict[str, Any], front or {}), "\n".join(lines[end + 1 :])


def _strings(front: dict[str, Any], key: str, file: Path) -> tuple[str, ...]:
    """Return a key's list of words; a single word stands for a list of one."""
    value: object = front.get(key) or []
    items = cast(list[object], value) if isinstance(value, list) else [value]
    if any(isinstance(item, (dict, list)) for item in items):
        raise SetupError(f"knowledge: {file}: {key} must be a list of words, such as [one, two]")
    return tuple(str(item) for item in items)


def _known(values: tuple[str, ...], key: str, known: tuple[str, ...], file: Path) -> tuple[str, ...]:
    """Refuse a name that no campaign ever has: its digest would silently never be used."""
    if wrong := next((value for value in values if value not in known), None):
        raise SetupError(f"knowledge: {file}: {key}: {wrong!r} is none of {', '.join(known)}; [] means all")
    return values
