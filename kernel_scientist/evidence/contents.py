"""The files of an archive as records."""

from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from kernel_scientist.evidence import archive
from kernel_scientist.evidence.archive import Archive, first, sha256
from kernel_scientist.evidence.findings import Findings
from kernel_scientist.records.base import Record
from kernel_scientist.records.evaluation import Confirmation, Evaluation
from kernel_scientist.records.evidence import EnvironmentEvidence, Lineage, Manifest, ProblemEvidence
from kernel_scientist.records.raw_samples import RawSamples
from kernel_scientist.records.results import ValidationResult

R = TypeVar("R", bound=Record)
COMPUTED = ("timings", "speedups", "beside", "baseline", "clocks")
"""Fields of an evaluation that follow from its samples."""


@dataclass(frozen=True)
class Contents:
    """The records of an archive; None for one that is missing or invalid, which is a difference where it is due."""

    manifest: Manifest
    lineage: Lineage | None
    evaluation: Evaluation | None
    samples: RawSamples | None
    confirmation: Confirmation | None
    validation: ValidationResult | None
    problem: ProblemEvidence | None
    environment: EnvironmentEvidence | None
    sources: dict[str, str]
    """Sources by file name."""

    @property
    def digest(self) -> str:
        """The digest of the kernel's source, as the lineage states it; empty without a lineage."""
        return self.lineage.kernels[0].digest if self.lineage and self.lineage.kernels else ""

    @property
    def timings(self) -> tuple[tuple[str, RawSamples], ...]:
        """The raw samples of all timings, and what they are called in findings."""
        found = self.confirmation
        every = {
            archive.SAMPLES: self.samples,
            f"{archive.CONFIRMATION}: evaluation: samples": found.evaluation.samples if found else None,
            f"{archive.CONFIRMATION}: held_out_samples": found.held_out_samples if found else None,
        }
        return tuple((name, samples) for name, samples in every.items() if samples)


def read(bundle: Archive, findings: Findings) -> Contents:
    """Return an archive's records, once its files are compared with the manifest's digests."""
    stated, held = bundle.manifest.files, {name: sha256(content) for name, content in bundle.files.items()}
    findings.same(f"{archive.MANIFEST}: files", stated, held)
    evaluation = _parsed(bundle, archive.EVALUATION, Evaluation, findings)
    timed = evaluation is not None and any(getattr(evaluation, name) for name in COMPUTED)
    confirmed = archive.CONFIRMATION in bundle.files
    return Contents(
        manifest=bundle.manifest,
        lineage=_parsed(bundle, archive.LINEAGE, Lineage, findings),
        evaluation=evaluation,
        samples=_parsed(bundle, archive.SAMPLES, RawSamples, findings, is_due=timed),
        confirmation=_parsed(
            bundle, archive.CONFIRMATION, Confirmation, findings, is_due=archive.VALIDATION in bundle.files
        ),
        validation=_parsed(bundle, archive.VALIDATION, ValidationResult, findings, is_due=confirmed),
        problem=_parsed(bundle, archive.PROBLEM, ProblemEvidence, findings),
        environment=_parsed(bundle, archive.ENVIRONMENT, EnvironmentEvidence, findings),
        sources={
            name: content.decode(errors="replace")
            for name, content in bundle.files.items()
            if name.startswith("sources/")
        },
    )


def _parsed(bundle: Archive, name: str, record: type[R], findings: Findings, is_due: bool = True) -> R | None:
    content = bundle.files.get(name)
    if content is None:
        if is_due:
            findings.wrong(name, "missing", "what the rest of the archive rests on")
        return None
    try:
        return record.model_validate_json(content)
    except ValidationError as error:
        findings.wrong(name, first(error), "a valid record")
    except ArithmeticError as error:  # of a record's own check, such as a time of 0
        findings.wrong(name, str(error), "a valid record")
    return None
