"""Placeholders for names whose import or computation failed: harmless until a kernel needs one.

Runs in untrusted processes: imports the standard library only.
"""

from collections.abc import Iterator
from typing import Any


class Missing:
    """A placeholder: it can be called, subclassed, compared and used as a decorator, and is false."""

    def __init__(self, name: str, why: str) -> None:
        self.__dict__.update(_name=name, _why=why)

    def __getattr__(self, name: str) -> "Missing":
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _part(self, f".{name}")

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return a decorated function or class as it is, and a placeholder for any other result."""
        one = args[0] if len(args) == 1 and not named else None
        return one if callable(one) and not isinstance(one, Missing) else _part(self, "()")

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __getitem__(self, key: Any) -> "Missing":
        return self

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, item: Any) -> bool:
        return False

    def __enter__(self) -> "Missing":
        return self

    def __exit__(self, *_: object) -> None: ...

    def __repr__(self) -> str:
        return f"<{self._name}: {self._why}>"


def _part(whole: Missing, what: str) -> Missing:
    return Missing(whole.__dict__["_name"] + what, whole.__dict__["_why"])


def _compared(self: Missing, other: Any) -> bool:
    return False


def _combined(self: Missing, other: Any) -> Missing:
    return self


for _operation in ("lt", "le", "gt", "ge"):
    setattr(Missing, f"__{_operation}__", _compared)
for _operation in ("add", "sub", "mul", "truediv", "floordiv", "mod", "or", "and", "pow"):
    setattr(Missing, f"__{_operation}__", _combined)
    setattr(Missing, f"__r{_operation}__", _combined)


def reason(value: Any) -> str | None:
    """Return why a value is missing; None if it is not."""
    return f"`{value.__dict__['_name']}` is missing: {value.__dict__['_why']}" if type(value) is Missing else None
