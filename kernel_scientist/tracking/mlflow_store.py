"""The MLflow store: the only module that writes MLflow runs and reads a population back.

Every kernel is a run under its campaign's parent run. A run is created after the evaluation and is complete when its
status is FINISHED. Runs that a killed process left RUNNING are removed on resume, so every kernel has exactly one run.
Only `MlflowClient` with explicit run ids is used: the fluent API keeps its state per thread.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernel_scientist.population.entry import order
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Confirmation, Trial
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.results import BarResult, ValidationResult
from kernel_scientist.scientist.llm.response_cache import Reply, Spending
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.tracking import (
    artifacts,
    campaign_params,
    confirmed,
    flow_links,
    owner,
    pages,
    registry,
    run_content,
    snapshots,
    traces,
)
from kernel_scientist.tracking.campaign_index import CampaignIndex
from kernel_scientist.tracking.campaign_run import ENDED, CampaignRun
from kernel_scientist.tracking.run_content import CAMPAIGN, KERNEL, KIND, SUITE
from kernel_scientist.tracking.subject import Subject

FINDINGS, FINAL, PAGE = "findings.json", "final.json", "report.html"
CHAMPION, FLOW = "champion", flow_links.TAG
"""Tags: a campaign's champion, and `yes` of that kernel's run; the address of a campaign's Prefect run."""
RESUMED = "resumed_with"
"""Tag of a campaign: parameters that changed when it was resumed."""
NUMBER = "number"
"""Metric of a kernel's run: how many kernels the campaign has with it."""
CLOCK_SKEW_MS = 600_000
"""Runs that ended this long before the last snapshot are looked at again, in milliseconds."""
FINISHED = "attributes.status = 'FINISHED'"
"""Condition of a complete run, in MLflow's language."""


