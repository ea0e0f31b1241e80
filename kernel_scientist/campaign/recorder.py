"""Writes a campaign to MLflow: kernels, curve, costs, findings. What is recorded survives a kill."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from kernel_scientist.campaign.tally import Tally
from kernel_scientist.population.incumbent_change import IncumbentChange
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.scientist.llm.response_cache import Reply, ResponseCache
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.tracking import run_content, snapshots, traces
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.found import PACE
from kernel_scientist.tracking.mlflow_store import MlflowStore

FLUSH_S = 2.0
"""Least time between two writes of curve and costs, in seconds."""
TRACES = 100
"""Replies that are written as traces at a time."""


class Recorder:
    """The campaign's run in the MLflow store. One thread at a time records kernels."""

    def __init__(
        self,
        store: MlflowStore,
        run: CampaignRun,
        problem: Problem,
        replies: ResponseCache,
        population: Population,
        loose: Sequence[str] = (),
        tally: Tally | None = None,
    ) -> None:
        """`loose`: kernels of `population` that no snapshot contains. `tally`: counts that are written with costs."""
        self.store, self.run, self.problem, self.replies, self.population = store, run, problem, replies, population
        self._points: list[tuple[int, dict[str, float]]] = []
        """Points of the curve that are not written yet: number of kernels, metrics."""
        self._written = time.monotonic()
        self._loose = list(loose)
        self._tally = tally or Tally()
        self.incumbent_change = IncumbentChange.recorded(run.metrics, population.incumbent())
        """The latest change of the incumbent."""
        self.pace: deque[tuple[int, float]] = deque(maxlen=PACE)
        """Numbers of kernels and the campaign's seconds, when the latest ones were recorded by this process."""

    def record(
        self, trials: Sequence[Trial], elapsed_s: Callable[[], float], began_s: Mapping[str, float] = {}
    ) -> None:
        """Write kernels as MLflow runs, then add each to the population. Recording a kernel twice changes nothing.

        `began_s`: when the work on each kernel began, by name, in seconds since the epoch.
        """
        for trial in trials:
            if trial.kernel.name in self.population:
                continue
            exchanges = [reply for call in trial.kernel.llm_calls if (reply := self.replies.get(call.key))]
            began = began_s.get(trial.kernel.name)
            self.store.log(self.run, trial, self.population, self.problem, exchanges, began)
            self.population.add(trial)
            self._loose.append(trial.kernel.name)
            count, now_s = len(self.population), elapsed_s()
            if (incumbent := self.population.incumbent()) != self.incumbent_change.incumbent:
                self.incumbent_change = IncumbentChange(incumbent, count, now_s)
            self.pace.append((count, now_s))
            best = run_content.progress(self.population.best())
            self._points.append((count, best | self.incumbent_change.metrics | {"kernels": count, "elapsed_s": now_s}))
        if len(self._loose) >= snapshots.KERNELS:
            self.store.log_snapshot(self.run, self.population, self._loose)
            self._loose.clear()
        if time.monotonic() - self._written >= FLUSH_S:
            self.flush()

    def flush(self, last: bool = False) -> None:
        """Write the curve's new points, the costs so far and the new replies as traces.

        A reply for a kernel is written with the kernel's run, so it waits until that exists, or until the `last` flush.
        """
        self.store.log_curve(self.run, [*self._points, (0, self._tally.metrics())])
        self._points = []
        if spending := self.replies.spending(self.run.campaign):
            self.store.log_spending(self.run, spending)
        while replies := self._traceable(last):
            self.store.log_traces(self.run, [(reply, self._kernel_made_by(reply)) for _, reply in replies])
            self.replies.mark_traced(number for number, _ in replies)
        self._written = time.monotonic()

    def _traceable(self, last: bool) -> list[tuple[int, Reply]]:
        """Return replies that are no traces yet and need not wait, each with its number."""
        replies = self.replies.untraced(self.run.campaign, TRACES)
        return [one for one in replies if last or (name := traces.kernel(one[1])) is None or name in self.population]

    def _kernel_made_by(self, reply: Reply) -> str:
        """Return the kernel that a reply led to; empty if none: a dropped kernel's name may be another's now."""
        name = traces.kernel(reply)
        calls = self.population.get(name).kernel.llm_calls if name and name in self.population else ()
        return name if name and any(call.call_key == reply.call_key for call in calls) else ""

    def lessons(self, lessons: Lessons) -> Lessons:
        """Write the findings; return them with the run ids of the kernels that they name."""
        named = {name for finding in lessons.findings if not finding.runs for name in finding.kernels}
        lessons = lessons.with_run_ids(self.store.run_ids(self.run, named))
        self.store.log_lessons(self.run, lessons)
        return lessons
