"""Finds out what a submission would launch on a GPU, by a confined process without one.

Trusted side: gives the process a folder, reads its reply as data, and caches the result by everything it depends on.
"""

import json
import os
import signal
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import ValidationError, model_validator

from kernel_scientist.gpu.capture import case_shapes
from kernel_scientist.gpu.capture.code_findings import findings
from kernel_scientist.gpu.fake.facts import Facts
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.gpu.machine import build
from kernel_scientist.gpu.model import constants, predict
from kernel_scientist.gpu.model.issue import Issue
from kernel_scientist.gpu.model.launch import Traffic
from kernel_scientist.hardware import occupancy
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.base import Record
from kernel_scientist.records.evaluation import CodeObject, CompileReport, Launch, Prediction
from kernel_scientist.records.gpu import Build, TorchOperation
from kernel_scientist.records.kernel import Case, Verdict, Work, digest
from kernel_scientist.sandbox import bubblewrap, confine, forked, protocol
from kernel_scientist.sandbox.failure import KernelFailure, printable
from kernel_scientist.sandbox.process import signal_name

PROCESS = "kernel_scientist.gpu.capture.process"
MEMORY_BYTES = 24 << 30
"""Address space of the process: inputs of full size are mapped, but few pages are touched."""

UNKNOWN = {"constants": {}, "tuned": (), "dialect": "", "operands": ()}
"""Fields of a code object that its assembly does not tell: only the inspecting process says them."""
FLOPS = 0.98
"""Share of a case's flops that its launches must do, if they multiply matrices: without inputs no value is compared."""
MOST_BYTES = 64 << 20
"""Maximum size of a file that the process leaves."""
WORDS = 1000
"""Maximum length of the words about a kernel that ends the compiler."""
SHARE = 0.8
"""Share of the time limit after which no further case is started."""


class CountedLaunch(Launch):
    """A launch and what it does, if that was counted."""

    traffic: Traffic | None = None
    issue: Issue | None = None
    uncounted: str = ""
    """Why it was not."""


class InspectionReply(Record):
    """The reply of the process."""

    failure: str
    refused: bool
    """Whether the compiler failed, or the GPU would refuse the code; otherwise the inspection failed."""
    timed_out: bool
    """Whether the time limit was reached before all cases were inspected."""
    launches: tuple[CountedLaunch, ...]
    operations: tuple[TorchOperation, ...]
    codes: tuple[CodeObject, ...]
    missed: tuple[str, ...]
    inline: tuple[Build, ...]

    @model_validator(mode="after")
    def _whole(self) -> "InspectionReply":
        if any(not 0 <= launch.code < len(self.codes) for launch in self.launches):
            raise ValueError("a launch of code that is not there")
        if any((launch.traffic is None) != (launch.issue is None) for launch in self.launches):
            raise ValueError("a launch that was counted in part")
        if any(code.num_warps < 1 for code in self.codes):
            raise ValueError("a code object without warps")
        return self


@dataclass(frozen=True)
class Inspection:
    """The result of an inspection for one GPU."""

    gpu: Gpu
    report: CompileReport
    answer: InspectionReply
    source: str
    """The submission's file."""

    def predictions(self, problem: Problem, cases: Sequence[Case]) -> tuple[Prediction, ...]:
        """Return the predicted time of every case. Empty unless all can be predicted: a kernel must not be ranked by
        some of its cases."""
        if self.unpredicted(problem, cases):
            return ()
        known = constants.of(self.gpu.name)
        return tuple(predict.predict(self.gpu, c.name, problem.work(c), self.loads(c.name), known) for c in cases)

    def unpredicted(self, problem: Problem, cases: Sequence[Case]) -> tuple[str, ...]:
        """Return one sentence for each case that cannot be predicted."""
        reasons = ((case.name, self._obstacle(case.name, problem.work(case))) for case in cases)
        return tuple(f"{name}: no prediction: {reason}" for name, reason in reasons if reason)

    def _obstacle(self, case: str, work: Work) -> str:
        """Return why a case cannot be predicted; empty if it can be."""
        for launch in self.answer.launches:
            if launch.case == case and launch.traffic is None:
                return f"{launch.kernel} was not counted: {launch.uncounted}"
        operations = [operation for operation in self.answer.operations if operation.case == case]
        launched = self._launched(case)
        flops = sum(sum(load.traffic.flops.values()) for load in launched)
        if any(load.code.mfma for load in launched) and flops < FLOPS * work.flops:
            return f"its matrix products have {flops:.4g} flops of {work.flops:.4g} that the case needs"
        return predict.obstacle(launched, operations, work)

    def _launched(self, case: str) -> list[predict.KernelLoad]:
        return [
            predict.KernelLoad(self.answer.codes[one.code], one.traffic, one.issue)
            for one in self.answer.launches
            if one.case == case and one.traffic is not None and one.issue is not None
        ]

    def loads(self, case: str) -> list[predict.KernelLoad]:
        """Return the loads of a case's launches and of torch's operations among them, in order."""
        first = next((n for n, one in enumerate(self.answer.launches) if one.case == case), 0)
        operations = [one for one in self.answer.operations if one.case == case]
        return predict.in_order(self._launched(case), operations, self.gpu, first)


