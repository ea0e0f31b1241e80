"""What a problem allows besides a right answer, applied to what was seen of a kernel.

Two kinds of labels: those of the screen, from the source alone, and those measured in calls that are watched. A label
decides nothing unless the problem's policy (lab.yml) says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel_scientist.problems.taskfolder import Policy
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.validation import printable

MOVES = frozenset(
    {
        *("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"),
        *("zeros", "zeros_like", "new_zeros", "zero_", "ones", "ones_like", "new_ones"),
        *("full", "full_like", "new_full", "fill", "fill_", "arange", "scalar_tensor", "resize_", "set_"),
        *("view", "view_as", "_unsafe_view", "reshape", "reshape_as", "_reshape_alias", "as_strided", "as_strided_"),
        *("flatten", "unflatten", "ravel", "squeeze", "squeeze_", "unsqueeze", "unsqueeze_", "diagonal"),
        *("t", "t_", "transpose", "transpose_", "permute", "movedim", "moveaxis", "swapaxes", "swapdims"),
        *("numpy_T", "mT", "mH", "matrix_H", "adjoint"),  # of complex numbers `conj` is seen beside them
        *("expand", "expand_as", "broadcast_to", "broadcast_tensors", "atleast_1d", "atleast_2d", "atleast_3d"),
        *("slice", "select", "narrow", "narrow_copy", "unbind", "unfold", "tensor_split", "chunk", "unsafe_chunk"),
        *("split", "unsafe_split", "split_with_sizes", "unsafe_split_with_sizes"),
        *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "column_stack", "dstack"),
        *("pad", "constant_pad_nd", "repeat", "tile", "repeat_interleave", "flip", "roll"),
        *("detach", "detach_", "alias", "clone", "copy_", "contiguous", "_to_copy", "to", "type_as", "lift_fresh"),
        *("item", "_local_scalar_dense", "is_nonzero", "is_pinned", "is_same_size", "result_type", "can_cast"),
        *("resolve_conj", "resolve_neg"),
    }
)
"""Operations of torch's that allocate, look at memory in another way, or move it: no arithmetic.

Not among them: `index`, `gather` and their like. What is looked up in a table has been computed by it.
"""
FORBIDDEN = {"threads": "threads", "graphs": "graph"}
"""Labels of the screen that a policy can forbid, by the policy's key."""


@dataclass(frozen=True)
class Observed:
    """What watched calls showed, and whether the kernel is right without its own code."""

    work: dict[str, int] = field(default_factory=dict[str, int])
    """Arithmetic operations of torch's, with their counts."""
    native_calls: int = 0
    right_when_muted: bool = False

    @staticmethod
    def of(calls: Sequence["Observed"]) -> "Observed":
        """Return the worst of several calls: all work, the fewest native calls, whether any was right when muted."""
        work = {name: max(call.work.get(name, 0) for call in calls) for call in calls for name in call.work}
        native = min((call.native_calls for call in calls), default=0)
        return Observed(work, native, any(call.right_when_muted for call in calls))

    @staticmethod
    def read(reply: dict[str, Any]) -> "Observed":
        """Return what a worker reported, whatever it is."""
        operations, calls = reply.get("operations"), reply.get("native_calls")
        seen: dict[str, Any] = operations if isinstance(operations, dict) else {}
        named = {printable(name): count for name, count in seen.items() if isinstance(count, int)}
        work = {name: count for name, count in named.items() if base(name) not in MOVES}
        return Observed(work, calls if isinstance(calls, int) else 0)

    def labels(self) -> tuple[str, ...]:
        """Return what is worth telling."""
        found = ["library-work"] if self.work else []
        if self.native_calls == 0:
            found.append("library-only")
        elif self.right_when_muted:
            found.append("decoy")
        return tuple(found)


def base(operation: str) -> str:
    """Return the plain name of a torch operation: `aten::mm` is `mm`."""
    return operation.removeprefix("aten::")


def require(policy: Policy, labels: tuple[str, ...], observed: Observed) -> None:
    """Raise KernelFailure (rejected) where the problem's policy forbids what was seen."""
    for key, name in FORBIDDEN.items():
        if not getattr(policy, key) and any(label.endswith(f":{name}") for label in labels):
            raise KernelFailure(Verdict.REJECTED, f"the problem does not allow {key} (lab.yml: policy.{key})")
    if policy.library:
        return
    words = ", ".join(f"{name} {count}x" for name, count in observed.work.items())
    if observed.native_calls == 0:
        _refuse("it runs no kernel of its own", words)
    if observed.work:
        _refuse(f"it lets a library compute ({base(next(iter(observed.work)))})", words)
    if observed.right_when_muted:
        _refuse("its kernel is a decoy: the output is right without it", words)


def _refuse(reason: str, words: str) -> None:
    evidence = (f"torch operations in a call: {words}",) if words else ()
    raise KernelFailure(Verdict.REJECTED, f"{reason} (lab.yml: policy.library)", evidence)
