"""A finished campaign whose pages a real, headless Chromium opens: its report, MLflow, Prefect."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import lab_environment

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
"""The browser talks to nothing but the pages."""
CLOSED = """if (window.origin !== "null") {
    localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");
    localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
}"""
"""Keeps MLflow's assistant closed; the sandboxed frame of an artifact has no storage."""
WAIT_MS = 60_000
"""How long a page may take to show its text on a busy machine."""
SMALL = (
    *("problem=identity", "search.generations=1", "search.experiments=2", "tuning.tries=0"),
    *("harness.noise_runs=0", "harness.pairs=0", "harness.blocks=6", "harness.stages=1"),
    *("validate.processes=1", "validate.blocks=6", "validate.finalists=2"),
)
"""Parameters of a campaign of a few seconds."""
IGNORED = ("404 (Not Found)", "Failed to fetch")
"""Console errors that are MLflow's and Prefect's own: requests for features that are off, and for version numbers."""


def chromium() -> str | None:
    """The system's Chromium; None if there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass(frozen=True)
class Served:
    """A campaign and the servers that show it."""

    summary: dict[str, Any]
    report: Path
    mlflow: str
    prefect: str
    flow_run: str
    """Id of the campaign's flow run."""

    @property
    def runs_table(self) -> str:
        from kernel_scientist.tracking import pages

        return pages.runs_table(self.experiment, self.mlflow)

    @property
    def experiment(self) -> str:
        from mlflow import MlflowClient

        return str(
            MlflowClient(self.summary["mlflow"]["uri"]).get_run(self.summary["mlflow"]["run"]).info.experiment_id
        )


@contextmanager
def served(lab: Path, *overrides: str) -> Iterator[Served]:
    """Run a campaign on the servers of `kernel-scientist ui`, and keep them while the context is open."""
    prefect, mlflow = _free_port(), _free_port()
    address = f"http://127.0.0.1:{prefect}"
    env = lab_environment(lab, PYTHONUNBUFFERED="1", PREFECT_UI_API_URL=f"{address}/api")
    program = [sys.executable, "-m", "kernel_scientist"]
    ports = ["--prefect-port", str(prefect), "--mlflow-port", str(mlflow)]
    ui = subprocess.Popen([*program, "ui", *ports], cwd=lab, env=env, stdout=subprocess.PIPE, text=True)
    assert ui.stdout is not None
    try:
        lines = iter(ui.stdout.readline, "")
        assert any("Ctrl-C" in line for line in lines), "the servers did not start"
        command = [*program, "optimize", "--json", *(part for one in overrides for part in ("--set", one))]
        done = subprocess.run(
            command,
            cwd=lab,
            env=env | {"PREFECT_API_URL": f"{address}/api", "PREFECT_UI_URL": address},
            stdout=subprocess.PIPE,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0
        summary = json.loads(done.stdout)
        link = _campaign_tags(summary)["prefect_run"]
        report = lab / "reports" / f"{summary['campaign']}.html"
        yield Served(summary, report, f"http://127.0.0.1:{mlflow}", address, link.rpartition("/")[2])
    finally:
        ui.send_signal(signal.SIGINT)
        ui.wait(60)


def _campaign_tags(summary: dict[str, Any]) -> dict[str, str]:
    from mlflow import MlflowClient

    return MlflowClient(summary["mlflow"]["uri"]).get_run(summary["mlflow"]["run"]).data.tags


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Browser:
    """Opens pages in one Chromium, waits for their texts, remembers what they complain about."""

    def __init__(self, playwright: Any, scheme: str = "light", width: int = 1500, height: int = 900) -> None:
        self._browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        self._context = self._browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self._context.add_init_script(CLOSED)
        self.page = self._context.new_page()
        self.errors: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, address: str, *texts: str) -> str:
        """Open a page and wait until it shows all texts; return what it shows."""
        self.page.goto(address)
        for text in texts:
            self.page.get_by_text(text).first.wait_for(timeout=WAIT_MS)
        return str(self.page.inner_text("body"))

    def close(self) -> None:
        self._browser.close()

    def _heard(self, message: Any) -> None:
        if message.type == "error" and not any(known in message.text for known in IGNORED):
            self.errors.append(message.text)
