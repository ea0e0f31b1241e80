"""Samples of a C++ kernel's warm calls on a CPU, by source line, with Linux' perf.

They come from the kernel's own process: they explain a time and affect no result.
"""

import functools
import logging
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.profile import counting, lines, perf, profiler, workspace
from kernel_scientist.profile.dispatches import CountingError
from kernel_scientist.profile.perf import PerfSample, PerfSamples
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.profile.workspace import Workspace
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel
from kernel_scientist.records.sampled import Elsewhere, Sampled, SampledLine
from kernel_scientist.sandbox import confine
from kernel_scientist.workers import execution_environment

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
TRY_S, READ_S = 20.0, 60.0
MOST_PRINTED = 16 << 20
"""Bytes that are read of perf's list of samples."""
MOST_LINES = 16
LEAST_SHARE = 0.005
SYSTEM, OTHER = "the operating system", "other code"
PLACES = {
    r"lib(gomp|omp|iomp5)\b": "OpenMP's runtime (threads that wait awake, or begin and end a loop; "
    "who sleeps is not sampled, so this share does not say how evenly work is divided)",
    r"lib(c|m|mvec)[.-]|ld-linux": "the C library (memory, mathematics)",
    r"lib(torch|c10|mkl)": "torch",
    r"(lib)?python": "Python",
}
"""What code is outside of the kernel's, by the beginning of its file's name. Other names are a kernel's to choose."""
NO_SYSTEM = "the operating system's own work (page faults, system calls) is not sampled here"
NO_FIGURES = "no hardware counters (cache misses, instructions per cycle): perf can read none on this machine"
NOT_COUNTED = "no hardware counters: perf counted nothing this time"
UNKNOWN = "some of the kernel's code has no known line: that of extensions (load_inline), or of no line of the file"
_log = logging.getLogger(__name__)
Run = Callable[[list[str]], tuple[int | None, str]]
"""Runs a command in the workspace's folder; returns its status (None: timeout) and the end of its output."""


def find(namespaces: bool) -> Profiler | str:
    """Return perf, or the reason (a sentence) why calls cannot be sampled here. It is tried once.

    `namespaces`: whether it is to run in those of workers.
    """
    tool = profiler.find("cpu")
    return tool if isinstance(tool, str) else _refusal(tool, namespaces) or tool


def sample(evaluator: Evaluator, kernel: Kernel, evaluation: Evaluation, case: Case) -> Evaluation:
    """Return the evaluation with samples of the kernel's calls on a case, or with the reason why there are none.

    The caller must hold the device's lock. Takes little more than `harness.counters_timeout_s` at most.
    """
    start = time.monotonic()
    tool = find(evaluator.pool.enclosure == "bubblewrap")
    if isinstance(tool, str):
        return counting.without(evaluation, tool)
    try:
        found = _sampled(evaluator, kernel, tool, case)
    except StoppedError:
        raise
    except Exception as error:  # optional, like counters
        _log.debug("not sampled", exc_info=True)
        return counting.without(evaluation, str(error) or type(error).__name__)
    seconds = {**evaluation.seconds, "count": round(time.monotonic() - start, 3)}
    return evaluation.model_copy(update={"sampled": (found,), "seconds": seconds})


@functools.cache
def _refusal(tool: Profiler, namespaces: bool) -> str:
    """Return why perf may not sample here; empty if it may."""
    with tempfile.TemporaryDirectory(prefix="sampling-") as name:
        status, output = _try(perf.try_record(tool.program), Path(name), tool, namespaces)
    if status == 0:
        return ""
    said = next((line for line in map(str.strip, output.splitlines()) if line not in ("", "Error:")), "it says nothing")
    level = PARANOID.read_text().strip() if PARANOID.is_file() else "unknown"
    return (
        f"perf may not sample here: {said[:160]} (/proc/sys/kernel/perf_event_paranoid is {level} and has to be 2 or "
        "less; a container also has to allow the system call perf_event_open)"
    )


@functools.cache
def _events(tool: Profiler, namespaces: bool) -> tuple[str, ...]:
    """Return the hardware events that perf can count here."""
    with tempfile.TemporaryDirectory(prefix="sampling-") as name:
        table = Path(name) / "table"
        _try(perf.try_count(tool.program, table), Path(name), tool, namespaces)
        return tuple(perf.counts(table.read_text(errors="replace"))) if table.is_file() else ()


def _try(program: list[str], folder: Path, tool: Profiler, namespaces: bool) -> tuple[int | None, str]:
    command = profiler.command(program, folder, "cpu", namespaces, tool.readable)
    return profiler.run(command, folder, "cpu", TRY_S)


