"""The policy: tampering is rejected unless it is allowed; a library may move memory but do no arithmetic."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kernel_scientist.evaluation.correctness import policy
from kernel_scientist.evaluation.screen.source import RuleMatch, Severity
from kernel_scientist.problems.problem import Policy
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.untrusted.op_profile import observe

STRICT = Policy(library=False)
TORCH: Any = torch
"""Some of its functions have no types."""
X = torch.arange(12.0).reshape(3, 4)
MOVES: dict[str, Callable[[Any], object]] = {
    "views": lambda x: (x.mT, x.T, x.ravel(), x.diagonal(), x.swapdims(0, 1), x.moveaxis(0, 1), x.t().T, x.chunk(3)),
    "views in place": lambda x: x.view(3, 4).unsqueeze_(0).squeeze_(0).transpose_(0, 1).t_().as_strided_((2,), (1,)),
    "broadcasts": lambda x: (x.broadcast_to(2, 3, 4), TORCH.atleast_2d(x), x.expand(2, 3, 4), x.split([1, 2])),
    "joins": lambda x: (torch.hstack([x, x]), torch.column_stack([x, x]), torch.stack([x, x])),
    "allocations": lambda x: (torch.ones_like(x), x.new_ones(2), torch.empty_permuted((2,), (0,)), torch.tensor([1])),
    "copies": lambda x: (x.flip(0), x.roll(1, 0), x.repeat_interleave(2, 0), x.clone(), x.to(torch.bfloat16)),
    "padding": lambda x: F.pad(x, (0, 64)).contiguous(),
}
ARITHMETIC: dict[str, tuple[Callable[[Any], object], str]] = {
    "product": (lambda x: x.T @ x, "mm"),
    "sum": (lambda x: x.sum(), "sum"),
    "look-up": (lambda x: x[x[0].long() % 3], "index"),
    "conjugate": (lambda x: torch.complex(x, x).mH, "_conj"),
    "in place": (lambda x: x.clone().mul_(2), "mul_"),
}


def observed(kernel: Callable[[Any], object]) -> policy.Observed:
    reply: dict[str, Any] = observe(kernel, X, mute=False)[0]
    return policy.Observed.read({**reply, "native_calls": 1})


@pytest.mark.parametrize("kernel", MOVES.values(), ids=MOVES)
def test_moving_memory_is_no_library_work(kernel: Callable[[Any], object]) -> None:
    assert observed(kernel).work == {}
    policy.require(STRICT, observed(kernel))


@pytest.mark.parametrize(("kernel", "operation"), ARITHMETIC.values(), ids=ARITHMETIC)
def test_arithmetic_is_library_work(kernel: Callable[[Any], object], operation: str) -> None:
    use = observed(kernel)
    assert operation in {policy.operation_name(name) for name in use.work} and use.labels() == ("library-work",)
    with pytest.raises(KernelFailure, match="lets a library compute"):
        policy.require(STRICT, use)
    policy.require(Policy(library=True), use)


def test_a_kernel_without_code_of_its_own_and_a_decoy_are_rejected() -> None:
    only_moves = policy.Observed.read({"operations": {"aten::copy_": 1}, "native_calls": 0})
    decoy = policy.Observed(native_calls=1, right_when_muted=True)
    for use, label, reason in ((only_moves, "library-only", "no kernel of its own"), (decoy, "decoy", "decoy")):
        assert use.labels() == (label,)
        with pytest.raises(KernelFailure, match=reason):
            policy.require(STRICT, use)
    assert policy.Observed.of([decoy, only_moves]) == policy.Observed(native_calls=0, right_when_muted=True)


def test_a_reason_can_be_written_whatever_the_worker_reports() -> None:
    with pytest.raises(KernelFailure) as caught:
        policy.require(STRICT, policy.Observed.read({"operations": {"aten::\ud800": 1}, "native_calls": 1}))
    assert caught.value.verdict is Verdict.REJECTED
    assert [text.encode() for text in (caught.value.reason, *caught.value.evidence)]


def test_the_first_tampering_is_the_reason_unless_the_problem_or_the_run_allows_it() -> None:
    threads = RuleMatch("threads", Severity.MEDIUM, 3, "std::thread")
    patch = RuleMatch("tampering:patch", Severity.HIGH, 7, "it replaces time.time", tampering=True)
    policy.require_untampered(Policy(tampering="allow"), "reject", [threads, patch])
    policy.require_untampered(Policy(), "allow", [threads, patch])
    policy.require_untampered(Policy(), "reject", [threads])
    with pytest.raises(KernelFailure, match=r"^tampering: it replaces time\.time \(line 7\)$") as caught:
        policy.require_untampered(Policy(), "reject", [threads, patch, patch._replace(line=8)])
    assert caught.value.verdict is Verdict.REJECTED
