"""One screen of a campaign: its status, who holds the devices of this host, and how busy this host is."""

import os
import socket
import time
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from kernel_scientist.records.base import Finite, Record
from kernel_scientist.report import status
from kernel_scientist.report.output import Table
from kernel_scientist.report.status import Limit, Status
from kernel_scientist.sandbox import device_queue
from kernel_scientist.sandbox.device_queue import Ticket

GAINLESS = 10
"""Kernels without a gain that are worth a mark."""
LEAST_SHARE = 0.005
TITLE, REASON = 40, 100
LATEST = {"kernel": "kernel", "verdict": "verdict", "speed": "over the reference", "title": "experiment", "reason": ""}
ROLES = {
    "role": "model of the",
    "calls": "replies",
    "failed": "failed calls",
    "truncated": "cut off",
    "unreadable": "not readable",
    "usd": "USD",
    "latest_failure": "latest failure",
}


class Asker(Record):
    """Somebody who holds a device of this host or waits for one."""

    holds: str
    """The device that is held; empty for somebody who waits."""
    wants: tuple[str, ...]
    """The devices, any one of which was asked for."""
    who: str
    """Purpose, campaign, process, user, folder."""
    since_s: Finite
    """Since when it is held, or since when it is asked for, in seconds since the epoch."""


