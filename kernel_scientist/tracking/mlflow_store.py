"""The MLflow store: the only module that writes MLflow runs and reads a population back.

Every kernel is a run under its campaign's parent run. A run is created after the evaluation and is complete when its
status is FINISHED. Runs that a killed process left RUNNING are removed on resume, so every kernel has exactly one run.
Only `MlflowClient` with explicit run ids is used: the fluent API keeps its state per thread.
"""

import json
import math
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlparse

from kernel_scientist.population.entry import order
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation, Speedup, Trial
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.scientist.lessons import Lessons
from kernel_scientist.scientist.llm.response_cache import Reply, Spending
from kernel_scientist.tracking import artifacts, local_store, old_records, owner, run_content, snapshots, traces
from kernel_scientist.tracking.run_content import CAMPAIGN, KERNEL, KIND, PARENT

ALIAS = "champion"
FINDINGS, FINAL, BARS = "findings.json", "final.json", "bars.json"
MOST_METRICS = 1000
"""MLflow's limit on the metrics of one call."""
NUMBER = "number"
"""Metric of a kernel's run: how many kernels the campaign has with it."""
CLOCK_SKEW_MS = 600_000
"""Runs that began this long before the last snapshot are looked at again, in milliseconds."""


@dataclass(frozen=True)
class CampaignRun:
    """A campaign's parent run."""

    run_id: str
    campaign: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]

    @property
    def elapsed_s(self) -> float:
        """Return the campaign's wall time in seconds when its last kernel was logged."""
        return self.metrics.get("elapsed_s", 0.0)