def counted_here(gpu: Gpu) -> bool:
    """Return whether the machine executes code for the GPU, so that its launches can be counted."""
    return gpu.arch.startswith("gfx")


def facts(gpu: Gpu) -> Facts:
    """Return the GPU's properties for untrusted processes."""
    return Facts(gpu.name, gpu.arch, gpu.units, gpu.wave, occupancy.limits(gpu.arch).lds_workgroup, gpu.l2_bytes)


def inspect(
    source: str, problem: Problem, cases: Sequence[Case], gpu: Gpu, timeout_s: float, counts: bool = False
) -> Inspection:
    """Import a submission, call it on the shapes of a problem's cases, and compile its launches for the GPU.

    `counts`: also count what they do, as far as that can be known without inputs. Raises KernelFailure when the process
    dies or exceeds the time limit.
    """
    kept = _kept(source, problem, cases, gpu, counts)
    if kept.exists():
        return _inspection(gpu, source, InspectionReply.model_validate_json(kept.read_text()), 0.0, True)
    inputs = {case.name: case_shapes.described(problem, case) for case in cases}
    files = problem.read_sources("cuda")
    found = seen(problem.adapted(source), inputs, gpu, timeout_s, files=files, counts=counts)
    if found.answer.timed_out:
        return found  # with more time the result may be more complete
    environment.keep(kept, found.answer.model_dump_json())
    return found


def seen(
    source: str,
    inputs: Mapping[str, protocol.Header],
    gpu: Gpu,
    timeout_s: float,
    alone: bool = False,
    files: Mapping[str, str] | None = None,
    counts: bool = False,
) -> Inspection:
    """Import a submission and call it on inputs described by `case_shapes`, by case name. Raises like `inspect`.

    `alone`: also compile each of its Triton kernels with invented arguments. `files`: text of the problem's Python
    files by module name, which the submission may import. `counts`: as for `inspect`.
    """
    cases = [{"name": name, "data": data} for name, data in inputs.items()]
    what = {"file": None, "alone": alone, "cases": cases, "modules": dict(files or {}), "counts": counts}
    return asked(source, gpu, timeout_s, what, ())


class CompilerEndedError(Exception):
    """The compiler ended the process while it compiled a kernel alone."""

    def __init__(self, kernel: str, words: str) -> None:
        super().__init__(words)
        self.kernel = kernel


