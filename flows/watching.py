"""Keeps a campaign's status where others see it: in a file for `kernel-scientist watch`, as an artifact in Prefect."""

import contextvars
import io
import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from prefect import artifacts
from prefect.exceptions import TerminationSignal
from rich.console import Console

from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.records.errors import StoppedError, one_line
from kernel_scientist.records.names import PREFECT
from kernel_scientist.report import status, status_of
from kernel_scientist.report.screen import Screen
from tasks import AWAY

progress = logging.getLogger("kernel_scientist.progress")
FILE_S, ARTIFACT_S = 5.0, 60.0
"""Seconds between two writes of the file, and between two updates of the artifact."""
WIDTH = 160


@contextmanager
def kept(campaign: Campaign) -> Generator[None]:
    """Keep the status of a campaign up to date while the context is open; at its end it says how the campaign ended."""
    keeper, ended = _Keeper(campaign), status.FAILED
    try:
        yield
        ended = status.FINISHED
    except (StoppedError, KeyboardInterrupt, TerminationSignal):
        ended = status.STOPPED
        raise
    finally:
        keeper.end(ended)


class _Keeper:
    def __init__(self, campaign: Campaign) -> None:
        self.campaign, self._ended, self._writing = campaign, threading.Event(), threading.Lock()
        self._published = 0.0
        # a daemon: whoever stops the campaign does not wait for a Prefect server that is away
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._keep,), name="status", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        told = False
        while True:
            try:
                self._look()
            except Exception as error:  # whatever is wrong with a picture of the work, the work goes on
                if not told:
                    progress.warning("`kernel-scientist watch` has no news of this campaign: %s", one_line(error))
                told = True
            if self._ended.wait(FILE_S):
                return

    def _look(self) -> None:
        now = status_of.of_campaign(self.campaign)
        with self._writing:
            if self._ended.is_set():
                return
            status.write(now)
        if time.monotonic() - self._published >= ARTIFACT_S:
            self._published = time.monotonic()
            publish(now)

    def end(self, state: str) -> None:
        """Write how the campaign ended. What is wrong with that does not become the campaign's failure."""
        try:
            self._end(state)
        except Exception as error:
            progress.warning("`kernel-scientist watch` does not know how this campaign ended: %s", one_line(error))

    def _end(self, state: str) -> None:
        with self._writing:
            self._ended.set()
            last = status_of.of_campaign(self.campaign, state).model_copy(update={"in_progress": {}})
            status.write(last)
        if state == status.FINISHED:
            publish(last)


def publish(seen: status.Status) -> None:
    """Publish a status as an artifact of the flow run; leave it out while Prefect's server does not answer."""
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, soft_wrap=True)
    for part in Screen.of(seen).shown():
        console.print(part, highlight=False, markup=False)
    try:
        artifacts.create_markdown_artifact(
            f"```\n{out.getvalue()}```\n",
            key=key(seen),
            description=f"{seen.campaign} as `kernel-scientist watch` shows it; renewed once a minute",
        )
    except AWAY as error:
        progress.debug("the Prefect UI is not up to date: %s", type(error).__name__)


def key(seen: status.Status) -> str:
    """Return the artifact's key: one per problem and target, whose versions Prefect keeps."""
    return PREFECT.encode(f"watch-{seen.problem}-{seen.target}")
