"""Progress of a campaign: a live table in the terminal, a progress bar and a leaderboard in the Prefect UI."""

import contextvars
import logging
import time
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import cast
from uuid import UUID

from prefect import artifacts
from prefect.logging import get_run_logger
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from flows import server
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.population import standings
from kernel_scientist.population.entry import score
from kernel_scientist.records import disk
from kernel_scientist.records.evaluation import Confirmation, Trial
from kernel_scientist.records.names import PREFECT
from kernel_scientist.report import tables
from kernel_scientist.report.output import Table, write
from kernel_scientist.tracking import mlflow_store, pages
from tasks import AWAY

ROWS, TOP = 12, 20
PUBLISH_S = 5.0
"""Least time between two updates of the artifacts in the Prefect UI, in seconds."""
TITLE = 44
"""Most characters of an experiment in the live table."""


class Progress:
    """Shows a campaign's state. Without a terminal it prints one line per kernel; called with --quiet, nothing.

    A run of a deployment prints nothing: its log is in its worker's output.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.console = Console(stderr=True)
        is_shown = logging.getLogger("kernel_scientist.progress").isEnabledFor(logging.INFO)
        self.quiet = server.is_worker_s() or not is_shown
        self.steps: dict[str, str] = {}
        self._published = 0.0
        self._publisher = ThreadPoolExecutor(1, "publish")
        self._publishing: Future[None] = self._publisher.submit(lambda: None)
        store = campaign.store
        address = pages.server(store.uri)
        self._runs = pages.runs_table(store.experiment_id, address)
        self._run = pages.run(store.experiment_id, campaign.run.run_id, address)
        about = f"[{campaign.name}]({self._run}) in MLflow, [its kernels, best first]({self._runs})"
        bar = artifacts.create_progress_artifact(0.0, key=self._key("progress"), description=about)
        self._bar = cast(UUID, bar)  # its type allows a coroutine, which a sync flow never gets
        self._columns = tables.PREDICTED if campaign.context.by_model else tables.MEASURED

    @contextmanager
    def live_table(self) -> Generator[None]:
        """Show the live table while the context is open."""
        if self.quiet or not self.console.is_terminal:
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
        """Show a finished kernel. A thread updates the Prefect UI: if its server is away, that takes a minute."""
        if self._publishing.done() and time.monotonic() - self._published >= PUBLISH_S:
            self._publishing.result()
            self._publishing = self._publisher.submit(contextvars.copy_context().run, self._publish)
        get_run_logger().info(_line(trial))
        if not self.quiet and not self.console.is_terminal:
            self.console.print(_line(trial), highlight=False, markup=False, soft_wrap=True)

    def _publish(self) -> None:
        percent = 100 * len(self.campaign.population) / max(1, self.campaign.plan.planned)
        with _tolerating_absence():
            artifacts.update_progress_artifact(self._bar, min(100.0, percent))
        self._publish_leaderboard()

    def leaderboard(self) -> None:
        """Publish the ranking: by the final's times after the final, otherwise by the estimate."""
        self._publisher.shutdown()  # an earlier one is published first
        self._publish_leaderboard()

    def _publish_leaderboard(self) -> None:
        self._published = time.monotonic()
        population, final = self.campaign.population, self.campaign.final
        ranked = standings.final_rows(population, final)
        recorded = Table(self._columns, [tables.kernel_row(trial) for trial in population.ranked(TOP)])
        table = tables.final_table(ranked) if ranked else recorded
        with _tolerating_absence():
            artifacts.create_table_artifact(
                key=self._key("leaderboard"),
                table=[{key: row.get(key, "") for key in table.columns} for row in table.cells],
                description=f"[{self.campaign.name}]({self._runs}): {standings.reason(population, final)}",
            )

    def publish(self, confirmation: Confirmation | None) -> None:
        """Write the campaign's page: a file, an artifact of its MLflow run, a link in the Prefect UI."""
        from kernel_scientist.report.pages import campaign as page  # it imports matplotlib

        html = page.finished(self.campaign, confirmation)
        file = page.file(self.campaign.name)
        disk.insist(partial(write, file, html), file.parent, self.campaign.context.stopped)
        self.campaign.insist(partial(self.campaign.store.log_text, self.campaign.run, mlflow_store.PAGE, html))
        with _tolerating_absence():
            artifacts.update_progress_artifact(self._bar, 100.0)
            artifacts.create_link_artifact(
                f"{self._run}/artifacts/{mlflow_store.PAGE}",
                link_text=f"report of {self.campaign.name}",
                key=self._key("report"),
                description="the campaign's page, in MLflow; also a file in reports/",
            )

    def _key(self, name: str) -> str:
        return PREFECT.encode(f"{name}-{self.campaign.context.problem.slug}-{self.campaign.context.address.name}")

    def _table(self) -> Group:
        """Return the state in a line, the kernels tried last and the activities; the incumbent is marked."""
        population, best = self.campaign.population, self.campaign.population.best()
        rows = [tables.kernel_row(trial, best) for trial in population.latest(ROWS)]
        steps = sorted(self.steps.items())
        rows += [{"kernel": name, "experiment": step, "verdict": "...", "style": "running"} for name, step in steps]
        cropped = [{**row, "experiment": row["experiment"][:TITLE]} for row in rows]
        table = Table(self._columns, cropped, f"{self.campaign.name}, the incumbent in bold")
        return Group(table, Text(f"\n{self.state()}", style="bold"))

    def state(self) -> str:
        """Return generation, kernels, best, spending and time of the campaign in a line."""
        campaign, population = self.campaign, self.campaign.population
        plan, budget, name = campaign.plan, campaign.params.budget, population.incumbent()
        best = population.get(name) if name else None
        shown = f"best {name} {tables.speed_text(best)}" if best else "no correct kernel yet"
        shown += " | the machine is busy" if best and best.evaluation.busy else ""
        limit = f" of {budget.usd:g}" if budget.usd is not None else ""
        cost = f"{campaign.llm_budget.usd:.2f}{limit} USD"
        if campaign.params.search.agent:
            cost = "the agent's cost is not known"
        left = max(0.0, budget.minutes - plan.elapsed_s() / 60)
        return (
            f"generation {max(0, population.generations() - 1)} | {len(population)} of {plan.planned} kernels, "
            f"{len(campaign.ledger)} in progress | {shown} | {cost} | "
            f"at most {left:.0f} min left"
        )


@contextmanager
def _tolerating_absence() -> Generator[None]:
    """Leave out an update of the Prefect UI when its server does not answer: the results are in MLflow."""
    try:
        yield
    except AWAY as error:
        get_run_logger().warning("the Prefect UI is not up to date: %s", type(error).__name__)


def _line(trial: Trial) -> str:
    """Return a finished kernel as one line."""
    evaluation, row = trial.evaluation, tables.kernel_row(trial)
    times = f"{row['us']} us, {row['speedup']}" + (" predicted" if evaluation.by_model else "")
    times += " (busy machine)" if evaluation.busy else ""
    outcome = f"{times:36} {row['experiment']}" if score(trial) else f"{row['experiment']}: {evaluation.reason}"
    return f"{row['kernel']} from {row['base']:6} {row['verdict']:13} {outcome}"