class MlflowStore:
    """The runs of one MLflow experiment: one problem on one target."""

    def __init__(self, uri: str, experiment: str) -> None:
        """Open or create the experiment. Raises SetupError when the store cannot be used."""
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from mlflow.tracing.client import TracingClient

        self.uri, self.experiment = uri, experiment
        self._run_ids: dict[tuple[str, str], str] = {}
        """Ids of kernel runs that this process created, by the campaign's run id and the kernel's name."""
        self._complete: set[str] = set()
        """Ids of those that are complete."""
        local_store.prepare(uri)
        try:
            self.client: Any = MlflowClient(tracking_uri=uri)
            found = self.client.get_experiment_by_name(experiment) or self._create(experiment)
            self.experiment_id: str = found.experiment_id
            self._local = str(found.artifact_location).startswith("file:")
            self._tracing: Any = TracingClient(uri)
        except MlflowException as error:
            raise SetupError(f"the MLflow store at {uri} returned an error: {error.message}") from error
        except Exception as error:  # the client does not wrap transport and database errors
            raise SetupError(f"the MLflow store at {uri} cannot be used: {error}") from error

    def start(self, campaign: str, params: dict[str, Any], problem: Problem) -> CampaignRun:
        """Open a campaign's parent run."""
        tags = {KIND: "campaign", CAMPAIGN: campaign, "mlflow.runName": campaign, "problem_digest": problem.digest}
        tags[owner.TAG] = owner.this_process()
        run = self.client.create_run(self.experiment_id, tags=tags)
        flat = {k: str(v) for k, v in _flat(params).items()}
        self._batch(run.info.run_id, {}, flat)
        self._log_problem(run.info.run_id, problem)
        return self._campaign(self.client.get_run(run.info.run_id))

    def latest(self, campaign: str | None = None) -> CampaignRun | None:
        """Return the campaign with this id, or the one started last; None if there is none."""
        where = f"tags.{KIND} = 'campaign'" + (f" and tags.{CAMPAIGN} = '{campaign}'" if campaign else "")
        newest = ["attributes.start_time DESC"]
        runs = self.client.search_runs([self.experiment_id], filter_string=where, max_results=1, order_by=newest)
        return self._campaign(runs[0]) if runs else None

    def recorded(self, campaign: str | None, language: str, problem: Problem) -> CampaignRun | None:
        """Return a campaign that can be resumed, by default the latest; None if there is none yet.

        Raises SetupError when there is none of that name, or it used another language or version of the problem.
        """
        run = self.latest(campaign)
        if run is None:
            if campaign is None:
                return None
            raise SetupError(f"no campaign {campaign!r} in MLflow experiment {self.experiment} at {self.uri}")
        if (other := run.params.get("language")) != language:
            raise SetupError(f"campaign {run.campaign} is in {other}, not in {language}")
        if run.tags.get("problem_digest") != problem.digest:
            raise SetupError(f"campaign {run.campaign} was run on another version of problem {problem.name}")
        return run

    def reopen(self, parent: CampaignRun) -> int:
        """Remove the kernel runs that were incomplete when the campaign was killed; return their number."""
        incomplete = self._children(parent.run_id, "attributes.status != 'FINISHED'")
        for run in incomplete:
            self.client.delete_run(run.info.run_id)
        self.client.set_tag(parent.run_id, owner.TAG, owner.this_process())
        self.client.update_run(parent.run_id, status="RUNNING")
        return len(incomplete)

    def close_dead(self) -> None:
        """Give the status KILLED to campaigns whose process, on this host, has ended without a word."""
        where = f"tags.{KIND} = 'campaign' and attributes.status = 'RUNNING'"
        for run in traces.all_pages(self.client.search_runs, [self.experiment_id], filter_string=where):
            if owner.is_gone(run.data.tags.get(owner.TAG)):
                self.client.set_terminated(run.info.run_id, status="KILLED")

    def run_ids(self, parent: CampaignRun, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of the runs of these kernels by kernel name."""
        runs = (run for name in names for run in self._children(parent.run_id, _named(name)))
        return {run.data.tags[KERNEL]: run.info.run_id for run in runs}

    def population(self, parent: CampaignRun) -> Population:
        """Read a campaign's kernels back."""
        return self.read_population(parent)[0]

    def read_population(self, parent: CampaignRun) -> tuple[Population, list[str]]:
        """Read a campaign's kernels back; also return the names of those that no snapshot contains."""
        population, since_ms = Population(), 0
        for file in self.client.list_artifacts(parent.run_id, snapshots.FOLDER):
            time_ms, kernels = snapshots.load(self._artifact(parent, file.path) or "")
            for entry, record in kernels:
                population.insert(entry, record)
            since_ms = max(since_ms, time_ms)
        later = [f"attributes.start_time >= {since_ms - CLOCK_SKEW_MS}"] if since_ms else [""]
        if since_ms:  # the clock may have jumped, and a run may begin when its kernel does
            later.append(f"metrics.{NUMBER} > {len(population)}")
        runs = [run for one in later for run in self._children(parent.run_id, "attributes.status = 'FINISHED'", one)]
        loose = {run.data.tags[KERNEL]: run for run in runs if run.data.tags[KERNEL] not in population}
        names = sorted(loose, key=order)
        for name in names:
            population.add(self._read(loose[name]))
        return population, names

    def log_snapshot(self, parent: CampaignRun, population: Population, names: Sequence[str]) -> None:
        """Write a snapshot of these kernels, which must be recorded."""
        file = f"{snapshots.FOLDER}/{names[0]}-{names[-1]}.jsonl"
        self.client.log_text(parent.run_id, snapshots.dump(population, names), file)

    def log(
        self, parent: CampaignRun, trial: Trial, population: Population, problem: Problem, replies: Sequence[Reply] = ()
    ) -> str:
        """Write one kernel as a run; return the run's id. Writing the same kernel again changes nothing.

        `replies`: the models' replies for this kernel; they become artifacts of the run.
        """
        key = parent.run_id, trial.kernel.name
        if earlier := self._run_ids.get(key):
            if earlier in self._complete:
                return earlier
            self.client.delete_run(earlier)  # an earlier attempt that was interrupted
        tags = run_content.tags(parent.run_id, parent.campaign, trial)
        run = self.client.create_run(self.experiment_id, tags=tags)
        run_id = self._run_ids[key] = str(run.info.run_id)
        metrics = run_content.metrics(trial, population) | {NUMBER: len(population) + 1}
        self._batch(run_id, metrics, run_content.params(trial, problem))
        with self._uploaded(run) as folder:
            artifacts.write(folder, trial, population, replies)
        self.client.set_terminated(run_id, status="FINISHED")
        self._complete.add(run_id)
        return run_id

    def log_lessons(self, parent: CampaignRun, lessons: Lessons) -> None:
        """Write a campaign's findings to its run."""
        self.client.log_text(parent.run_id, lessons.model_dump_json(indent=1), FINDINGS)

    def lessons(self, parent: CampaignRun) -> Lessons:
        """Read a campaign's findings back; empty before the first distillation."""
        text = self._artifact(parent, FINDINGS)
        return Lessons.model_validate(old_records.lessons(text)) if text else Lessons()

    def log_final(self, parent: CampaignRun, final: Final) -> None:
        """Write the times of a campaign's finalists to its run."""
        self._batch(parent.run_id, run_content.final_metrics(final))
        self.client.log_text(parent.run_id, final.model_dump_json(indent=1), FINAL)

    def final(self, parent: CampaignRun) -> Final | None:
        """Read the final back; None for a campaign that had none."""
        text = self._artifact(parent, FINAL)
        return Final.model_validate_json(text) if text else None

    def log_spending(self, parent: CampaignRun, rows: Sequence[Spending]) -> None:
        """Write the cost of a campaign's model calls to its run: total, per role, per model."""
        self._batch(parent.run_id, run_content.spending(rows))

    def log_traces(self, parent: CampaignRun, replies: Sequence[Reply]) -> None:
        """Write replies as traces of a campaign's run. Writing a reply again changes nothing."""
        traces.write(self._tracing, self.experiment_id, parent.run_id, replies)

    def log_curve(self, parent: CampaignRun, points: Sequence[tuple[int, dict[str, float]]]) -> None:
        """Add points (number of kernels, metrics) to a campaign's curve."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        values = [Metric(k, v, now, step) for step, m in points for k, v in m.items() if math.isfinite(v)]
        for start in range(0, len(values), MOST_METRICS):
            self.client.log_batch(parent.run_id, metrics=values[start : start + MOST_METRICS])

    def finish(self, parent: CampaignRun, champion: str, status: str = "FINISHED") -> None:
        """Close a campaign's parent run; `champion` is empty if there is none."""
        self.client.set_tag(parent.run_id, "champion", champion)
        self.client.set_terminated(parent.run_id, status=status)

    def log_confirmation(self, parent: CampaignRun, evaluation: Evaluation, held_out: Sequence[Speedup]) -> None:
        """Write a champion's confirmation to its campaign's run."""
        metrics = run_content.comparison_metrics(evaluation.speedups, "confirmed_")
        self._batch(parent.run_id, metrics | run_content.comparison_metrics(held_out, "held_out_"))
        self.client.log_text(parent.run_id, evaluation.model_dump_json(indent=1), "confirmation.json")

    def log_bars(self, parent: CampaignRun, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write how a campaign's champion compares with others' kernels, if there are any, to its run."""
        if rows:
            self.client.log_text(parent.run_id, json.dumps(rows, indent=1), BARS)

    def bars(self, parent: CampaignRun) -> list[dict[str, Any]]:
        """Read the comparison with others' kernels back; empty for a campaign that had none."""
        return json.loads(self._artifact(parent, BARS) or "[]")

    def register(self, parent: CampaignRun, kernel: Kernel, model: str, is_standing: bool) -> str:
        """Register a confirmed champion in the Model Registry; return its version.

        `is_standing`: give it the alias `champion`, which an earlier version may have.
        """
        from mlflow.exceptions import MlflowException

        run = self._children(parent.run_id, _named(kernel.name))[0]
        try:
            self.client.create_registered_model(model, description="Champion kernels; the source is kernel.py.")
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        source = f"{run.info.artifact_uri}/source"
        tags = {"kernel": kernel.name, "digest": kernel.digest, CAMPAIGN: parent.campaign}
        version = self.client.create_model_version(model, source, run.info.run_id, tags=tags)
        if is_standing:
            self.client.set_registered_model_alias(model, ALIAS, version.version)
        return str(version.version)

    def _create(self, experiment: str) -> Any:
        """Create the experiment, unless another process is quicker; return it."""
        from mlflow.exceptions import MlflowException

        file = local_store.database(self.uri)
        location = f"{local_store.artifacts(file)}/{quote(experiment.replace('/', '-'))}" if file else None
        try:
            self.client.create_experiment(experiment, artifact_location=location)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        return self.client.get_experiment_by_name(experiment)

    def _children(self, run_id: str, *conditions: str) -> list[Any]:
        """Return a campaign's kernel runs that meet MLflow's conditions; empty ones are ignored."""
        where = " and ".join(filter(None, (f"tags.`{PARENT}` = '{run_id}'", *conditions)))
        return traces.all_pages(self.client.search_runs, [self.experiment_id], filter_string=where)

    def _campaign(self, run: Any) -> CampaignRun:
        data, metrics = run.data, old_records.metrics(run.data.metrics)
        return CampaignRun(run.info.run_id, data.tags[CAMPAIGN], dict(data.params), dict(data.tags), metrics)

    def _artifact(self, parent: CampaignRun, name: str) -> str | None:
        folder = name.rpartition("/")[0] or None
        if all(f.path != name for f in self.client.list_artifacts(parent.run_id, folder)):
            return None
        with self._downloaded(parent.run_id, name) as file:
            return file.read_text()

    def _read(self, run: Any) -> Trial:
        with self._downloaded(run.info.run_id, "") as folder:
            return artifacts.read(folder, run.data.tags)

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
            yield Path(self.client.download_artifacts(run_id, name))
            return
        with tempfile.TemporaryDirectory() as folder:
            yield Path(self.client.download_artifacts(run_id, name, folder))

    def _batch(self, run_id: str, metrics: dict[str, float], params: dict[str, str] | None = None) -> None:
        from mlflow.entities import Metric, Param

        now = int(time.time() * 1000)
        finite = [Metric(k, float(v), now, 0) for k, v in metrics.items() if math.isfinite(v)]
        self.client.log_batch(run_id, finite, [Param(k, v[:500]) for k, v in (params or {}).items()])

    def _log_problem(self, run_id: str, problem: Problem) -> None:
        from mlflow.entities import Dataset, DatasetInput

        dataset: Any = Dataset(problem.name, problem.digest[:12], "local", str(problem.folder))
        self.client.log_inputs(run_id, [DatasetInput(dataset)])


def _named(kernel: str) -> str:
    return f"tags.{KERNEL} = '{kernel}'"


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        out |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return out