class MlflowStore(CampaignIndex):
    """The runs of one MLflow experiment: one problem on one target."""

    def __init__(self, uri: str, experiment: str) -> None:
        """Open or create the experiment. Raises SetupError when the store cannot be used."""
        super().__init__(uri, experiment)
        self._run_ids: dict[tuple[str, str], str] = {}
        """Ids of complete kernel runs, as far as known, by the campaign's run id and the kernel's name."""
        self._begun: dict[tuple[str, str], str] = {}
        """Ids of those that this process has created, complete or not."""

    def start(
        self,
        campaign: str,
        params: dict[str, Any],
        problem: Problem,
        by_model: bool = False,
        subject: Subject | None = None,
    ) -> CampaignRun:
        """Open a campaign's parent run. `by_model`: kernels are ranked by predictions. `subject`: what it is about."""
        from mlflow.entities import Dataset, DatasetInput

        self.client.set_experiment_tag(self.experiment_id, pages.VIEW_TAG, pages.view(by_model))
        tags = {KIND: "campaign", CAMPAIGN: campaign, "mlflow.runName": campaign, "problem_digest": problem.digest}
        tags |= {owner.TAG: owner.this_process(), owner.BELONGS: environment.owner()}
        tags |= subject.tags if subject else {}
        values = campaign_params.texts(params)
        tags |= {SUITE: suite} if (suite := values.get("tracking.suite")) else {}
        run_id = self.client.create_run(self.experiment_id, tags=tags).info.run_id
        self._log(run_id, params=campaign_params.compared(values))
        dataset: Any = Dataset(problem.name, problem.digest[:12], "local", str(problem.folder))
        self.client.log_inputs(run_id, [DatasetInput(dataset)])
        return self.with_params(CampaignRun.of(self.client.get_run(run_id)), params)

    def with_params(self, parent: CampaignRun, params: dict[str, Any]) -> CampaignRun:
        """Record which parameters are in force from now on; return the campaign's run with them."""
        values = campaign_params.texts(params)
        self.client.log_text(parent.run_id, campaign_params.dump(values), campaign_params.FILE)
        return replace(parent, params=values)

    def reopen(self, parent: CampaignRun) -> int:
        """Remove the kernel runs that were incomplete when the campaign was killed; return their number."""
        incomplete = self._children(parent.run_id, "attributes.status != 'FINISHED'")
        for run in incomplete:
            self.client.delete_run(run.info.run_id)
        for tag, text in ((owner.TAG, owner.this_process()), (owner.BELONGS, environment.owner()), (ENDED, "")):
            self.client.set_tag(parent.run_id, tag, text)
        self.client.update_run(parent.run_id, status="RUNNING")
        return len(incomplete)

    def run_ids(self, parent: CampaignRun, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of the runs of these kernels by kernel name, as far as they have one."""
        return {name: run_id for name in names if (run_id := self.run_id(parent, name))}

    def population(self, parent: CampaignRun) -> Population:
        """Read a campaign's kernels back."""
        return self.read_population(parent)[0]

    def read_population(self, parent: CampaignRun) -> tuple[Population, list[str]]:
        """Read a campaign's kernels back; also return the names of those that no snapshot contains, oldest first."""
        population, since_ms = Population(), 0
        for file in self.client.list_artifacts(parent.run_id, snapshots.FOLDER):
            since_ms = max(since_ms, snapshots.load(self._artifact(parent.run_id, file.path) or "", population))
        later: list[list[str]] = [[]]
        if since_ms:  # the clock may have jumped
            later = [[f"attributes.end_time >= {since_ms - CLOCK_SKEW_MS}"], [f"metrics.{NUMBER} > {len(population)}"]]
        runs = [run for conditions in later for run in self._children(parent.run_id, FINISHED, *conditions)]
        loose = {run.data.tags[KERNEL]: run for run in runs if run.data.tags[KERNEL] not in population}
        names = sorted(loose, key=lambda name: (loose[name].data.metrics.get(NUMBER, 0), order(name)))
        for name in names:
            with self._downloaded(loose[name].info.run_id, "") as folder:
                population.add(artifacts.read(folder, loose[name].data.tags))
        return population, names

    def log_snapshot(self, parent: CampaignRun, population: Population, names: Sequence[str]) -> None:
        """Write a snapshot of these kernels: all that are recorded and that no snapshot contains.

        A resume does not look at the runs from before the last snapshot.
        """
        file = f"{snapshots.FOLDER}/{names[0]}-{names[-1]}.jsonl"
        self.client.log_text(parent.run_id, snapshots.dump(population, names), file)

    def log(
        self,
        parent: CampaignRun,
        trial: Trial,
        population: Population,
        problem: Problem,
        replies: Sequence[Reply] = (),
        began_s: float | None = None,
    ) -> str:
        """Write one kernel as a run; return the run's id. Writing the same kernel again changes nothing.

        `replies`: the models' replies for this kernel; they become artifacts of the run. `began_s`: when the work on
        the kernel began, in seconds since the epoch; the run lasts from then until it is recorded.
        """
        key = parent.run_id, trial.kernel.name
        if complete := self._run_ids.get(key):
            return complete
        if key in self._begun:
            self.client.delete_run(self._begun[key])  # an earlier attempt that was interrupted
        base = self.run_id(parent, trial.kernel.base) if trial.kernel.base else None
        link = pages.run(self.experiment_id, base, address="") if base else ""
        campaign = pages.run(self.experiment_id, parent.run_id, address="")
        note = pages.description(trial, population, link, campaign)
        tags = run_content.tags(parent.run_id, parent.campaign, trial, note)
        start_ms = int((began_s or time.time()) * 1000)
        run = self.client.create_run(self.experiment_id, start_time=start_ms, tags=tags)
        run_id = self._begun[key] = str(run.info.run_id)
        metrics = run_content.metrics(trial, population) | {NUMBER: len(population) + 1}
        self._log(run_id, (0, metrics), params=run_content.params(trial, problem))
        with self._uploaded(run) as folder:
            artifacts.write(folder, trial, population, replies)
        self.client.set_terminated(run_id, status="FINISHED")
        self._run_ids[key] = run_id
        return run_id

    def note(self, parent: CampaignRun, tag: str, text: str) -> None:
        """Set a tag of a campaign's run."""
        self.client.set_tag(parent.run_id, tag, text)

    def log_text(self, parent: CampaignRun, name: str, text: str) -> None:
        """Write an artifact of a campaign's run."""
        self.client.log_text(parent.run_id, text, name)

    def text(self, parent: CampaignRun, name: str, kernel: str | None = None) -> str | None:
        """Return an artifact of a campaign's run, or of a kernel's; None if there is none."""
        run_id = self.run_id(parent, kernel) if kernel else parent.run_id
        return self._artifact(run_id, name) if run_id else None

    def log_lessons(self, parent: CampaignRun, lessons: Lessons) -> None:
        """Write a campaign's findings to its run."""
        self.client.log_text(parent.run_id, lessons.model_dump_json(indent=1), FINDINGS)

    def lessons(self, parent: CampaignRun) -> Lessons:
        """Read a campaign's findings back; empty before the first distillation."""
        text = self._artifact(parent.run_id, FINDINGS)
        return Lessons.model_validate_json(text) if text else Lessons()

    def log_final(self, parent: CampaignRun, final: Final) -> None:
        """Write the times of a campaign's finalists to its run."""
        self._log(parent.run_id, (0, run_content.final_metrics(final)))
        self.client.log_text(parent.run_id, final.model_dump_json(indent=1), FINAL)

    def final(self, parent: CampaignRun, population: Population) -> Final | None:
        """Read the final of these kernels back; None for a campaign that had none, or has gone on since."""
        text = self._artifact(parent.run_id, FINAL)
        found = Final.model_validate_json(text) if text else None
        return found if found and found.is_of(population) else None

    def log_spending(self, parent: CampaignRun, rows: Sequence[Spending]) -> None:
        """Write the cost of a campaign's model calls to its run: total, per role, per model."""
        self._log(parent.run_id, (0, run_content.spending(rows)))

    def log_traces(self, parent: CampaignRun, replies: Sequence[tuple[Reply, str]]) -> None:
        """Write replies as traces, each of the run of the kernel that it led to, else (empty) of the campaign's run.

        Writing a reply again changes nothing.
        """
        runs = {name: self.run_id(parent, name) for _, name in replies if name}
        made = [traces.Made(reply, name, runs.get(name) or parent.run_id) for reply, name in replies]
        traces.write(self._tracing, self.experiment_id, made)

    def log_curve(self, parent: CampaignRun, points: Sequence[tuple[int, dict[str, float]]]) -> None:
        """Add points (number of kernels, metrics) to a campaign's curve."""
        self._log(parent.run_id, *points)

    def finish(self, parent: CampaignRun, champion: str, status: str = "FINISHED") -> None:
        """Close a campaign's parent run; `champion` is empty if there is none. The champion's run gets a tag, too."""
        self.client.set_tag(parent.run_id, CHAMPION, champion)
        for run in self._children(parent.run_id, f"tags.{CHAMPION} = 'yes'"):
            self.client.delete_tag(run.info.run_id, CHAMPION)
        if champion and (run_id := self.run_id(parent, champion)):
            self.client.set_tag(run_id, CHAMPION, "yes")
        self.client.set_terminated(parent.run_id, status=status)

    def log_confirmation(
        self,
        parent: CampaignRun,
        found: Confirmation,
        validation: ValidationResult,
        promoted: bool,
        reason: str,
        approval: str = "",
    ) -> None:
        """Write a champion's confirmation and the result of `validate` to its campaign's run.

        `promoted`, `reason`: whether the champion became the standing one, and why. `approval`: a person's decision.
        """
        self._log(parent.run_id, (0, confirmed.metrics(found)))
        for name, text in confirmed.artifacts(found, validation).items():
            self.client.log_text(parent.run_id, text, name)
        for tag, value in confirmed.tags(promoted, reason, approval).items():
            self.client.set_tag(parent.run_id, tag, value)

    def validation(self, parent: CampaignRun) -> ValidationResult | None:
        """Read the result of `validate` back; None for a campaign without one."""
        text = self._artifact(parent.run_id, confirmed.VALIDATION)
        return ValidationResult.model_validate_json(text) if text else None

    def bars(self, parent: CampaignRun) -> tuple[BarResult, ...]:
        """Return the comparison of a campaign's champion with others' kernels; empty for a campaign that had none."""
        validation = self.validation(parent)
        return validation.bars if validation else ()

    def next_version(self, model: str) -> int:
        """Return the number that the next version of a model in the Model Registry will have."""
        return registry.next_version(self.client, model)

    def register(
        self, parent: CampaignRun, kernel: Kernel, model: str, is_standing: bool, facts: Mapping[str, str] = {}
    ) -> str:
        """Register a champion in the Model Registry; return its version.

        `is_standing`: give it the alias `champion`, which an earlier version may have. `facts`: how it was confirmed,
        how much faster it is, on what; for its card and the version's tags.
        """
        run = self.client.get_run(self.run_id(parent, kernel.name))
        # a version's own card names the version: the alias may not exist, and may become another version's
        expected = registry.registered_version(self.client, run, model) or str(self.next_version(model))
        by_number = registry.model_card(model, kernel, parent.campaign, facts, f"models:/{model}/{expected}")
        with self._uploaded(run) as folder:
            registry.write_model(folder / registry.SOURCE, by_number)
        version = registry.register(self.client, run, kernel, model, parent.campaign, by_number, facts)
        if is_standing:
            self.client.set_registered_model_alias(model, registry.ALIAS, version)
            by_alias = registry.model_card(model, kernel, parent.campaign, facts, f"models:/{model}@{registry.ALIAS}")
            self.client.update_registered_model(model, description=by_alias)
        return version

    def linked(self, parent: CampaignRun, flow_url: str) -> CampaignRun:
        """Return a campaign's run with the address of its Prefect run, which may be empty, in tag and description."""
        flow_links.write(self.client, self.experiment_id, parent.run_id, flow_url)
        return replace(parent, tags=parent.tags | {FLOW: flow_url})

    def run_id(self, parent: CampaignRun, kernel: str) -> str | None:
        """Return the id of a kernel's complete run; None if it has none."""
        key = parent.run_id, kernel
        if key not in self._run_ids:
            for run in self._children(parent.run_id, FINISHED, f"tags.{KERNEL} = '{kernel}'"):
                self._run_ids[key] = run.info.run_id
        return self._run_ids.get(key)
