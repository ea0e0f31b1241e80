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
from typing import Any

import torch

from kernel_scientist import problems
from kernel_scientist.hardware import cpu
from kernel_scientist.problems import admission
from kernel_scientist.records.errors import one_line

Row = dict[str, Any]


def admitted(paths: Sequence[str], limit_s: float, compat: str, done: Callable[[Row], None]) -> dict[str, Any]:
    """Admit every problem at and below some paths; return which are admissible, and why the others are not.

    done: called with each row. Raises SetupError for a path without problems.
    """
    places = problems.below(paths)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kernel_scientist.problems.admission", "torch.utils.flop_counter", "torch._dynamo"])

    def admit(place: Path) -> Row:
        row = _tried(context, place, limit_s, compat)
        done(row)
        return row

    with ThreadPoolExecutor(cpu.cores()) as pool:
        return _summary(list(pool.map(admit, places)))


def _tried(context: ForkServerContext, place: Path, limit_s: float, compat: str) -> Row:
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
    return _row(place, reason, time.monotonic() - start)


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


def _row(place: Path, reason: str, seconds: float) -> Row:
    name = f"{place.parent.name}/{place.name.removesuffix('.py')}"
    return {"problem": name, "admissible": not reason, "reason": reason, "seconds": round(seconds, 1)}


def _summary(rows: Sequence[Row]) -> dict[str, Any]:
    return {"admissible": sum(row["admissible"] for row in rows), "of": len(rows), "problems": list(rows)}
