"""Count what a kernel does on its GPU, after it was timed: each case once, under the profiler that is there.

What is counted explains times; it decides nothing, for it comes out of the process that the kernel is in.
"""

import os
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.profile import enclosed, ncu, profiler, rocprof, workspace
from kernel_scientist.profile import metrics as figures
from kernel_scientist.profile.dispatches import CountingError, Dispatch, Group, grouped
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.profile.workspace import Scene
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import Kernel, Verdict

KEY = "counters"
"""Of an evaluation's environment: what was counted by, or why nothing was."""
SENTENCE = 400
Run = Callable[[list[str]], tuple[int | None, str]]


def wanted(evaluator: Evaluator, evaluation: Evaluation) -> bool:
    """Whether a kernel's counters are to be read: it was timed right, on a GPU."""
    right = evaluation.verdict is Verdict.OK and bool(evaluation.timings)
    return right and evaluator.pool.device != "cpu" and evaluator.harness.counters == "auto"


def without(evaluation: Evaluation, why: str) -> Evaluation:
    """Return an evaluation that says why nothing was counted."""
    return _told(evaluation, f"none: {' '.join(why.split())[:SENTENCE]}")


def count(evaluator: Evaluator, kernel: Kernel, evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with what was counted, or with a sentence why nothing was; never another verdict.

    The caller holds the device. Takes `harness.counters_timeout_s` at most, and a little for what cannot be broken off.
    """
    start = time.monotonic()
    try:
        import torch

        tool = profiler.find("rocm" if torch.version.hip else "cuda")
        if isinstance(tool, str):
            return without(evaluation, tool)
        counters, remarks = _counted(evaluator, kernel, tool)
    except StoppedError:
        raise
    except Exception as error:  # an extra: whatever breaks in it, the kernel was timed and the campaign goes on
        return without(evaluation, str(error) or type(error).__name__)
    seconds = {**evaluation.seconds, "count": round(time.monotonic() - start, 3)}
    told = "; ".join((f"{tool.name}, {len({c.case for c in counters})} cases", *remarks))
    return _told(evaluation.model_copy(update={"counters": counters, "seconds": seconds}), told[:SENTENCE])


def _told(evaluation: Evaluation, words: str) -> Evaluation:
    return evaluation.model_copy(update={"environment": {**evaluation.environment, KEY: words}})


def _counted(evaluator: Evaluator, kernel: Kernel, tool: Profiler) -> tuple[tuple[Counters, ...], list[str]]:
    """Return what was counted, and what could not be. Raises CountingError when there is nothing."""
    deadline = time.monotonic() + evaluator.harness.counters_timeout_s
    pool = evaluator.pool
    with tempfile.TemporaryDirectory(prefix="counting-") as name:
        ready = workspace.prepare(evaluator, kernel, evaluator.profile.benchmarks, Path(name), tool.name)

        def run(program: list[str]) -> tuple[int | None, str]:
            left = deadline - time.monotonic()
            if left <= 0:
                return None, ""
            line = enclosed.command(program, ready.folder, pool.device, pool.enclosure, tool.readable)
            return enclosed.run(line, ready.folder, pool.device, left, pool.stopped)

        if tool.name == "ncu":
            found, remarks = _by_ncu(tool, ready, run), list[str]()
        else:
            arch = evaluator.machine.arch if isinstance(evaluator.machine, Gpu) else ""
            found, remarks = _by_rocprof(tool, ready, arch, run)
    counters = tuple(
        Counters(
            case=group.case,
            kernel=group.kernel,
            tool=tool.name,
            dispatches=group.dispatches,
            counts=group.counts,
            figures=figures.derive(tool.name, group.counts),
        )
        for group in found
    )
    if not counters:
        raise CountingError(f"{tool.name} saw no kernel in the counted calls")
    return counters, remarks


def _by_ncu(tool: Profiler, ready: Scene, run: Run) -> list[Group]:
    """Run once; once more without the metrics that this GPU has not."""
    table = ready.folder / "table.csv"

    def tried(metrics: tuple[str, ...]) -> tuple[int | None, str, str]:
        status, words = run(ncu.command(tool.program, metrics, table, ready.program))
        return status, _left(table), words

    status, text, words = tried(ncu.METRICS)
    refused = ncu.unknown(f"{text}\n{words}", ncu.METRICS)
    if status != 0 and refused and refused != ncu.METRICS:
        status, text, words = tried(tuple(m for m in ncu.METRICS if m not in refused))
    if ncu.forbidden(f"{text}\n{words}"):
        raise CountingError(ncu.FORBIDDEN)
    if status != 0:
        raise CountingError(_failed(tool, status, words or text))
    return grouped(ncu.read(text), ready.cases)


def _by_rocprof(tool: Profiler, ready: Scene, arch: str, run: Run) -> tuple[list[Group], list[str]]:
    """Run once per group of counters, and put together what was counted of the same kernel in the same case."""
    found: dict[tuple[str, str], Group] = {}
    remarks: list[str] = []
    for number, names in enumerate(rocprof.groups(arch)):
        out = ready.folder / f"pass{number}"
        out.mkdir()
        status, words = run(rocprof.command(tool.program, names, out, ready.program))
        try:
            if status != 0:
                raise CountingError(_failed(tool, status, words))
            groups = grouped(_dispatches(out), ready.cases)
        except (CountingError, OSError) as error:
            remarks.append(f"not counted: {', '.join(names)}: {error}")
            if number == 1 and not found:
                break  # two failures and nothing else: the others would go the same way
            continue
        for group in groups:
            known = found.get((group.case, group.kernel), group)
            found[group.case, group.kernel] = Group(
                group.case, group.kernel, known.dispatches, {**known.counts, **group.counts}
            )
    if not found:
        raise CountingError(remarks[0] if remarks else "rocprofv3 saw no kernel in the counted calls")
    return list(found.values()), remarks


def _dispatches(out: Path) -> list[Dispatch]:
    tables = [Path(at) / file for at, _, files in os.walk(out) for file in files if file.endswith(rocprof.TABLE)]
    if not tables:
        raise CountingError("rocprofv3 left no table")
    return rocprof.read(_left(max(tables, key=lambda table: table.lstat().st_size)))  # compilers leave empty ones


def _left(path: Path) -> str:
    """Return a file that was written beside untrusted code; nothing where there is none.

    Raises CountingError for one that is no plain file, or is too long.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CountingError(f"{path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CountingError(f"{path.name} is no plain file")
        data = file.read(workspace.MOST_OUTPUT + 1)
    if len(data) > workspace.MOST_OUTPUT:
        raise CountingError(f"{path.name} is too long")
    return data.decode(errors="replace")


def _failed(tool: Profiler, status: int | None, words: str) -> str:
    """Say how a run ended, with its last words."""
    if status is None:
        return f"{tool.name} took longer than harness.counters_timeout_s"
    last = next((line for line in reversed(words.splitlines()) if line.strip()), "")
    return f"{tool.name} ended with status {status}{f': {last.strip()[:200]}' if last else ''}"
