"""Progress of a campaign: a live table in the terminal, a progress bar and a leaderboard in the Prefect UI."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast
from uuid import UUID

from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.logging import get_run_logger
from rich.console import Console
from rich.live import Live

from kernel_scientist.campaign.state import Campaign
from kernel_scientist.population.lineage import score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.report import ranking, tables
from kernel_scientist.report.output import Table

ROWS, TOP = 12, 20
TITLE = 44
"""Most characters of an experiment in the live table."""


class Progress:
    """Shows a campaign's state. Without a terminal it prints one line per kernel."""

    def __init__(self, campaign: Campaign, console: Console | None = None) -> None:
        self.campaign = campaign
        self.console = console or Console(stderr=True)
        self.steps: dict[str, str] = {}
        self._lock = threading.Lock()
        self._live: Live | None = None
        bar = create_progress_artifact(0.0, key=self._key("progress"), description=campaign.name)
        self._bar = cast(UUID, bar)  # its type allows a coroutine, which a sync flow never gets
        by_model = campaign.context.target.model is not None
        self._columns = tables.PREDICTED if by_model else tables.MEASURED

    @contextmanager
    def live_table(self) -> Generator[None]:
        """Show the live table while the context is open."""
        if not self.console.is_terminal:
            yield
            return
        with Live(self._table(), console=self.console, refresh_per_second=4) as live:
            self._live = live
            yield
            live.update(self._table())
        self._live = None

    def step(self, kernel: str, activity: str | None) -> None:
        """Show the current activity on a kernel; None: it is finished."""
        with self._lock:
            if activity is None:
                self.steps.pop(kernel, None)
            else:
                self.steps[kernel] = activity
        if self._live is not None:
            self._live.update(self._table())

    def done(self, trial: Trial) -> None:
        """Show a finished kernel."""
        population = self.campaign.population
        update_progress_artifact(self._bar, min(100.0, 100 * len(population) / max(1, self.campaign.planned)))
        self.leaderboard()
        get_run_logger().info(_line(trial))
        if self._live is None:
            self.console.print(_line(trial), highlight=False, markup=False, soft_wrap=True)

    def leaderboard(self) -> None:
        """Publish the ranking: by the final's times after the final, otherwise by the recorded score."""
        population, ranked = self.campaign.population, ranking.final_rows(self.campaign.population, self.campaign.final)
        recorded = Table(self._columns, [tables.kernel_row(trial) for trial in population.ranked()[:TOP]])
        table = tables.final_table(ranked) if ranked else recorded
        create_table_artifact(
            key=self._key("leaderboard"),
            table=[{key: row.get(key, "") for key in table.columns} for row in table.cells],
            description=f"{self.campaign.name}: {ranking.reason(population, self.campaign.final)}",
        )

    def _key(self, name: str) -> str:
        key = f"{name}-{self.campaign.context.problem.name}-{self.campaign.context.target.name}".lower()
        return "".join(c if c.isalnum() else "-" for c in key)

    def _table(self) -> Table:
        """Return the kernels tried last and the activities; the incumbent, which a test found faster, is marked."""
        population, best = self.campaign.population, self.campaign.best()
        with self._lock:
            steps = sorted(self.steps.items())
        rows = [
            {**tables.kernel_row(t), **({"style": "champion"} if t is best else {})} for t in population.trials[-ROWS:]
        ]
        rows += [{"kernel": name, "experiment": step, "verdict": "...", "style": "running"} for name, step in steps]
        cropped = [{**row, "experiment": row["experiment"][:TITLE]} for row in rows]
        title = f"{self.campaign.name}: {len(population)} of {self.campaign.planned} kernels, the incumbent in bold"
        return Table(self._columns, cropped, title)


def _line(trial: Trial) -> str:
    """Return a finished kernel as one line."""
    evaluation, row = trial.evaluation, tables.kernel_row(trial)
    times = f"{row['us']} us, {row['speedup']}" + (" predicted" if evaluation.by_model else "")
    origin = f"{row['kernel']} from {row['base']:6} {row['verdict']:13}"
    return (
        f"{origin} {times:24} {row['experiment']}"
        if score(trial)
        else f"{origin} {row['experiment']}: {evaluation.reason}"
    )
