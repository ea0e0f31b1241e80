"""An experiment of an MLflow store: its runs, and the artifacts that are files of a folder or on a server."""

import math
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlparse

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.names import MLFLOW
from kernel_scientist.tracking import failures, local_store, registry
from kernel_scientist.tracking.run_content import PARENT

PAGE = 500
"""Runs per page of a search."""
DIGITS = 6
"""Significant digits of a metric that is no whole number: what a table of runs can show."""


class MlflowExperiment:
    """One MLflow experiment. Only `MlflowClient` with explicit run ids is used."""

    def __init__(self, uri: str, experiment: str) -> None:
        """Open or create the experiment. Raises SetupError when the store cannot be used."""
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from mlflow.tracing.client import TracingClient

        self.uri, self.experiment = uri, experiment
        local_store.prepare(uri)
        try:
            with failures.told(uri):
                self.client: Any = failures.Client(MlflowClient(tracking_uri=uri), uri)
                self._tracing: Any = failures.Client(TracingClient(uri), uri)
            found = self.client.get_experiment_by_name(experiment) or self._create(experiment)
        except MlflowException as error:
            raise SetupError(f"the MLflow store at {uri} returned an error: {error.message}") from error
        self.experiment_id: str = found.experiment_id
        self._local = str(found.artifact_location).startswith("file:")

    def _create(self, experiment: str) -> Any:
        """Create the experiment, unless another process is quicker; return it."""
        file = local_store.database(self.uri)
        location = f"{local_store.artifacts(file)}/{quote(experiment.replace('/', '-'))}" if file else None
        registry.create(self.client.create_experiment, experiment, artifact_location=location)
        return self.client.get_experiment_by_name(experiment)

    def other(self, where: str) -> tuple[str, Any] | None:
        """Return a run of this store that meets a condition, and the name of its experiment; None if there is none."""
        names = {one.experiment_id: str(one.name) for one in self.client.search_experiments()}
        runs = self.client.search_runs(list(names), where, max_results=1)
        return (names[runs[0].info.experiment_id], runs[0]) if runs else None

    def _runs(self, *conditions: str) -> list[Any]:
        """Return the runs that meet all of these conditions in MLflow's language."""
        from mlflow.utils import get_results_from_paginated_fn

        def page(most: int, token: str | None) -> Any:
            where = " and ".join(conditions)
            return self.client.search_runs([self.experiment_id], where, max_results=most, page_token=token)

        return get_results_from_paginated_fn(page, PAGE)

    def _children(self, run_id: str, *conditions: str) -> list[Any]:
        """Return a campaign's kernel runs that meet all of these conditions."""
        return self._runs(f"tags.`{PARENT}` = '{run_id}'", *conditions)

    def _artifact(self, run_id: str, name: str) -> str | None:
        """Return the text of an artifact; None if there is none."""
        folder = name.rpartition("/")[0] or None
        if all(f.path != name for f in self.client.list_artifacts(run_id, folder)):
            return None
        with self._downloaded(run_id, name) as file:
            return file.read_text()

    def texts(self, run_id: str, folder: str) -> list[str]:
        """Return the texts of a folder of artifacts in the order of their names; none if there is no such folder.

        A kill may have cut one within a character.
        """
        if not self.client.list_artifacts(run_id, folder):
            return []
        with self._downloaded(run_id, folder) as place:
            return [file.read_bytes().decode(errors="replace") for file in sorted(place.iterdir())]

    @contextmanager
    def _uploaded(self, run: Any) -> Generator[Path]:
        """Yield a folder whose files become artifacts of a run."""
        if self._local:
            folder = Path(unquote(urlparse(run.info.artifact_uri).path))
            folder.mkdir(parents=True, exist_ok=True)
            yield folder
            return
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
            self.client.log_artifacts(run.info.run_id, folder)

    @contextmanager
    def _downloaded(self, run_id: str, name: str) -> Generator[Path]:
        """Yield an artifact, without a copy if it is a local file."""
        if self._local:
            yield self._download(run_id, name)
            return
        # Threads of a download that failed may still write there: the failure counts, not that it cannot be emptied.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            yield self._download(run_id, name, folder)

    def _download(self, run_id: str, name: str, folder: str | None = None) -> Path:
        """Download an artifact that is there; MLflow denies that if the server is away. Raises StoreError."""
        from mlflow.exceptions import MlflowException

        try:
            return Path(self.client.download_artifacts(run_id, name, folder))
        except MlflowException as error:
            what = f"artifact {name or 'folder'} of run {run_id}"
            raise failures.StoreError(f"the MLflow store {self.uri} cannot be used: it did not send {what}") from error

    def _log(
        self, run_id: str, *points: tuple[int, Mapping[str, float]], params: Mapping[str, str] | None = None
    ) -> None:
        """Write metrics, given as steps with values, and params. Metrics that are not finite are left out.

        Names become those that MLflow takes (`records.names`). Fractions have `DIGITS` significant digits: those that
        were measured are rounded to their interval before.
        """
        from mlflow.entities import Metric, Param

        now = int(time.time() * 1000)
        finite = ((step, k, float(v)) for step, m in points for k, v in m.items() if math.isfinite(v))
        metrics = [
            Metric(MLFLOW.encode(k), v if v.is_integer() else float(f"{v:.{DIGITS}g}"), now, step)
            for step, k, v in finite
        ]
        texts = [Param(MLFLOW.encode(k), v[:500]) for k, v in (params or {}).items()]
        if metrics or texts:
            self.client.log_batch(run_id, metrics, texts)
