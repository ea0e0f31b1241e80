"""How much a result depends on the order in which matrix instructions add their products.

The device's order within an instruction is not documented. The machine adds in ascending or in descending order; what
the two differ by is noise that a tolerance must leave room for.
"""

from collections.abc import Sequence

import torch

from kernel_scientist.evaluation.correctness.memory_report import MemoryReports
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.records.evaluation import CompileReport
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers.client import ExecutionMode, Output, WorkerClient
from kernel_scientist.workers.untrusted.outputs import tensors


def matters(report: CompileReport | None) -> bool:
    """Whether a kernel has matrix instructions, according to its report."""
    return report is not None and any(one.mfma for one in report.objects)


def noise(driver: Driver, worker: WorkerClient, case: Case, reports: MemoryReports) -> str:
    """Call a kernel on the same inputs of a case with either order; return in words by how much the results differ.

    Raises KernelFailure for a result that is wrong in ascending order, or has another form in descending order.
    """
    inputs, found = driver.inputs.draw(case), list[list[torch.Tensor]]()
    for descending in (False, True):
        worker.execute(ExecutionMode(checked=True, descending=descending))
        with reports.of_call(worker, case.name):
            _, (output,) = driver.row(worker, {0: inputs})
        if not descending:
            driver.verify([inputs], [output])
        found.append(values(output))
    worker.execute(ExecutionMode(checked=True))
    if [one.shape for one in found[0]] != [one.shape for one in found[1]]:
        raise KernelFailure(Verdict.INCORRECT, f"{case.name}: two calls on the same inputs return different forms")
    return difference(*found)


def values(output: Output) -> list[torch.Tensor]:
    """Return copies of an output's tensors in fp64, with numbers for NaN. Raises KernelFailure for other outputs."""
    try:
        found = tensors(protocol.decode(output.tree, list(output.buffers), None))
    except protocol.WireError as error:
        raise KernelFailure(Verdict.REJECTED, f"its output is not data: {error}") from error
    return [torch.nan_to_num(one.double()) for one in found]


def difference(ascending: Sequence[torch.Tensor], descending: Sequence[torch.Tensor]) -> str:
    """Return in words by how much two results of a kernel on the same inputs differ."""
    pairs = [(a, b) for a, b in zip(ascending, descending, strict=True) if a.numel()]
    differ = sum(int((a != b).sum()) for a, b in pairs)
    if not differ:
        return "sums within matrix instructions in the other order: the same result to the bit"
    largest = max(float(a.abs().max()) for a, _ in pairs)
    most = max(float((a - b).abs().max()) for a, b in pairs)
    return (
        f"sums within matrix instructions in the other order: {differ} of {sum(a.numel() for a, _ in pairs)} "
        f"elements differ, by at most {most / max(largest, most):.1e} of the largest"
    )
