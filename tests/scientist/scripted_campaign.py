"""Campaigns with a scripted model: their settings, what they recorded."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_scientist.records.params import ROLES
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import lab_environment
from tests.scientist.model_server import ModelServer, Response
from tests.scientist.scripted_model import ScriptedModel

QUICK = ["problem=identity", "search.experiments=3", "llm.concurrency=1", "harness.blocks=2", "harness.stages=1"]
QUICK += ["validate.processes=1", "validate.blocks=2", "harness.warmup_calls=1", "harness.call_timeout_s=2"]
QUICK += ["harness.import_timeout_s=5", "knowledge.distil_every=2", "llm.corrections=1", "llm.first_delay_s=0.01"]


def settings(server: ModelServer, *more: str) -> list[str]:
    price = "price: {input_usd: 1, output_usd: 10}"
    model = f"{{model: openai/scripted, api_base: '{server.address}', {price}, max_tokens: 2000}}"
    roles = [f"llm.{role}={model}" for role in ROLES]
    return [x for s in (*QUICK, *roles, *more) for x in ("--set", s)]


def killed(lab: Path, arguments: list[str], prefect_api: str, when: Callable[[], bool]) -> None:
    """Start a campaign; kill it with all its processes once `when` says so."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", "optimize", *arguments],
        env=lab_environment(lab, PREFECT_API_URL=prefect_api),
        cwd=lab,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not when() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def stored(lab: Path, problem: str = "identity", target: str = "cpu") -> tuple[Any, list[Any], MlflowStore]:
    """Return the latest campaign, its kernels' runs by name, and the store."""
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", f"{problem}-{target}")
    parent = store.latest()
    assert parent is not None
    return parent, sorted(store._children(parent.run_id), key=lambda r: r.data.tags["kernel"]), store


class NewPlans(ScriptedModel):
    """Plans other experiments in each reply, and takes its time, so that several calls are in flight."""

    def design(self, prompt: str) -> str:
        """Plan five experiments that no other reply has."""
        with self._lock:
            self._count += 1
            count = self._count
        return super().design(f"{count}: {prompt}")

    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__(kinds)
        self._lock, self._count = threading.Lock(), 0

    def __call__(self, request: dict[str, Any], number: int) -> Response:
        time.sleep(0.3)
        return super().__call__(request, number)
