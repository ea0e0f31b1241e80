"""What a watcher sees: a live table in the terminal, a progress bar and a leaderboard in the Prefect UI."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast
from uuid import UUID

from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.logging import get_run_logger
from rich.console import Console
from rich.live import Live
from rich.table import Table

from kernel_scientist.campaign.state import Campaign
from kernel_scientist.population.lineage import score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE

ROWS = 12
TOP = 20


class Board:
    """The state of a campaign, shown. Without a terminal every kernel is a line."""

    def __init__(self, campaign: Campaign, console: Console | None = None) -> None:
        self.campaign = campaign
        self.console = console or Console(stderr=True)
        self.steps: dict[str, str] = {}
        self._lock = threading.Lock()
        self._live: Live | None = None
        bar = create_progress_artifact(0.0, key=self._key("progress"), description=campaign.name)
        self._progress = cast(UUID, bar)  # typed as if it might be a coroutine; it is not in a sync flow

    @contextmanager
    def shown(self) -> Generator["Board"]:
        """Keep the live table on the screen."""
        if not self.console.is_terminal:
            yield self
            return
        with Live(self._table(), console=self.console, refresh_per_second=4) as live:
            self._live = live
            yield self
            live.update(self._table())
        self._live = None

    def step(self, kernel: str, what: str | None) -> None:
        """Say what is being done for a kernel; None: nothing any more."""
        with self._lock:
            if what is None:
                self.steps.pop(kernel, None)
            else:
                self.steps[kernel] = what
        if self._live is not None:
            self._live.update(self._table())

    def done(self, trial: Trial) -> None:
        """Show a finished kernel."""
        population = self.campaign.population
        update_progress_artifact(self._progress, min(100.0, 100 * len(population) / max(1, self.campaign.planned)))
        create_table_artifact(
            key=self._key("leaderboard"),
            table=[self._row(t) for t in population.ranked()[:TOP]],
            description=f"{self.campaign.name}: {'predicted' if self._modelled else 'measured'} speed relative to the "
            f"{'roofline' if self._modelled else 'reference'}",
        )
        get_run_logger().info(self._line(trial))
        if self._live is None:
            self.console.print(self._line(trial), highlight=False, markup=False, soft_wrap=True)

    @property
    def _modelled(self) -> bool:
        return self.campaign.lab.target.model is not None

    def _speed(self, trial: Trial) -> str:
        """Return the speed by which kernels are ranked; `p` marks what is predicted."""
        return f"p {100 * score(trial):.1f} %" if trial.evaluation.by_model else f"{score(trial):.2f}x"

    def _key(self, what: str) -> str:
        name = f"{what}-{self.campaign.lab.problem.name}-{self.campaign.lab.target.name}".lower()
        return "".join(c if c.isalnum() else "-" for c in name)

    def _row(self, trial: Trial) -> dict[str, str]:
        speedup = trial.evaluation.speedup_over(REFERENCE)
        interval = f"[{speedup.interval[0]:.2f}, {speedup.interval[1]:.2f}]" if speedup and speedup.resolved else ""
        return {
            "kernel": trial.kernel.name,
            "base": trial.kernel.base or "seed",
            "experiment": trial.kernel.experiment.title if trial.kernel.experiment else trial.kernel.report,
            "geomean us": _geomean(trial),
            "speedup": self._speed(trial),
            "interval": interval,
        }

    def _line(self, trial: Trial) -> str:
        kernel, evaluation = trial.kernel, trial.evaluation
        what = kernel.experiment.title if kernel.experiment else kernel.report
        timed = f"{_geomean(trial):>11} us {self._speed(trial):>8}" if score(trial) else evaluation.reason[:60]
        return f"{kernel.name} from {kernel.base or 'seed':6} {evaluation.verdict.value:13} {timed}  {what}"

    def _table(self) -> Table:
        population = self.campaign.population
        title = f"{self.campaign.name}: {len(population)} of {self.campaign.planned} kernels"
        table = Table(title=title, title_justify="left", expand=False)
        for column, justify in (("kernel", "left"), ("base", "left"), ("experiment", "left"), ("verdict", "left")):
            table.add_column(column, justify=justify, max_width=44, no_wrap=True)  # type: ignore[arg-type]
        table.add_column("predicted us" if self._modelled else "geomean us", justify="right")
        table.add_column("of the roofline" if self._modelled else "speedup", justify="right")
        best = self.campaign.best()
        for trial in list(population)[-ROWS:]:
            row = self._row(trial)
            style = "bold green" if best is trial else ("" if trial.evaluation.verdict.value == "ok" else "red")
            verdict = trial.evaluation.verdict.value
            measured = (row["geomean us"], row["speedup"] if score(trial) else "")
            table.add_row(row["kernel"], row["base"], row["experiment"], verdict, *measured, style=style)
        with self._lock:
            for name, what in sorted(self.steps.items()):
                table.add_row(name, "", what, "...", "", "", style="dim")
        return table


def _geomean(trial: Trial) -> str:
    evaluation = trial.evaluation
    us = evaluation.predicted_us if evaluation.by_model else evaluation.geomean_us
    return f"{'p ' if evaluation.by_model else ''}{us:.1f}" if us and score(trial) else ""
