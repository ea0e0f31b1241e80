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
from rich.table import Table

from kernel_scientist.campaign.state import Campaign
from kernel_scientist.population.lineage import score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.report import ranking, tables

ROWS = 12
TOP = 20


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
        get_run_logger().info(self._line(trial))
        if self._live is None:
            self.console.print(self._line(trial), highlight=False, markup=False, soft_wrap=True)

    def leaderboard(self) -> None:
        """Publish the ranking: by the final's times after the final, otherwise by the recorded score."""
        population, final = self.campaign.population, self.campaign.final
        rows: list[dict[str, str]] = tables.final_rows(ranking.final_rows(population, final))
        create_table_artifact(
            key=self._key("leaderboard"),
            table=rows or [self._row(t) for t in population.ranked()[:TOP]],
            description=f"{self.campaign.name}: {ranking.reason(population, final)}",
        )

    @property
    def _by_model(self) -> bool:
        return self.campaign.context.target.model is not None

    def _key(self, name: str) -> str:
        key = f"{name}-{self.campaign.context.problem.name}-{self.campaign.context.target.name}".lower()
        return "".join(c if c.isalnum() else "-" for c in key)

    def _row(self, trial: Trial) -> dict[str, str]:
        times, by_model = ranking.recorded(trial), trial.evaluation.by_model
        return {
            "kernel": trial.kernel.name,
            "base": trial.kernel.base or "seed",
            "experiment": trial.kernel.experiment.title if trial.kernel.experiment else trial.kernel.report,
            "us": tables.microseconds(trial.evaluation.predicted_us if by_model else times["geomean_us"]),
            "reference us": tables.microseconds(times["reference_us"]),
            "speedup": tables.speed(trial),
        }

    def _line(self, trial: Trial) -> str:
        kernel, evaluation, row = trial.kernel, trial.evaluation, self._row(trial)
        times = f"{row['us']} us, {row['speedup']}" + (" predicted" if evaluation.by_model else "")
        result = times if score(trial) else evaluation.reason[:60]
        origin = f"{kernel.name} from {kernel.base or 'seed':6}"
        return f"{origin} {evaluation.verdict.value:13} {result:24} {row['experiment']}"

    def _table(self) -> Table:
        population, best = self.campaign.population, self.campaign.best()
        table = Table(
            title=f"{self.campaign.name}: {len(population)} of {self.campaign.planned} kernels",
            caption=None if self._by_model else "bold: the incumbent, replaced only when a test finds a kernel faster",
            title_justify="left",
            caption_justify="left",
        )
        for column in ("kernel", "base", "experiment", "verdict"):
            table.add_column(column, max_width=44, no_wrap=True)
        scores = ("predicted us", "share of roofline") if self._by_model else ("us", "reference us", "speedup")
        for column in scores:
            table.add_column(column, justify="right")
        for trial in list(population)[-ROWS:]:
            verdict, row = trial.evaluation.verdict.value, self._row(trial)
            style = "bold green" if best is trial else ("" if verdict == "ok" else "red")
            times = [row["us"], *(() if self._by_model else (row["reference us"],)), row["speedup"]]
            table.add_row(row["kernel"], row["base"], row["experiment"], verdict, *times, style=style)
        with self._lock:
            for name, activity in sorted(self.steps.items()):
                table.add_row(name, "", activity, "...", *("" for _ in scores), style="dim")
        return table