def asked(source: str, gpu: Gpu, timeout_s: float, what: Mapping[str, Any], readable: tuple[str, ...]) -> Inspection:
    """Return what the process answers to a request; it may read the `readable` files too. Raises like `inspect`."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=_folder(), prefix="inspect-") as scratch:
        answer = _ask(Path(scratch), source, gpu, timeout_s, what, readable)
    return _inspection(gpu, source, answer, time.monotonic() - start, False)


def _folder() -> Path:
    folder = environment.cache_folder() / "inspections"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _kept(source: str, problem: Problem, cases: Sequence[Case], gpu: Gpu, counts: bool) -> Path:
    """Return the cache file of an inspection, named by everything that it depends on."""
    known = json.dumps(asdict(constants.of(gpu.name)))  # the autotuner's choice depends on them
    versions = metadata.version("triton"), metadata.version("torch"), environment.sources_digest("gpu", "hardware")
    parts = (source, problem.digest, *(c.name for c in cases), gpu.name, str(counts), known, *versions)
    return _folder() / f"{digest(chr(0).join(parts))}.json"


def _ask(
    folder: Path, source: str, gpu: Gpu, timeout_s: float, what: Mapping[str, Any], readable: tuple[str, ...]
) -> InspectionReply:
    """Run the process, store the assembly that it left, and return its reply. Raises KernelFailure."""
    library = str(build.build(environment.cache_folder() / "machine")) if counted_here(gpu) else ""
    request: dict[str, Any] = {
        **what,
        "facts": asdict(facts(gpu)),
        "gpu": gpu.name,
        "machine": library,
        "constants": asdict(constants.of(gpu.name)),
        "seconds": SHARE * confine.patience_s(timeout_s),
    }
    (folder / "kernel.py").write_text(source)
    (folder / "request.json").write_text(json.dumps(request))
    visible = (*bubblewrap.readable(), *bubblewrap.MACHINE, *bubblewrap.DEVICES, *readable, *filter(None, (library,)))
    status, log = forked.run(PROCESS, folder, visible, timeout_s, MEMORY_BYTES)
    begun = (folder / "begun").exists()
    if status is None and not (folder / "answer.json").exists():
        late = "" if begun else " and did not reach the submission; is this machine busy?"
        verdict = Verdict.TIMEOUT if begun else Verdict.INFRASTRUCTURE
        raise KernelFailure(verdict, f"its inspection took longer than {timeout_s:g} s{late}", (log,))
    line, _, name = _read(folder / "compiling").partition(" ") if (folder / "compiling").exists() else ("", "", "")
    if status and name:
        slow = status in (-signal.SIGPROF, 128 + signal.SIGPROF)
        why = "the compiler takes too long" if slow else _end(status, log, None)
        words = f"no call: kernel.py, line {line}: {name} does not compile by itself: {why}"
        raise CompilerEndedError(name, printable(words)[:WORDS])
    try:
        answer = InspectionReply.model_validate_json(_read(folder / "answer.json"))
        texts = [_read(folder / f"{i}.s") for i in range(len(answer.codes))]
    except (OSError, ValidationError) as error:
        end = _end(status or 0, log, error)
        if begun:
            raise KernelFailure(Verdict.CRASHED, f"its inspection ended: {end}", (log,)) from error
        reason = f"the inspection ended before it reached the submission: {end}; see `kernel-scientist doctor`"
        raise KernelFailure(Verdict.INFRASTRUCTURE, reason, (log,)) from error
    for text, code in zip(texts, answer.codes, strict=True):
        _require_true(text, code)
    if status is None:  # what was found until then
        where = f"kernel.py, line {line}: {printable(name)[:WORDS]} and " if name else ""
        words = f"no call: {where}the rest was not compiled: the time limit of {timeout_s:g} s was reached"
        return answer.model_copy(update={"timed_out": True, "missed": (*answer.missed, words)})
    return answer


def _read(path: Path) -> str:
    """Return a file that an untrusted process left. Raises OSError if it is not a regular file or is too long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is no plain file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"{path.name} is too long")
    return data.decode(errors="replace")


def _require_true(text: str, code: CodeObject) -> None:
    """Store a code object's assembly. Raises KernelFailure unless the assembly agrees with the reply."""
    try:
        own = next(c for c in assembly.read(text, code.num_warps) if c.kernel == code.kernel)
        launched = max(0, code.lds_bytes - own.lds_bytes)  # the assembly does not contain Triton's own allocation
        own = next(c for c in assembly.read(text, code.num_warps, launched) if c.kernel == code.kernel)
    except (assembly.AssemblyError, StopIteration) as error:
        raise KernelFailure(Verdict.REJECTED, "its inspection left code that cannot be read") from error
    if own != code.model_copy(update=UNKNOWN):
        raise KernelFailure(Verdict.REJECTED, "its inspection tells of other code than it left")
    assembly.put(text)


def _end(status: int, log: str, error: Exception | None) -> str:
    """Return how the process ended without a reply."""
    if status == -signal.SIGSYS:
        return "it made a forbidden system call (a new process, tracing, mounting ...)"
    if status < 0:
        return signal_name(-status)
    if isinstance(error, ValidationError):
        return "its answer is none"
    return (log.strip().splitlines() or [f"its process ended by itself (exit status {status})"])[-1]


def _inspection(gpu: Gpu, source: str, answer: InspectionReply, seconds: float, cached: bool) -> Inspection:
    report = CompileReport(
        ok=not answer.failure,
        compiler=f"triton {metadata.version('triton')} for {gpu.arch}",
        seconds=round(seconds, 3),
        cached=cached,
        log=answer.failure,
        code_bytes=sum(code.code_bytes for code in answer.codes) or None,
        objects=answer.codes,
        launches=tuple(
            Launch(**launch.model_dump(exclude={"traffic", "issue", "uncounted"})) for launch in answer.launches
        ),
        findings=(*findings(answer.codes, gpu.arch, source), *_torch(answer.operations)),
        missed=answer.missed,
    )
    return Inspection(gpu, report, answer, source)


def _torch(operations: Sequence[TorchOperation]) -> list[str]:
    """Return a sentence on torch's operations between launches."""
    names = dict.fromkeys(f"torch's `{one.name}`" for one in operations if not one.fetches)
    return [f"{', '.join(names)}: kernels of their own, each with a launch and its bytes"] if names else []
