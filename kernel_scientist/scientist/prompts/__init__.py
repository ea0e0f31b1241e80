"""The prompts: Jinja templates beside this file, one per role, and what they share (names with a leading underscore).

A prompt's digest is that of its templates, so that campaigns with different wordings can be compared.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.records.kernel import digest
from kernel_scientist.scientist.llm.reply_store import Message

FOLDER = Path(__file__).parent
SYSTEM = "_system.md.j2"


@dataclass(frozen=True)
class Prompt:
    """What is said to a model first, and the digest of the templates it was made from."""

    messages: tuple[Message, ...]
    digest: str


def render(role: str, **facts: Any) -> Prompt:
    """Return a role's prompt about `facts`. A fact that a template names and nobody gives is an error."""
    environment = _environment()
    texts = (environment.get_template(name).render(**facts).strip() for name in (SYSTEM, f"{role}.md.j2"))
    system, task = texts
    return Prompt((Message(role="system", content=system), Message(role="user", content=task + "\n")), version(role))


@functools.cache
def version(role: str) -> str:
    """Return the digest of all templates that a role's prompt is made from, shortened."""
    shared = sorted(FOLDER.glob("_*.j2"))
    return digest("\0".join(f.read_text() for f in (*shared, FOLDER / f"{role}.md.j2")))[:16]


def brief_us(us: float) -> str:
    """Return microseconds for reading: three digits are enough."""
    return f"{us:.0f}" if us >= 100 else f"{us:.3g}"


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # these are texts for a model, not pages
    )
    environment.filters["us"] = brief_us
    return environment
