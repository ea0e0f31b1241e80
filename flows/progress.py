"""Progress of a campaign: a live table in the terminal, a progress bar and a leaderboard in the Prefect UI."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast
from uuid import UUID

from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.logging import get_run_logger
from rich.console import Console
from rich.live import Live

from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.population.entry import score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.report import ranking, tables
from kernel_scientist.report.output import Table

ROWS, TOP = 12, 20
PUBLISH_S = 5.0
"""Least time between two updates of the artifacts in the Prefect UI, in seconds."""
TITLE = 44
"""Most characters of an experiment in the live table."""


class Progress:
    """Shows a campaign's state. Without a terminal it prints one line per kernel."""

    def __init__(self, campaign: Campaign, console: Console | None = None) -> None:
        self.campaign = campaign
        self.console = console or Console(stderr=True)
        self.steps: dict[str, str] = {}
        self._published = 0.0
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
        with Live(get_renderable=self._table, console=self.console, refresh_per_second=4):
            yield

    def step(self, kernel: str, activity: str | None) -> None:
        """Show the current activity on a kernel; None: it is finished."""
        if activity is None:
            self.steps.pop(kernel, None)
        else:
            self.steps[kernel] = activity

    def done(self, trial: Trial) -> None:
        """Show a finished kernel."""
        population = self.campaign.population
        if time.monotonic() - self._published >= PUBLISH_S:
            update_progress_artifact(self._bar, min(100.0, 100 * len(population) / max(1, self.campaign.plan.planned)))
            self.leaderboard()
        get_run_logger().info(_line(trial))
        if not self.console.is_terminal:
            self.console.print(_line(trial), highlight=False, markup=False, soft_wrap=True)

    def leaderboard(self) -> None:
        """Publish the ranking: by the final's times after the final, otherwise by the recorded score."""
        self._published = time.monotonic()
        population, ranked = self.campaign.population, ranking.final_rows(self.campaign.population, self.campaign.final)
        recorded = Table(self._columns, [tables.kernel_row(trial) for trial in population.ranked(TOP)])
        table = tables.final_table(ranked) if ranked else recorded
        create_table_artifact(
            key=self._key("leaderboard"),
            table=[{key: row.get(key, "") for key in table.columns} for row in table.cells],
            description=f"{self.campaign.name}: {ranking.reason(population, self.campaign.final)}",
        )

    def _key(self, name: str) -> str:
        key = f"{name}-{self.campaign.context.problem.slug}-{self.campaign.context.target.name}".lower()
        return "".join(c if c.isalnum() else "-" for c in key)

    def _table(self) -> Table:
        """Return the kernels tried last and the activities; the incumbent, which a test found faster, is marked."""
        population, best = self.campaign.population, self.campaign.population.incumbent()
        steps = sorted(self.steps.items())
        rows = [
            {**tables.kernel_row(t), **({"style": "champion"} if t.kernel.name == best else {})}
            for t in population.latest(ROWS)
        ]
        rows += [{"kernel": name, "experiment": step, "verdict": "...", "style": "running"} for name, step in steps]
        cropped = [{**row, "experiment": row["experiment"][:TITLE]} for row in rows]
        title = (
            f"{self.campaign.name}: {len(population)} of {self.campaign.plan.planned} kernels, the incumbent in bold"
        )
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
