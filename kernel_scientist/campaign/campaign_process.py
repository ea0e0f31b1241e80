"""A campaign in a process of its own, whose result is a file: what suites and controls are made of.

The process ends when the one that started it ends. The same call goes on with a campaign that it had begun, which is
found by its parameter `tracking.suite`.
"""

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kernel_scientist.campaign import stopping
from kernel_scientist.records import environment
from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.errors import NO_REPLY, SetupError, StoppedError
from kernel_scientist.records.kernel import Verdict, digest
from kernel_scientist.sandbox import lifetime

TAG = "tag"
"""File with the name by which the campaigns of a folder are found again."""
METRICS = "campaign.json"
"""File with the result of a campaign's latest process."""
LOG = "log.txt"
"""File with what that process printed."""
GOING_ON = "finished campaigns are kept: the same command goes on with the others"
"""What a suite or a control that was stopped says (`stopping.began`)."""
POLL_S = 0.5


def folder(kind: str, name: str) -> Path:
    """Return the folder of a suite or a control (`kind`). Raises SetupError for what is no name of a folder."""
    if not name or name != Path(name).name or name == "..":
        raise SetupError(f"a {kind}'s name is that of a folder in reports/{kind}s, which {name!r} cannot be")
    return environment.root() / "reports" / f"{kind}s" / name


def begin(place: Path) -> None:
    """Make a folder and the name by which its campaigns are found again, unless they exist."""
    place.mkdir(parents=True, exist_ok=True)
    if not (known := place / TAG).exists():
        new = place / secrets.token_hex(4)
        new.write_text(f"{re.sub(r'[^A-Za-z0-9._-]', '-', place.name)}-{new.name}")
        with contextlib.suppress(FileExistsError):  # another process began it
            known.hardlink_to(new)
        new.unlink()


def tag(place: Path, own: Path) -> str:
    """Return the name by which the campaigns of one problem are found again.

    `place`: the folder of the suite or control, which was begun; `own`: that of the problem (`folder_of`), as two
    problems may have one name.
    """
    return f"{(place / TAG).read_text()}-{own.name[-8:]}"


def folder_of(place: Path, problem: Path) -> Path:
    """Return the folder of one problem within that of a suite or control."""
    root = environment.root()
    known = problem.relative_to(root) if problem.is_relative_to(root) else problem  # the project may be moved
    return place / f"{label(problem).replace('/', '-')}-{digest(str(known))[:8]}"


def label(problem: Path) -> str:
    """Return the name of a problem for people: its folder's and its own."""
    return f"{problem.parent.name}/{problem.name.removesuffix('.py')}"


def run(own: Path, settings: Sequence[str], params_file: str | None, api: str | None = None) -> str:
    """Run or resume a campaign; return the last line that it printed. Its result is the file METRICS, if it has one.

    `own`: the campaign's folder. `api`: address of the Prefect server; None: the campaign starts its own. Raises
    StoppedError if it was stopped.
    """
    own.mkdir(parents=True, exist_ok=True)
    metrics, python = own / METRICS, [sys.executable, "-m"]
    command = [*python, lifetime.__name__, *python, "kernel_scientist", "optimize", "--resume"]
    command += ["--metrics", str(metrics), *(("--params", params_file) if params_file else ())]
    command += [part for setting in settings for part in ("--set", setting)]
    metrics.unlink(missing_ok=True)
    return called(command, own / LOG, api)


def is_decided(found: CampaignResult) -> bool:
    """Whether a result stands; one that another call may change does not: what stopped it may be gone by then."""
    return found.verdict is not Verdict.INFRASTRUCTURE and NO_REPLY not in found.stopped


def called(command: Sequence[str], log: Path, api: str | None) -> str:
    """Run a command; return its last line. Raises StoppedError if it was stopped.

    A signal to this process (`stopping`) is passed on once, as a campaign ends at once by the second. The terminal's
    reaches only this process: the command has a session of its own.
    """
    own = {**os.environ, **({"PREFECT_API_URL": api} if api else {})}
    stopping.check()
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=own, start_new_session=True)
    asked = False
    while (status := _ended(process)) is None:
        if not asked and (asked := stopping.is_requested()):
            process.terminate()
    if asked or status in (stopping.EXIT_CODE, -signal.SIGINT, -signal.SIGTERM):
        raise StoppedError(stopping.why())
    return (log.read_text().strip().splitlines() or [""])[-1]


def _ended(process: "subprocess.Popen[bytes]") -> int | None:
    """Wait a moment for a process; return its status, None if it has not ended."""
    try:
        return process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return None
