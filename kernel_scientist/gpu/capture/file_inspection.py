"""Finds out what the kernels of a file compile to, as it lies in its package, by a confined process.

Trusted side. If a kernel ends the compiler's process, the file is inspected again, with smaller tiles for that kernel;
if it does so again, without that kernel.
"""

from collections.abc import Mapping
from dataclasses import replace

from kernel_scientist.gpu.capture.files.surroundings import Surroundings
from kernel_scientist.gpu.capture.inspect import CompilerEndedError, Inspection, asked
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.sandbox import protocol
from kernel_scientist.sandbox.failure import KernelFailure

RESTARTS = 6
"""How often the kernels of a file may end the compiler."""


def seen_file(
    source: str,
    place: Surroundings,
    gpu: Gpu,
    timeout_s: float,
    entry: str | None = None,
    inputs: Mapping[str, protocol.Header] | None = None,
) -> Inspection:
    """Import a file as it lies in its package, call its entry, and compile its other kernels with invented arguments.

    `inputs`: the entry's arguments by name; by default those of the file's `get_inputs`. Raises like `inspect.inspect`.
    """
    file = {"path": place.path, "module": place.module, "roots": place.roots}
    ended: dict[str, int] = {}
    told: list[str] = []
    while True:
        small, skip = [name for name, times in ended.items() if times == 1], [n for n, t in ended.items() if t > 1]
        what = {"file": file, "entry": entry, "inputs": inputs, "small": small, "skip": skip}
        try:
            found = asked(source, gpu, timeout_s, what, place.readable)
        except CompilerEndedError as end:
            if sum(ended.values()) == RESTARTS:
                raise KernelFailure(Verdict.CRASHED, f"its inspection ended: {end}", tuple(told)) from end
            ended[end.kernel] = ended.get(end.kernel, 0) + 1
            told += [str(end)] if ended[end.kernel] > 1 else []
            continue
        return replace(found, report=found.report.model_copy(update={"missed": (*found.report.missed, *told)}))
