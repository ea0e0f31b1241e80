"""Hardware counters of a kernel, read after its timing: one call per case under the vendor's profiler.

Counters explain times but affect no result, because they come from the kernel's own process.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.hardware import counter_figures
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.profile import ncu, profiler, rocprof, workspace
from kernel_scientist.profile.dispatches import CountingError, Group, grouped
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.profile.workspace import Workspace
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.records.evaluation import COUNTERS, Evaluation
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import Case, Kernel, Verdict

SENTENCE = 400
Run = Callable[[list[str]], tuple[int | None, str]]
"""Runs a profiler; returns its status (None: timeout) and the end of its output."""


def wanted(evaluator: Evaluator, evaluation: Evaluation) -> bool:
    """Whether a kernel's counters are to be read: it is correct and was timed on a GPU."""
    timed = evaluation.verdict is Verdict.OK and bool(evaluation.timings)
    return timed and evaluator.pool.device != "cpu" and evaluator.harness.counters == "auto"


def without(evaluation: Evaluation, reason: str) -> Evaluation:
    """Return the evaluation with the reason why nothing was counted."""
    return _noted(evaluation, f"none: {' '.join(reason.split())}")


def find() -> Profiler | str:
    """Return the profiler for this machine's GPU, or the reason (a sentence) why there is none."""
    import torch

    return profiler.find("rocm" if torch.version.hip else "cuda")


def count(
    evaluator: Evaluator, kernel: Kernel, evaluation: Evaluation, cases: Sequence[Case] | None = None
) -> Evaluation:
    """Return the evaluation with counters, or with the reason why there are none. The verdict is unchanged.

    `cases`: by default all timed ones. The caller must hold the device's lock. Takes little more than
    `harness.counters_timeout_s`.
    """
    start = time.monotonic()
    try:
        tool = find()
        if isinstance(tool, str):
            return without(evaluation, tool)
        cases = evaluator.profile.benchmarks if cases is None else cases
        counters, remarks = _counted(evaluator, kernel, tool, cases)
    except StoppedError:
        raise
    except Exception as error:  # counters are optional: the kernel was timed, and the campaign continues
        return without(evaluation, str(error) or type(error).__name__)
    seconds = {**evaluation.seconds, "count": round(time.monotonic() - start, 3)}
    note = "; ".join((f"{tool.name}, {len({c.case for c in counters})} cases", *remarks))
    return _noted(evaluation.model_copy(update={"counters": counters, "seconds": seconds}), note)


def _noted(evaluation: Evaluation, note: str) -> Evaluation:
    return evaluation.model_copy(update={"environment": {**evaluation.environment, COUNTERS: note[:SENTENCE]}})


def _counted(
    evaluator: Evaluator, kernel: Kernel, tool: Profiler, cases: Sequence[Case]
) -> tuple[tuple[Counters, ...], list[str]]:
    """Return the counters, and remarks on what could not be counted. Raises CountingError if there are none."""
    end = time.monotonic() + evaluator.harness.counters_timeout_s
    pool, machine = evaluator.pool, evaluator.machine
    with tempfile.TemporaryDirectory(prefix="counting-") as name:
        space = workspace.prepare(evaluator, kernel, cases, Path(name), tool)

        def run(program: list[str]) -> tuple[int | None, str]:
            namespaces = pool.enclosure == "bubblewrap"
            command = profiler.command(program, space.folder, pool.device, namespaces, tool.readable)
            return profiler.run(command, space.folder, pool.device, end - time.monotonic(), pool.stopped)

        if tool.name == "ncu":
            groups, remarks = _by_ncu(tool, space, run), list[str]()
        else:
            groups, remarks = _by_rocprof(tool, space, machine.arch if isinstance(machine, Gpu) else "", run)
    if not groups:
        raise CountingError(remarks[0] if remarks else f"{tool.name} saw no kernel in the counted calls")
    return tuple(
        Counters(**vars(group), tool=tool.name, figures=counter_figures.derive(tool.name, group.counts))
        for group in groups
    ), remarks


def _by_ncu(tool: Profiler, space: Workspace, run: Run) -> list[Group]:
    """Run once, and once more without the metrics that this GPU lacks."""
    table = space.folder / "table.csv"

    def attempt(names: tuple[str, ...]) -> tuple[int | None, str, str]:
        status, output = run(ncu.command(tool.program, names, table, space.program))
        return status, output, table.read_text(errors="replace") if table.is_file() else ""

    status, output, text = attempt(ncu.METRICS)
    unknown = ncu.unknown(f"{text}\n{output}", ncu.METRICS)
    if status != 0 and unknown and unknown != ncu.METRICS:
        status, output, text = attempt(tuple(name for name in ncu.METRICS if name not in unknown))
    if ncu.forbidden(f"{text}\n{output}"):
        raise CountingError(ncu.FORBIDDEN)
    if status != 0:
        raise CountingError(profiler.failure(tool, status, output or text))
    return grouped(ncu.read(text), space.cases)


def _by_rocprof(tool: Profiler, space: Workspace, arch: str, run: Run) -> tuple[list[Group], list[str]]:
    """Run once per group of counters, and combine the counts of the same kernel in the same case."""
    found: dict[tuple[str, str], Group] = {}
    remarks: list[str] = []
    for number, names in enumerate(rocprof.groups(arch)):
        out = space.folder / f"pass{number}"
        out.mkdir()
        status, output = run(rocprof.command(tool.program, names, out, space.program))
        try:
            if status != 0:
                raise CountingError(profiler.failure(tool, status, output))
            groups = grouped(rocprof.read(rocprof.table(out)), space.cases)
        except (CountingError, OSError) as error:
            remarks.append(f"not counted: {', '.join(names)}: {error}")
            if len(remarks) > 1 and not found:
                break  # the others would fail like the first two
            continue
        for group in groups:
            found.setdefault((group.case, group.kernel), group).counts.update(group.counts)
    return list(found.values()), remarks
