"""Write the evidence of a recorded kernel."""

from datetime import UTC, datetime

from kernel_scientist import problems
from kernel_scientist.evidence import archive, cases
from kernel_scientist.evidence.archive import Archive, sha256, source_file
from kernel_scientist.hardware import addresses
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.evidence import Ancestor, EnvironmentEvidence, EvidenceResult, Lineage, Manifest
from kernel_scientist.records.params import Params
from kernel_scientist.records.raw_samples import RawSamples
from kernel_scientist.tracking import artifacts, confirmed
from kernel_scientist.tracking.access import RecordedCampaign, read_campaign
from kernel_scientist.tracking.mlflow_store import RESUMED

KEPT = ("problem", "language", "target", "profile", "compat", "harness.", "validate.")
"""Beginnings of the parameters that say how a kernel was evaluated. Others may name servers."""


def export(params: Params, kernel: str, campaign: str | None, out: str | None) -> EvidenceResult:
    """Write the archive of a kernel of a campaign, by default the latest. Return what was written.

    Raises SetupError if there is no such kernel or campaign, the problem has changed since, or the raw samples of a
    timed kernel were not recorded.
    """
    recorded = read_campaign(params, campaign)
    name, population = recorded.run.campaign, recorded.population
    if kernel not in population:
        raise SetupError(f"campaign {name} has no kernel {kernel}; it has {len(population)}, k00001 and on")
    made = _archive(recorded, _problem(recorded, params), population.get(kernel))
    path = environment.root() / (out or f"reports/{name}-{kernel}.evidence.zip")
    made.write(path)
    return EvidenceResult(file=str(path), campaign=name, kernel=kernel, files=tuple(made.files))


def _problem(recorded: RecordedCampaign, params: Params) -> Problem:
    """Return the problem as the campaign had it. Raises SetupError if it is another one now."""
    device = addresses.resolve(params.target, params.language).device
    problem = problems.find(params.problem, device, recorded.run.params.get("compat", "intended"))
    if recorded.run.tags.get("problem_digest") != problem.digest:
        campaign = recorded.run.campaign
        raise SetupError(f"campaign {campaign} was run on another version of problem {problem.name}: restore its files")
    return problem


def _archive(recorded: RecordedCampaign, problem: Problem, trial: Trial) -> Archive:
    store, run, kernel = recorded.store, recorded.run, trial.kernel
    samples = store.text(run, artifacts.SAMPLES, kernel.name)
    if trial.evaluation.timings and samples is None:
        raise SetupError(f"no raw samples of {kernel.name} were recorded: an older version timed it, or a leaderboard")
    lineage = _lineage(recorded, trial)
    evaluator = RawSamples.model_validate_json(samples).evaluator if samples else ""
    records: dict[str, Record] = {
        archive.LINEAGE: lineage,
        archive.EVALUATION: trial.evaluation,
        archive.PROBLEM: cases.of_problem(problem, run.params.get("profile", "auto")),
        archive.ENVIRONMENT: _environment(recorded, trial.evaluation, evaluator),
    }
    texts = {name: record.model_dump_json(indent=1) for name, record in records.items()}
    texts |= {archive.SAMPLES: samples} if samples else {}
    texts |= _confirmation(recorded, kernel.name)
    texts |= _sources(recorded.population, lineage, samples)
    files = {name: text.encode() for name, text in texts.items()}
    manifest = Manifest(
        format=archive.FORMAT,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        campaign=run.campaign,
        kernel=kernel.name,
        problem=problem.name,
        target=recorded.target,
        run=store.run_id(run, kernel.name) or "",
        files={name: sha256(content) for name, content in files.items()},
    )
    return Archive(manifest, files)


def _lineage(recorded: RecordedCampaign, trial: Trial) -> Lineage:
    found = [_ancestor(recorded, trial)]
    while (base := found[-1].base) is not None:
        found.append(_ancestor(recorded, recorded.population.get(base)))
    return Lineage(kernels=tuple(found))


def _ancestor(recorded: RecordedCampaign, trial: Trial) -> Ancestor:
    kernel = trial.kernel
    diff = recorded.store.text(recorded.run, artifacts.DIFF, kernel.name) if kernel.base else None
    return Ancestor(
        name=kernel.name,
        language=kernel.language,
        generation=kernel.generation,
        digest=kernel.digest,
        base=kernel.base,
        origin=kernel.origin,
        experiment=kernel.experiment,
        verdict=trial.evaluation.verdict,
        diff=diff or "",
    )


def _environment(recorded: RecordedCampaign, evaluation: Evaluation, evaluator: str) -> EnvironmentEvidence:
    kept = {name: value for name, value in recorded.run.params.items() if name.startswith(KEPT)}
    changed = recorded.run.tags.get(RESUMED, "")
    where = evaluation.environment
    return EnvironmentEvidence(evaluator=evaluator, environment=where, params=kept, resumed_with=changed)


def _confirmation(recorded: RecordedCampaign, kernel: str) -> dict[str, str]:
    """Return what a campaign's run holds of the kernel's confirmation, if it is this kernel's and has samples."""
    store, run = recorded.store, recorded.run
    validation, found = store.validation(run), store.text(run, confirmed.EVIDENCE)
    if validation is None or validation.kernel != kernel or found is None:
        return {}
    return {archive.CONFIRMATION: found, archive.VALIDATION: validation.model_dump_json(indent=1)}


def _sources(population: Population, lineage: Lineage, samples: str | None) -> dict[str, str]:
    """Return the sources of the lineage, and of the campaign's kernels that the kernel was timed beside."""
    beside = RawSamples.model_validate_json(samples).sources if samples else {}
    names = dict.fromkeys((*(one.name for one in lineage.kernels), *(name for name in beside if name in population)))
    return {source_file(name): population.get(name).kernel.source for name in names}
