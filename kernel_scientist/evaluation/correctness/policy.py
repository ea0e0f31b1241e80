"""A problem's policy, enforced on correct kernels too: no tampering, and library work only if it is allowed.

Observed calls (untimed) find out whether the kernel's own code does the work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.screen.source import RuleMatch
from kernel_scientist.problems.problem import Policy, Profile
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.workers.client import WorkerClient

TIMED_CASES = 4
"""Number of timed cases that are observed if the policy forbids library work."""

MOVES = frozenset(
    {
        *("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"),
        *("zeros", "zeros_like", "new_zeros", "zero_", "ones", "ones_like", "new_ones"),
        *("full", "full_like", "new_full", "fill", "fill_", "arange", "scalar_tensor", "resize_", "set_"),
        *("view", "view_as", "_unsafe_view", "reshape", "reshape_as", "_reshape_alias", "as_strided", "as_strided_"),
        *("flatten", "unflatten", "ravel", "squeeze", "squeeze_", "unsqueeze", "unsqueeze_", "diagonal"),
        *("t", "t_", "transpose", "transpose_", "permute", "movedim", "moveaxis", "swapaxes", "swapdims"),
        *("numpy_T", "mT", "mH", "matrix_H", "adjoint"),  # on complex numbers `conj` is reported as well
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
"""Torch operations that allocate memory, move it, or view it differently: no arithmetic.

`index`, `gather` and similar ones are excluded, because a table look-up can replace the computation.
"""


@dataclass(frozen=True)
class Observed:
    """Findings of observed calls, and whether the output is correct without the kernel's own code."""

    work: dict[str, int] = field(default_factory=dict[str, int])
    """Arithmetic operations of torch, with their counts."""
    native_calls: int = 0
    graph_replays: int = 0
    """Graphs that were replayed through torch."""
    right_when_muted: bool = False

    @staticmethod
    def of(calls: Sequence["Observed"]) -> "Observed":
        """Return merged calls: all of torch's work, the fewest native calls, whether any muted output was correct."""
        work = {name: max(call.work.get(name, 0) for call in calls) for call in calls for name in call.work}
        native = min((call.native_calls for call in calls), default=0)
        replays = max((call.graph_replays for call in calls), default=0)
        return Observed(work, native, replays, any(call.right_when_muted for call in calls))

    @staticmethod
    def read(reply: dict[str, Any]) -> "Observed":
        """Return a worker's report in parsed form. Fields of a wrong type are ignored."""
        operations = reply.get("operations")
        counts: dict[str, Any] = operations if isinstance(operations, dict) else {}
        named = {printable(name): count for name, count in counts.items() if isinstance(count, int)}
        work = {name: count for name, count in named.items() if operation_name(name) not in MOVES}
        numbers = (reply.get("native_calls"), reply.get("graph_replays"))
        native, graphs = (n if isinstance(n, int) else 0 for n in numbers)
        return Observed(work, native, graphs)

    def labels(self) -> tuple[str, ...]:
        """Return the labels of an evaluation: `library-work`, and `library-only` or `decoy`."""
        labels = ["library-work"] if self.work else []
        if self.native_calls == 0:
            labels.append("library-only")
        elif self.right_when_muted:
            labels.append("decoy")
        return tuple(labels)


def observed_cases(driver: Driver, profile: Profile, checked: Sequence[Case], timed: bool) -> tuple[Case, ...]:
    """Return the cases to observe: one checking case and, if library work is forbidden, some random timed ones.

    Timed cases are included because a kernel could use a library on them only, to appear faster.
    """
    others = profile.benchmarks if timed and not driver.problem.policy.library else ()
    return (*checked[-1:], *(others[i] for i in driver.inputs.chosen(len(others), TIMED_CASES)))


def observe(driver: Driver, worker: WorkerClient, chosen: Sequence[Case]) -> Observed:
    """Observe a call on each case; then disable the kernel's own code and check whether the output is still correct.

    Raises KernelFailure for a wrong output of a call that was not muted. Muted calls come last: a kernel that waits
    for an effect of its muted code hangs, and its worker is lost.
    """
    observed = [Observed.read(_call(driver, worker, case, mute=False)) for case in chosen]
    for i, case in enumerate(chosen):
        if observed[i].native_calls == 0:
            continue
        try:
            _call(driver, worker, case, mute=True)
        except KernelFailure as failure:
            if failure.verdict is not Verdict.INCORRECT:
                break
        else:
            observed[i] = replace(observed[i], right_when_muted=True)
    return Observed.of(observed)


def _call(driver: Driver, worker: WorkerClient, case: Case, mute: bool) -> dict[str, object]:
    """Make one call on new inputs. Raises KernelFailure if its output is wrong."""
    inputs = {0: driver.inputs.draw(case)}
    driver.deliver(worker, inputs)
    driver.write(worker, inputs)
    reply, output = worker.observe(mute, driver.comparison.room(inputs[0]))
    driver.verify([inputs[0]], [output])
    return reply


def operation_name(operation: str) -> str:
    """Return the plain name of a torch operation: `aten::mm` is `mm`."""
    return operation.removeprefix("aten::")


def require_untampered(policy: Policy, run: Literal["reject", "allow"], findings: Sequence[RuleMatch]) -> None:
    """Raise KernelFailure (rejected) for the first finding of tampering, unless the problem or the run allows it.

    `run` is `harness.tampering` of params.yaml.
    """
    first = next((finding for finding in findings if finding.tampering), None)
    if first is not None and "allow" not in (policy.tampering, run):
        raise KernelFailure(Verdict.REJECTED, f"tampering: {first.detail} (line {first.line})")


def require(policy: Policy, observed: Observed) -> None:
    """Raise KernelFailure (rejected) if a library does the work or a graph is replayed against the policy."""
    if observed.graph_replays and not policy.graphs:
        raise KernelFailure(Verdict.REJECTED, "it replays a graph, which is not allowed (lab.yml: policy.graphs)")
    if policy.library:
        return
    counts = ", ".join(f"{name} {count}x" for name, count in observed.work.items())
    if observed.native_calls == 0:
        _reject("it runs no kernel of its own", counts)
    if observed.work:
        _reject(f"it lets a library compute ({operation_name(next(iter(observed.work)))})", counts)
    if observed.right_when_muted:
        _reject("its kernel is a decoy: the output is right without it", counts)


def _reject(reason: str, counts: str) -> None:
    evidence = (f"torch operations in a call: {counts}",) if counts else ()
    raise KernelFailure(Verdict.REJECTED, f"{reason} (lab.yml: policy.library)", evidence)
