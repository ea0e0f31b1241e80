"""The lab notebook: the one module that writes MLflow runs and reads a population back.

Every kernel is a run under its campaign's parent run. A run is created after its evaluation and is complete when its
status is FINISHED; what a killed process left RUNNING is removed on resume, so that runs and kernels are one to one.
Only `MlflowClient` with explicit run ids is used: the fluent API keeps its state per thread.
"""

import math
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist.population.lineage import Population, score
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel
from kernel_scientist.scientist.llm.reply_store import Reply
from kernel_scientist.scientist.roles import Lessons
from kernel_scientist.tracking import run_content, traces
from kernel_scientist.tracking.run_content import CAMPAIGN, KERNEL, KIND, PARENT, TEXT
from kernel_scientist.tracking.traces import Traces

ALIAS = "champion"
PAGE = 500
LESSONS = "findings.json"


@dataclass(frozen=True)
class CampaignRun:
    """A campaign's parent run."""

    run_id: str
    campaign: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]

    @property
    def spent_s(self) -> float:
        """Wall time the campaign had taken when its last kernel was logged."""
        return self.metrics.get("spent_s", 0.0)


class Notebook:
    """MLflow's runs of one experiment (one problem on one target)."""

    def __init__(self, uri: str, experiment: str) -> None:
        """Open or create the experiment. Raises SetupError when the store cannot be reached."""
        reach(uri)
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        self.uri, self.experiment = uri, experiment
        self._traced: dict[str, set[str]] = {}
        """Ids of the traces that are there, by campaign's run, once they were looked up."""
        try:
            self.client: Any = MlflowClient(tracking_uri=uri)
            found = self.client.get_experiment_by_name(experiment)
            self.experiment_id: str = found.experiment_id if found else self._create(experiment)
            self._traces = Traces(uri, self.experiment_id)
        except MlflowException as error:
            raise SetupError(f"the MLflow store at {uri} refused: {error.message}") from error
        except Exception as error:  # the client lets transport and database errors of many kinds through
            raise SetupError(f"the MLflow store at {uri} cannot be used: {error}") from error

    def start(self, campaign: str, params: dict[str, Any], problem: Problem) -> CampaignRun:
        """Open a campaign's parent run."""
        tags = {KIND: "campaign", CAMPAIGN: campaign, "mlflow.runName": campaign, "problem_digest": problem.digest}
        run = self.client.create_run(self.experiment_id, tags=tags)
        flat = {k: str(v) for k, v in _flat(params).items()}
        self._batch(run.info.run_id, {}, flat, {})
        self._log_problem(run.info.run_id, problem)
        return self._campaign(self.client.get_run(run.info.run_id))

    def latest(self, campaign: str | None = None) -> CampaignRun | None:
        """Return a campaign by id, or the one started last."""
        where = f"tags.{KIND} = 'campaign'" + (f" and tags.{CAMPAIGN} = '{campaign}'" if campaign else "")
        runs = self.client.search_runs(
            [self.experiment_id], filter_string=where, max_results=1, order_by=["attributes.start_time DESC"]
        )
        return self._campaign(runs[0]) if runs else None

    def recorded(self, campaign: str | None, language: str, problem: Problem) -> CampaignRun:
        """Return a campaign that can go on, the latest when none is named.

        Raises SetupError when there is none, or when it was run in another language or on another version of the
        problem.
        """
        run = self.latest(campaign)
        if run is None:
            what = repr(campaign) if campaign else "to resume"
            raise SetupError(f"no campaign {what} in MLflow experiment {self.experiment} at {self.uri}")
        if (other := run.params.get("language")) != language:
            raise SetupError(f"campaign {run.campaign} is in {other}, not in {language}")
        if run.tags.get("problem_digest") != problem.digest:
            raise SetupError(f"campaign {run.campaign} was run on another version of problem {problem.name}")
        return run

    def reopen(self, parent: CampaignRun) -> int:
        """Make a campaign ready to go on: remove kernel runs that were being written when it was killed.

        Returns how many there were.
        """
        incomplete = [r for r in self._children(parent.run_id) if r.info.status != "FINISHED"]
        for run in incomplete:
            self.client.delete_run(run.info.run_id)
        self.client.update_run(parent.run_id, status="RUNNING")
        return len(incomplete)

    def run_ids(self, parent: CampaignRun) -> dict[str, str]:
        """Return the ids of a campaign's kernel runs, by kernel."""
        return {r.data.tags[KERNEL]: r.info.run_id for r in self._children(parent.run_id)}

    def population(self, parent: CampaignRun) -> Population:
        """Read a campaign's kernels back."""
        trials = [self._read(r) for r in self._children(parent.run_id) if r.info.status == "FINISHED"]
        return Population(tuple(sorted(trials, key=lambda t: t.kernel.name)))

    def log(
        self,
        parent: CampaignRun,
        trial: Trial,
        population: Population,
        problem: Problem,
        replies: Sequence[Reply] = (),
    ) -> str:
        """Write one kernel as a run; return its id. Writing the same kernel again changes nothing.

        `replies`: what models answered for it, kept beside its source.
        """
        kernel = trial.kernel
        where = f"tags.`{PARENT}` = '{parent.run_id}' and tags.{KERNEL} = '{kernel.name}'"
        for run in self.client.search_runs([self.experiment_id], filter_string=where, max_results=10):
            if run.info.status == "FINISHED":
                return str(run.info.run_id)
            self.client.delete_run(run.info.run_id)  # a first attempt that broke off
        run_id = str(
            self.client.create_run(
                self.experiment_id, tags=run_content.tags(parent.run_id, parent.campaign, trial)
            ).info.run_id
        )
        self._batch(run_id, run_content.metrics(trial, population), run_content.params(trial, problem), {})
        self._log_problem(run_id, problem)
        with tempfile.TemporaryDirectory() as folder:
            run_content.write_artifacts(Path(folder), trial, population, replies)
            self.client.log_artifacts(run_id, folder)
        self.client.set_terminated(run_id, status="FINISHED")
        return run_id

    def keep_lessons(self, parent: CampaignRun, lessons: Lessons) -> None:
        """Write a campaign's findings on its run."""
        self.client.log_text(parent.run_id, lessons.model_dump_json(indent=1), LESSONS)

    def lessons(self, parent: CampaignRun) -> Lessons:
        """Read a campaign's findings back; none before the first distillation."""
        if all(f.path != LESSONS for f in self.client.list_artifacts(parent.run_id)):
            return Lessons()
        with tempfile.TemporaryDirectory() as folder:
            return Lessons.model_validate_json(
                Path(self.client.download_artifacts(parent.run_id, LESSONS, folder)).read_text()
            )

    def log_spending(self, parent: CampaignRun, replies: Sequence[Reply]) -> None:
        """Write on a campaign's run what its models cost, in all, per role and per model; every reply is a trace."""
        self._batch(parent.run_id, run_content.spending(replies), {}, {})
        if parent.run_id not in self._traced:
            self._traced[parent.run_id] = self._traces.written(parent.run_id)
        known = self._traced[parent.run_id]
        for reply in replies:
            if (name := traces.identity(reply)) not in known:
                self._traces.write(parent.run_id, reply)
                known.add(name)

    def progress(self, parent: CampaignRun, population: Population, best: Trial | None, spent_s: float = 0) -> None:
        """Add a point to the campaign's curve: best so far over the number of kernels."""
        metrics: dict[str, float] = {"kernels": len(population), "spent_s": spent_s}
        if best is not None and best.evaluation.by_model:
            metrics |= {"predicted_best_roofline_fraction": score(best)}
            metrics |= {"predicted_best_geomean_us": best.evaluation.predicted_us or math.inf}
        elif best is not None:
            speedup = best.evaluation.speedup_over(REFERENCE)
            metrics |= {"best_speedup": speedup.ratio if speedup else 0.0}
            metrics |= {"best_geomean_us": best.evaluation.geomean_us or 0.0}
        self._batch(parent.run_id, metrics, {}, {}, step=len(population))

    def finish(self, parent: CampaignRun, tags: dict[str, str], status: str = "FINISHED") -> None:
        """Close a campaign's parent run."""
        self._batch(parent.run_id, {}, {}, tags)
        self.client.set_terminated(parent.run_id, status=status)

    def log_confirmation(self, parent: CampaignRun, evaluation: Evaluation, metrics: dict[str, float]) -> None:
        """Write a champion's confirmation on its campaign's run."""
        self._batch(parent.run_id, metrics, {}, {})
        self.client.log_text(parent.run_id, evaluation.model_dump_json(indent=1), "confirmation.json")

    def register(self, parent: CampaignRun, kernel: Kernel, model: str) -> str:
        """Put a confirmed champion into the Model Registry under the alias `champion`; return its version."""
        from mlflow.exceptions import MlflowException

        where = f"tags.`{PARENT}` = '{parent.run_id}' and tags.{KERNEL} = '{kernel.name}'"
        run = self.client.search_runs([self.experiment_id], filter_string=where, max_results=1)[0]
        try:
            self.client.create_registered_model(model, description="Champion kernels; the source is kernel.py.")
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        source = f"{run.info.artifact_uri}/source"
        tags = {"kernel": kernel.name, "digest": kernel.digest, CAMPAIGN: parent.campaign}
        version = self.client.create_model_version(model, source, run.info.run_id, tags=tags)
        self.client.set_registered_model_alias(model, ALIAS, version.version)
        return str(version.version)

    def _create(self, experiment: str) -> str:
        location = None
        if self.uri.startswith("sqlite:///"):
            folder = Path(self.uri.removeprefix("sqlite:///")).parent / "artifacts" / experiment.replace("/", "-")
            location = folder.resolve().as_uri()
        return str(self.client.create_experiment(experiment, artifact_location=location))

    def _children(self, run_id: str) -> list[Any]:
        runs: list[Any] = []
        token = None
        while True:
            page = self.client.search_runs(
                [self.experiment_id], filter_string=f"tags.`{PARENT}` = '{run_id}'", max_results=PAGE, page_token=token
            )
            runs += page
            token = page.token
            if not token:
                return runs

    def _campaign(self, run: Any) -> CampaignRun:
        data = run.data
        return CampaignRun(run.info.run_id, data.tags[CAMPAIGN], dict(data.params), dict(data.tags), dict(data.metrics))

    def _read(self, run: Any) -> Trial:
        with tempfile.TemporaryDirectory() as folder:
            return run_content.read(Path(self.client.download_artifacts(run.info.run_id, "", folder)), run.data.tags)

    def _batch(
        self,
        run_id: str,
        metrics: dict[str, float],
        params: dict[str, str],
        tags: dict[str, str],
        step: int = 0,
    ) -> None:
        from mlflow.entities import Metric, Param, RunTag

        now = int(time.time() * 1000)
        finite = {k: float(v) for k, v in metrics.items() if math.isfinite(v)}
        self.client.log_batch(
            run_id,
            metrics=[Metric(k, v, now, step) for k, v in finite.items()],
            params=[Param(k, v[:500]) for k, v in params.items()],
            tags=[RunTag(k, v[:TEXT]) for k, v in tags.items()],
        )

    def _log_problem(self, run_id: str, problem: Problem) -> None:
        from mlflow.entities import Dataset, DatasetInput

        dataset: Any = Dataset(
            name=problem.name, digest=problem.digest[:12], source_type="local", source=str(problem.folder)
        )
        self.client.log_inputs(run_id, [DatasetInput(dataset)])


def reach(uri: str) -> None:
    """Find out quickly whether a store can be reached. Raises SetupError saying what does not answer."""
    if uri.startswith(("http://", "https://")):
        try:
            with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=5):
                return
        except urllib.error.HTTPError:
            return  # it answers; what it thinks of /health is its own affair
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise SetupError(
                f"no MLflow server answers at {uri} ({reason}); start one, or unset MLFLOW_TRACKING_URI and "
                "tracking.uri to use mlruns/"
            ) from error
    elif uri.startswith("sqlite:///"):
        folder = Path(uri.removeprefix("sqlite:///")).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"the MLflow store's folder {folder} cannot be made: {error.strerror}") from error
    elif "://" not in uri:
        raise SetupError(f"MLflow store {uri!r}: expected sqlite:///PATH, a database or an http address")


def open_for(problem: str, target: str, uri: str, experiment: str) -> Notebook:
    """Open the notebook of a problem on a target, as the parameters name it."""
    return Notebook(environment.tracking_uri(uri), experiment or f"{problem}-{target}")


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        out |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return out
