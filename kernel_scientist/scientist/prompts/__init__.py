"""Renders prompts from the Jinja templates in this folder: one per role, and shared ones (leading underscore)."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import digest

FOLDER = Path(__file__).parent
SYSTEM = "_system.md.j2"


class Message(Record):
    """One message of a conversation."""

    role: str
    content: str


@dataclass(frozen=True)
class Prompt:
    """The first messages to a model, and the digest of their templates."""

    messages: tuple[Message, ...]
    digest: str


def render(role: str, **context: Any) -> Prompt:
    """Return a role's prompt. A name that a template uses and `context` lacks is an error."""
    environment = _environment()
    system, task = (environment.get_template(n).render(**context).strip() for n in (SYSTEM, f"{role}.md.j2"))
    messages = (Message(role="system", content=system), Message(role="user", content=_closed_up(task) + "\n"))
    return Prompt(messages, version(role))


def _closed_up(text: str) -> str:
    """Return a text with one blank line at most in a row, but in its fenced blocks."""
    kept, fenced = list[str](), False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced or line != "```"
        if fenced or line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept)


@functools.cache
def version(role: str) -> str:
    """Return the shortened digest of the templates of a role's prompt, by which campaigns can be compared."""
    shared = sorted(FOLDER.glob("_*.j2"))
    return digest("\0".join(f.read_text() for f in (*shared, FOLDER / f"{role}.md.j2")))[:16]


def rounded_us(us: float) -> str:
    """Return microseconds with three digits."""
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
        autoescape=False,  # the output is Markdown for a model, not HTML
    )
    environment.filters["us"] = rounded_us
    return environment
