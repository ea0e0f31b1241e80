"""Which of many problems can be used: each is loaded and admitted in a process of its own, within a time limit.

The processes are forked from one that has imported torch and its flop counter, which takes four seconds.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

import torch

from kernel_scientist import problems
from kernel_scientist.problems import admission
from kernel_scientist.records.errors import one_line
from kernel_scientist.records.problem_result import Admission, AdmissionsResult


def admitted(paths: Sequence[str], limit_s: float, compat: str, done: Callable[[Admission], None]) -> AdmissionsResult:
    """Admit every problem at and below some paths; return which are admissible, and why the others are not.

    done: called with each result. Raises SetupError for a path without problems.
    """
    places = problems.below(paths)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kernel_scientist.problems.admission", "torch.utils.flop_counter", "torch._dynamo"])

    def admit(place: Path) -> Admission:
        found = _tried(context, place, limit_s, compat)
        done(found)
        return found

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = tuple(pool.map(admit, places))
    return AdmissionsResult(admissible=sum(one.admissible for one in found), of=len(found), problems=found)


def _tried(context: ForkServerContext, place: Path, limit_s: float, compat: str) -> Admission:
    start = time.monotonic()
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send_fault, args=(sending, place, compat), daemon=True)
    process.start()
    sending.close()
    try:
        if receiving.poll(limit_s):
            reason = str(receiving.recv())
        else:
            reason = f"it was not admitted within {limit_s:g} s"
            process.kill()
        process.join()
    except EOFError:
        process.join()
        reason = f"its process ended with status {process.exitcode}"
    name = f"{place.parent.name}/{place.name.removesuffix('.py')}"
    seconds = round(time.monotonic() - start, 1)
    return Admission(problem=name, admissible=not reason, reason=reason, seconds=seconds)


def _send_fault(sending: Connection, place: Path, compat: str) -> None:
    """Send why a problem cannot be used. Runs in a process of its own, on one core, as others run beside it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what references print
    os.dup2(nowhere, 2)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_command, daemon=True).start()
    try:
        sending.send(admission.fault(place, compat))
    except Exception as error:
        sending.send(f"{type(error).__name__}: {one_line(error)}")


def _end_with_command() -> None:
    """End this process when the command has ended, however it did."""
    command = multiprocessing.parent_process()
    assert command is not None
    command.join()
    os._exit(1)
