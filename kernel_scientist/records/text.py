"""Text from outside, made valid where it comes in: lone surrogates cannot be stored, printed or sent, and PostgreSQL
stores no NUL. Counts in messages."""


def valid(text: str) -> str:
    """Return a text with a question mark in place of each lone surrogate, and the replacement mark of each NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def with_line_feeds(text: str) -> str:
    """Return a text whose lines end as files are read here: by a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def number_of(count: int, what: str) -> str:
    """Return a count with what is counted in the right number: `1 kernel`, `2 kernels`."""
    return f"{count} {what}{'' if count == 1 else 's'}"
