"""Is what a worker hands over what it had ended with, and in memory of its own?

When the bell rings the verifier reads pieces of the outputs where they lie, and at times asks the system what memory
that is. What is handed over later must be the same. A worker that does not say where its outputs lie has none.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from kernel_scientist.evaluate.correctness.inputs import Delivery
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.native import MOST_PLACES, Glimpse, Look
from kernel_scientist.workers.untrusted.outputs import address

if TYPE_CHECKING:
    from kernel_scientist.evaluate.evaluator import Evaluator
    from kernel_scientist.workers.client import Session


def look(evaluator: "Evaluator", session: "Session", delivery: Delivery, slots: Sequence[int]) -> Look | None:
    """Return what to do when the bell has rung, if the lot falls on this call or row of calls."""
    name = delivery.case.name
    if evaluator.problem.policy.aliases or not evaluator.inputs.verified(evaluator.harness.verify_fraction):
        return None

    def require_own(glimpse: Glimpse) -> None:
        if session.borrowed(slots, glimpse.places):
            raise KernelFailure(Verdict.INCORRECT, f"{name}: the memory of its output is that of an input")

    return require_own


def require(evaluator: "Evaluator", session: "Session", delivery: Delivery, slot: int) -> None:
    """Fetch the output of a single timed call and compare it in full. Raises KernelFailure."""
    _require(evaluator, session, delivery, slot, session.glimpses.get(slot), (0, 1), session.digests.get(slot))


def require_of_row(
    evaluator: "Evaluator", session: "Session", delivery: Delivery, slot: int, glimpse: Glimpse, of: int
) -> None:
    """The same for a call of a row of so many, which were made on the slots from 0 on."""
    spans = sorted((start, start + size) for start, size in glimpse.places if size)
    if any(start < end for (_, end), (start, _) in pairwise(spans)):
        words = "an output was overwritten by a later call: each call must return memory of its own"
        raise KernelFailure(Verdict.INCORRECT, f"{delivery.case.name}: {words}")
    _require(evaluator, session, delivery, slot, glimpse, (slot, of), None)


def _require(
    evaluator: "Evaluator",
    session: "Session",
    delivery: Delivery,
    slot: int,
    glimpse: Glimpse | None,
    place: tuple[int, int],
    digest: int | None,
) -> None:
    header, buffers = session.fetch(evaluator.comparison.room(delivery), slot)
    places = [(address(data), len(data)) for data in buffers]
    number, of = place
    lasts = not glimpse or glimpse.fits(evaluator.native, places, number * len(places), of * len(places))
    if not lasts or (digest is not None and evaluator.native.pin(places) != digest):
        raise KernelFailure(Verdict.REJECTED, f"{delivery.case.name}: it handed over another output than it ended with")
    evaluator.comparison.require(delivery, header, buffers)
    hidden = session.sees and not glimpse and of * len(places) <= MOST_PLACES
    if hidden and evaluator.comparison.visible(delivery):
        raise KernelFailure(
            Verdict.REJECTED, f"{delivery.case.name}: its worker did not say where its output lay when it had ended"
        )
