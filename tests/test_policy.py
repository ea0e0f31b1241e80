"""What a problem forbids beside a wrong answer: a library's arithmetic, and not that it moves memory."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kernel_scientist.evaluate.correctness import policy
from kernel_scientist.problems.taskfolder import Policy
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.untrusted.op_profile import observe

STRICT = Policy(library=False)
TORCH: Any = torch
"""Some of its functions have no types."""
X = torch.arange(12.0).reshape(3, 4)
MOVES: dict[str, Callable[[Any], object]] = {
    "views": lambda x: (x.mT, x.T, x.mH, x.ravel(), x.diagonal(), x.swapdims(0, 1), x.moveaxis(0, 1), x.t().T),
    "views in place": lambda x: x.view(3, 4).unsqueeze_(0).squeeze_(0).transpose_(0, 1).t_().as_strided_((2,), (1,)),
    "parts": lambda x: (x.split([1, 2]), x.split_with_sizes([1, 2]), x.tensor_split(2), x.chunk(3), x.unbind()),
    "broadcasts": lambda x: (x.broadcast_to(2, 3, 4), TORCH.atleast_2d(x), TORCH.atleast_1d(x), x.expand(2, 3, 4)),
    "joined": lambda x: (torch.hstack([x, x]), torch.vstack([x, x]), torch.column_stack([x, x]), torch.stack([x, x])),
    "made": lambda x: (torch.ones_like(x), x.new_ones(2), torch.empty_permuted((2, 3), (1, 0)), x.new_full((2,), 7.0)),
    "numbers": lambda x: torch.tensor([x.shape[0], 2, 3]),
    "copied": lambda x: (x.flip(0), x.roll(1, 0), x.repeat_interleave(2, 0), x.narrow_copy(0, 0, 2), x.clone()),
    "padded": lambda x: F.pad(x, (0, 64)).contiguous(),
    "cast": lambda x: x.to(torch.bfloat16).type_as(x),
}  # fmt: skip
ARITHMETIC: dict[str, tuple[Callable[[Any], object], str]] = {
    "product": (lambda x: x.T @ x, "mm"),
    "sum": (lambda x: x.sum(), "sum"),
    "a table": (lambda x: x[x[0].long() % 3], "index"),
    "conjugate": (lambda x: torch.complex(x, x).mH, "_conj"),
    "averages": (lambda x: F.avg_pool1d(x, 2), "avg_pool1d"),
    "in place": (lambda x: x.clone().mul_(2), "mul_"),
}


def seen(kernel: Callable[[Any], object]) -> policy.Observed:
    reply: dict[str, Any] = observe(kernel, X, mute=False)[0]
    return policy.Observed.read({**reply, "native_calls": 1})


@pytest.mark.parametrize("name", MOVES)
def test_memory_may_be_made_looked_at_and_moved(name: str) -> None:
    assert seen(MOVES[name]).work == {}
    policy.require(STRICT, (), seen(MOVES[name]))


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_a_librarys_work(name: str) -> None:
    kernel, operation = ARITHMETIC[name]
    found = seen(kernel)
    assert operation in {policy.base(name) for name in found.work}
    with pytest.raises(KernelFailure, match="lets a library compute"):
        policy.require(STRICT, (), found)
    policy.require(Policy(library=True), (), found)


def test_moving_alone_is_no_kernel() -> None:
    with pytest.raises(KernelFailure, match="runs no kernel of its own"):
        policy.require(STRICT, (), policy.Observed.read({"operations": {"aten::copy_": 1}, "native_calls": 0}))
    with pytest.raises(KernelFailure, match="decoy"):
        policy.require(STRICT, (), policy.Observed(native_calls=1, right_when_muted=True))


def test_a_workers_words_can_be_written_whatever_they_are() -> None:
    with pytest.raises(KernelFailure) as caught:
        policy.require(STRICT, (), policy.Observed.read({"operations": {"aten::\ud800": 1}, "native_calls": 1}))
    assert caught.value.verdict is Verdict.REJECTED
    assert [text.encode() for text in (caught.value.reason, *caught.value.evidence)]