def _sampled(evaluator: Evaluator, kernel: Kernel, tool: Profiler, case: Case) -> Sampled:
    """Return the samples of a case. Raises CountingError if there are none."""
    end = time.monotonic() + evaluator.harness.counters_timeout_s
    pool = evaluator.pool
    namespaces = pool.enclosure == "bubblewrap"
    with tempfile.TemporaryDirectory(prefix="sampling-") as name, tempfile.TemporaryDirectory() as reading:
        space = workspace.prepare(evaluator, kernel, (case,), Path(name), tool)
        for pipe in (perf.CONTROL, perf.ACKNOWLEDGED):
            os.mkfifo(space.folder / pipe)

        def run(program: list[str]) -> tuple[int | None, str]:
            command = profiler.command(program, space.folder, "cpu", namespaces, tool.readable)
            variables = execution_environment.variables(pool.threads)
            return profiler.run(command, space.folder, "cpu", end - time.monotonic(), pool.stopped, variables)

        status, output = run(perf.record(tool.program, space.folder, space.program))
        if status != 0:
            raise CountingError(profiler.failure(tool, status, output))
        found = _read(tool, space, Path(reading))
        has_events = bool(_events(tool, namespaces))
        figures = _figures(tool, space, run) if has_events else {}
        known, remarks = _lines(found, kernel, space, Path(reading))
    remarks += [] if found.of_system else [NO_SYSTEM]
    remarks += [] if figures else [NOT_COUNTED if has_events else NO_FIGURES]
    return _described(case, found.samples, space, known).model_copy(
        update={"figures": figures, "remarks": tuple(remarks)}
    )


def _read(tool: Profiler, space: Workspace, folder: Path) -> PerfSamples:
    """Return the samples of a run, read in a folder that the target process had no access to. Raises CountingError."""
    data = space.folder / perf.DATA
    if data.is_symlink() or not data.is_file():
        raise CountingError("perf left no samples")
    data.rename(folder / perf.DATA)
    command = confine.command(perf.script(tool.program), folder, tool.readable)
    status, text = confine.run(command, folder, READ_S, log_bytes=MOST_PRINTED)
    found = perf.read(text)
    if not found.samples:
        raise CountingError(profiler.failure(tool, status, text) if status != 0 else "perf took no sample in the calls")
    return found


def _figures(tool: Profiler, space: Workspace, run: Run) -> dict[str, float]:
    """Call the kernel again, under the hardware counters; return their ratios, none if that fails."""
    table = space.folder / "table"
    status, _ = run(perf.count(tool.program, space.folder, perf.EVENTS, table, space.program))
    if status != 0 or table.is_symlink() or not table.is_file():
        return {}
    return perf.figures(perf.counts(table.read_text(errors="replace")))


def _lines(
    found: PerfSamples, kernel: Kernel, space: Workspace, folder: Path
) -> tuple[Counter[tuple[int, str]], list[str]]:
    """Return the samples by line of the kernel's file, number and text, and a remark if some of its code has none."""
    known, remarks = Counter[tuple[int, str]](), list[str]()
    for name, counted in _offsets(found, space).items():
        compiled = space.compiled[name]
        texts, placed = compiled.split("\n"), lines.in_file(kernel.source, compiled)
        try:
            numbers = lines.of_addresses(space.builds / name, counted, folder)
        except CountingError as error:
            return known, [str(error)]
        for offset, number in numbers.items():
            if 0 < number <= len(texts):  # a `#line` of the source may name any
                known[placed.get(number, 0), texts[number - 1].strip()] += counted[offset]
    own = sum(_is_own(one, space) for one in found.samples)
    if own - known.total() > LEAST_SHARE * len(found.samples):
        remarks.append(UNKNOWN)
    return known, remarks


def _offsets(found: PerfSamples, space: Workspace) -> dict[str, Counter[int]]:
    """Return how many samples were taken at each place of a build, by the build's name."""
    parts = {part: Path(part.path).name for part in found.mappings if Path(part.path).parent == space.builds}
    offsets: dict[str, Counter[int]] = {name: Counter() for name in parts.values() if name in space.compiled}
    for one in found.samples:
        for part, name in parts.items():
            if name in offsets and part.path == one.path and part.start <= one.address < part.start + part.size:
                offsets[name][one.address - part.start + part.offset] += 1
                break
    return offsets


def _described(case: Case, samples: list[PerfSample], space: Workspace, known: Counter[tuple[int, str]]) -> Sampled:
    """Return the shares of threads, lines and other places; the smallest are left out."""
    total, least = len(samples), LEAST_SHARE * len(samples)
    places = Counter(_place(one.path) for one in samples if not _is_own(one, space))
    named = [(where, number) for where, number in places.most_common() if number >= least]
    most = [(place, number) for place, number in known.most_common(MOST_LINES) if number >= least]
    threads = Counter(one.thread for one in samples).most_common()
    return Sampled(
        case=case.name,
        samples=total,
        threads=tuple(number / total for _, number in threads),
        own=1 - places.total() / total,
        lines=tuple(SampledLine(line=line, text=text, share=number / total) for (line, text), number in most),
        elsewhere=tuple(Elsewhere(where=where, share=number / total) for where, number in named),
    )


def _is_own(one: PerfSample, space: Workspace) -> bool:
    return Path(one.path).parent == space.builds


def _place(path: str) -> str:
    if path.startswith("["):
        return SYSTEM if "kernel" in path or "guest" in path else OTHER
    name = Path(path).name
    return next((place for pattern, place in PLACES.items() if re.match(pattern, name)), OTHER)
