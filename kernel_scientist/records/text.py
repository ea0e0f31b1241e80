"""Text from outside, made valid where it comes in: lone surrogates cannot be stored, printed or sent, and PostgreSQL
stores no NUL."""


def valid(text: str) -> str:
    """Return a text with a question mark in place of each lone surrogate, and the replacement mark of each NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