class Screen(Record):
    """What `kernel-scientist watch --json` prints."""

    status: Status
    """The campaign."""
    fruitless: int
    """Kernels since the incumbent changed last."""
    shares: dict[str, Finite]
    """Share of each activity in the time of all threads, from `LEAST_SHARE`."""
    devices: tuple[Asker, ...]
    """Holders and queue of this host's devices, in the order of asking."""
    host: str
    """Name of this host."""
    load: Finite
    """This host's load now."""
    cores: int
    """Cores of this host that may be used."""
    seen_s: Finite
    """When all this was seen, in seconds since the epoch."""

    @staticmethod
    def of(seen: Status) -> "Screen":
        """Return the screen of a campaign's status, with what is so on this host at the moment."""
        return Screen(
            status=seen,
            fruitless=seen.fruitless,
            shares={name: share for name, share in seen.shares.items() if share >= LEAST_SHARE},
            devices=tuple(map(_asker, device_queue.tickets())),
            host=socket.gethostname(),
            load=round(os.getloadavg()[0], 2),
            cores=len(os.sched_getaffinity(0)),
            seen_s=time.time(),
        )

    def shown(self) -> Iterator[str | Table]:
        """Yield lines and tables."""
        seen = self.status
        yield f"campaign   {seen.campaign}: {seen.problem} in {seen.language} on {seen.target}, {self._state()}"
        if seen.resume and seen.state != status.RUNNING:
            yield f"{'':10} `{seen.resume}` goes on"
        yield f"champion   {self._champion()}"
        if result := seen.result:
            yield f"{result.status:10} {result.text}: {result.why}"
        if mark := self._mark():
            yield mark
        yield f"kernels    {self._kernels()}"
        yield f"budget     {self._budget()}"
        yield f"time in    {', '.join(f'{name} {share:.0%}' for name, share in self.shares.items()) or 'nothing yet'}"
        yield f"noise      {self._noise()}"
        yield from self._devices()
        for number, (name, what) in enumerate(seen.in_progress.items()):
            yield f"{'' if number else 'at work':10} {name} {what[: 2 * TITLE]}"
        rows = [{**one.model_dump(), "title": one.title[:TITLE], "reason": one.reason[:REASON]} for one in seen.latest]
        styles = [{"style": "" if one.verdict == "ok" else "failed"} for one in seen.latest]
        if rows:
            yield Table(LATEST, [row | style for row, style in zip(rows, styles, strict=True)], "latest kernels")
        if seen.roles:
            yield Table(ROLES, [one.model_dump() for one in seen.roles], "models")

    def __rich__(self) -> RenderableType:
        mark = self._mark()
        lines = [
            part if isinstance(part, Table) else Text(part, "bold yellow" if part == mark else "")
            for part in self.shown()
        ]
        return Group(*lines)

    def _state(self) -> str:
        seen = self.status
        since = _duration(self.seen_s - seen.written_s)
        match seen.state:
            case status.RUNNING:
                source = f", as of {since} ago" if seen.folder else ", as far as the MLflow store tells"
                return f"running for {_duration(seen.elapsed_s)}{source}"
            case status.GONE:
                return f"its process has ended without a word after {_duration(seen.elapsed_s)}"
            case _:
                return f"{seen.state} after {_duration(seen.elapsed_s)}"

    def _champion(self) -> str:
        seen, best = self.status, self.status.champion
        if best is None:
            return "none yet: no kernel is correct" if seen.kernels else "none yet: no kernel was tried"
        ago = max(0.0, seen.elapsed_s - best.since_s)
        changed = f"since kernel {best.since_kernels}, {_duration(ago)} ago"
        changed = f"winner of the final, the incumbent was there {changed}" if best.by_final else changed
        return f"{best.kernel} {best.text} in {best.measured_in}, {changed}: {best.title}"

    def _mark(self) -> str:
        return f"           nothing gained for {self.fruitless} kernels" if self.fruitless >= GAINLESS else ""

    def _kernels(self) -> str:
        seen = self.status
        planned = f" of {seen.planned}" if seen.planned is not None else ""
        now, mean = (f"{pace:.2g}" if pace else "?" for pace in (seen.per_minute_now, seen.per_minute))
        why = seen.why and f"; {seen.why}{', but for those at work' if seen.in_progress else ''}"
        return f"{seen.kernels}{planned}, {now} a minute of late, {mean} since the start{why}"

    def _budget(self) -> str:
        seen = self.status
        at_work = round(seen.budget_kernels.used) - seen.kernels
        parts = [
            _left("min", seen.minutes, 0),
            _left("USD", seen.usd, 2),
            _left(
                "kernels",
                seen.budget_kernels,
                0,
                f", {at_work} of them at work" if seen.in_progress and at_work > 0 else "",
            ),
            _left("tokens", seen.tokens, 0) if seen.tokens.limit is not None else "",
        ]
        return "; ".join(part for part in parts if part)

    def _noise(self) -> str:
        noise = self.status.noise
        if noise.now is None and noise.in_use is None:
            timed = "nothing was timed yet"
        else:
            used = f"{noise.in_use:.2%}" if noise.in_use is not None else "not needed yet"
            now = f"{noise.now:.2%}" if noise.now is not None else "unknown"
            timed = f"in use {used}; the latest intervals reach {now} from their middles"
        busy = f", others used {noise.others_percent} % of the CPU" if noise.others_percent else ""
        last = f"; load at the latest timing {noise.load}{busy}" if noise.load else ""
        return f"{timed}{last}; load of this host now {self.load:g} on {self.cores} cores"

    def _devices(self) -> Iterator[str]:
        if not self.devices:
            yield "device     free: nobody holds a device of this host"
        for number, one in enumerate(self.devices):
            what = f"{one.holds} held" if one.holds else f"{', '.join(one.wants)} asked for"
            yield f"{'' if number else 'device':10} {what} for {_duration(self.seen_s - one.since_s)} by {one.who}"


def _asker(ticket: Ticket) -> Asker:
    note = ticket.note
    asked_s = note.asked_s if note else ticket.since_s
    wants = tuple(map(device_queue.shown, note.devices)) if note else ()
    return Asker(
        holds=device_queue.shown(ticket.device), wants=wants, who=ticket.words, since_s=ticket.since_s or asked_s
    )


def _left(unit: str, budget: Limit, digits: int, note: str = "") -> str:
    used = f"{budget.used:.{digits}f}"
    if budget.left is None:
        return f"{_units(used, unit)} used{note}, no limit"
    return f"{_units(f'{budget.left:.{digits}f}', unit)} left ({used} of {budget.limit:g} used{note})"


def _units(number: str, unit: str) -> str:
    """Return a number with its unit: `1 kernel`, `2 kernels`, `1 min`."""
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}"


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h {whole % 3600 // 60} min"
