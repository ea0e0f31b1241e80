"""Checks what Triton's `tl.assume` says, where launches are checked: a wave that finds it false ends itself there.

The compiler draws conclusions from an assumption and drops it, so that code for a false one may be right by luck, on
this version. Such code is compiled apart from that without checks. Runs in workers.
"""

from typing import Any

from triton.language.semantic import TritonSemantic

from kernel_scientist.gpu.machine.shadow import FALSE_ASSUMPTION


class Assumptions:
    """How this process compiles assumptions."""

    def __init__(self) -> None:
        """Replace Triton's own way, which goes on where nothing is checked."""
        self.checked = True
        semantic: Any = TritonSemantic
        unchecked = semantic.assume

        def assume(own: Any, condition: Any) -> Any:
            if self.checked:
                _trap_unless(own, condition)
                return unchecked(own, own.to_tensor(True))
            return unchecked(own, condition)

        semantic.assume = assume

    @property
    def key(self) -> str:
        """Return what tells code with checks from code without in the compiler's cache."""
        return "checked" if self.checked else ""


def _trap_unless(semantic: Any, condition: Any) -> None:
    builder = semantic.builder
    place = builder.get_insertion_point()
    choice = builder.create_if_op([], semantic.not_(condition).handle, False)
    builder.set_insertion_point_to_start(choice.get_then_block())
    builder.create_inline_asm(f"s_trap {FALSE_ASSUMPTION}", "=v", [], [builder.get_int32_ty()], False, 1)
    builder.restore_insertion_point(place)
