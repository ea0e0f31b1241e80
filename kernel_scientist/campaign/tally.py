"""Where a campaign's time goes, and how often models fail: counted while it runs, recorded with its costs."""

import threading
from collections import defaultdict
from collections.abc import Mapping

from kernel_scientist.records.evaluation import Evaluation

SECONDS, FAILED = "seconds/", "llm.failed."
WAITING = "waiting"
"""For a free thread, for the device, for the noise to be measured, for another attempt."""
STEPS = {"build": ("compile", "check"), "device": ("time", "count")}
"""Stages of the engine whose results say how long their parts took; the rest of their time is waiting."""
REASON = 200


class Tally:
    """Seconds by activity, all threads together, and failed calls of models by role. Thread-safe."""

    def __init__(self, recorded: Mapping[str, float] = {}) -> None:
        """`recorded`: the metrics of a campaign that is resumed, whose counts go on."""
        self._lock = threading.Lock()
        found = {key: value for key, value in recorded.items() if key.startswith((SECONDS, FAILED))}
        self._counts = defaultdict[str, float](float, found)
        self.reasons: dict[str, str] = {}
        """Why a call failed last, by role; of this process only."""

    def worked(self, stage: str, waited_s: float, worked_s: float, result: object = None) -> None:
        """Count work of a stage of the engine. `waited_s`: before a thread was free; `result`: what it returned."""
        known = result.seconds if isinstance(result, Evaluation) else {}
        with self._lock:
            rest = worked_s
            for step in STEPS.get(stage, ()):  # a result from a cache names seconds of another day
                self._counts[f"{SECONDS}{step}"] += (part := min(rest, known.get(step, 0.0)))
                rest -= part
            self._counts[f"{SECONDS}{WAITING if stage in STEPS else stage}"] += rest
            self._counts[f"{SECONDS}{WAITING}"] += waited_s

    def failed(self, role: str, reason: str) -> None:
        """Count a call of a model for a role that gave no reply, or part of one."""
        with self._lock:
            self._counts[f"{FAILED}{role}"] += 1
            self.reasons[role] = " ".join(reason.split())[:REASON]

    def metrics(self) -> dict[str, float]:
        """Return the counts as metrics of the campaign's run."""
        with self._lock:
            return {key: round(value, 2) for key, value in self._counts.items()}
