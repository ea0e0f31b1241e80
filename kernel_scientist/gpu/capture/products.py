"""The types of the operands of a Triton kernel's matrix products, as its source has them.

The compiler's front end and its back ends convert operands that the GPU has no matrix instruction for. Runs in
untrusted processes: imports the standard library and triton only.
"""

from typing import Any

from triton.language.semantic import TritonSemantic


def recorded() -> dict[str, None]:
    """Return what will hold the types of the products that are compiled from now on, in Triton's names, in order."""
    found: dict[str, None] = {}
    semantic: Any = TritonSemantic
    dot, dot_scaled = semantic.dot, semantic.dot_scaled

    def plain(self: Any, lhs: Any, rhs: Any, *rest: Any, **named: Any) -> Any:
        found.update(dict.fromkeys((str(lhs.dtype.scalar), str(rhs.dtype.scalar))))
        return dot(self, lhs, rhs, *rest, **named)

    def scaled(self: Any, *given: Any, **named: Any) -> Any:
        formats = [named[name] for name in ("lhs_format", "rhs_format") if name in named] or [given[2], given[5]]
        found.update(dict.fromkeys(f"mx {getattr(one, 'value', one)}" for one in formats))
        return dot_scaled(self, *given, **named)

    semantic.dot, semantic.dot_scaled = plain, scaled
    return found
