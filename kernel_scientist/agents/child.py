"""The child process in which calls are done: `python -m kernel_scientist.agents.child`.

Standard input brings one call a line, `{"call": NAME, "arguments": {...}, "settings": {...}}`. Standard output has the
progress of that call, `{"progress": TEXT}`, and then its end, `{"result": {...}}` or `{"error": SENTENCE}`. All else
that is printed here goes to standard error. Whoever cancels a call kills this process.
"""

import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from kernel_scientist.agents import work
from kernel_scientist.agents.work import Settings
from kernel_scientist.records import environment
from kernel_scientist.records.errors import InfrastructureError, SetupError, StoppedError, one_line

if TYPE_CHECKING:
    from kernel_scientist.agents.campaigns import Campaigns

Call = Callable[..., dict[str, Any]]
LOOKS = ("problems", "problem", "history", "kernel")
"""Calls that measure nothing."""
CONFIRMING, FAILED = "confirming the champion", "the confirmation failed"
"""The progress and errors that are sent while a champion is confirmed: their own texts may name held-out cases."""


class Child:
    """Does calls, one after the other."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        """`send`: sends one message."""
        self._send = send
        self._campaigns: Campaigns | None = None
        self._confirms = self._is_stopped = False

    def serve(self, requests: IO[str]) -> None:
        """Answer calls until there are no more, or SIGTERM stops one."""
        for line in requests:
            self._send(self.answer(json.loads(line)))
            if self._is_stopped:
                break
        if self._campaigns is not None:
            self._campaigns.close()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do one call; return its end."""
        arguments, self._confirms = request["arguments"], request["call"] == "confirm"
        try:
            if "problem" in arguments:
                work.require_listed(arguments["problem"])
            result = self._call(request["call"])(Settings(**request["settings"]), **arguments)
            return {"result": work.without_held_out(result)}
        except SetupError as error:
            return {"error": one_line(error)}
        except StoppedError as error:
            self._is_stopped = True
            return {"error": f"{one_line(error)}; nothing that was recorded is lost"}
        except InfrastructureError as error:
            print(one_line(error), file=sys.stderr)
            why = FAILED if self._confirms else one_line(error)
            return {"error": f"{why}; nothing was decided about the kernel, try again"}
        except Exception as error:
            traceback.print_exc()
            told = f"{FAILED}; the server's standard error says why"
            why = told if self._confirms else f"{type(error).__name__}: {one_line(error)}"
            return {"error": f"an error of the laboratory, not of the call: {why}"}

    def tell(self, text: str) -> None:
        """Send what the laboratory says it is doing."""
        self._send({"progress": CONFIRMING if self._confirms else text})

    def _call(self, name: str) -> Call:
        """Return the function of a call. What records imports MLflow, which takes seconds."""
        if name in ("begin", "submit", "confirm"):
            if self._campaigns is None:
                from kernel_scientist.agents.campaigns import Campaigns

                self._campaigns = Campaigns()
            return getattr(self._campaigns, name)
        if name in ("history", "kernel"):
            from kernel_scientist.agents import history

            return history.campaign if name == "history" else history.kernel
        return getattr(work, name)


class _Progress(logging.Handler):
    """Sends what the laboratory says it is doing."""

    def __init__(self, child: Child) -> None:
        super().__init__(logging.DEBUG)
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        """Send one message."""
        self._child.tell(record.getMessage())


def main() -> None:
    """Answer the calls that standard input brings."""
    environment.prepare()
    answers, turn = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8"), threading.Lock()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(message: dict[str, Any]) -> None:
        with turn:  # several threads of a campaign say what they do
            answers.write(json.dumps(message) + "\n")
            answers.flush()

    progress = logging.getLogger("kernel_scientist.progress")
    progress.setLevel(logging.DEBUG)
    progress.propagate = False
    child = Child(send)
    progress.addHandler(_Progress(child))
    child.serve(sys.stdin)
    os._exit(0)  # as the command line does: taking down the libraries takes half a second


if __name__ == "__main__":
    main()
