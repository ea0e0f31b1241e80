"""Text from outside, made valid where it comes in: lone surrogates cannot be stored, printed or sent."""

from typing import Any, cast


def valid(text: str) -> str:
    """Return a text with a question mark in place of each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


def valid_tree(value: Any) -> Any:
    """Return a value of JSON or YAML with all its texts made valid: they may escape lone surrogates."""
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, dict):
        return {valid_tree(key): valid_tree(item) for key, item in cast(dict[Any, Any], value).items()}
    return [valid_tree(item) for item in cast(list[Any], value)] if isinstance(value, list) else value
