"""What a campaign's run holds of its champion's confirmation: metrics, artifacts, tags."""

from kernel_scientist.records.evaluation import Confirmation
from kernel_scientist.records.results import ValidationResult
from kernel_scientist.tracking import run_content

CONFIRMATION, EVIDENCE, VALIDATION = "confirmation.json", "confirmation_evidence.json", "validation.json"
"""Artifacts: the evaluation on public cases, the whole confirmation with its raw samples, the result of `validate`."""


def metrics(found: Confirmation) -> dict[str, float]:
    """Return the times and their quotients, on public and on held-out cases."""
    public = run_content.comparison_metrics(found.evaluation.speedups, "confirmed_")
    return public | run_content.comparison_metrics(found.held_out_speedups, "held_out_")


def artifacts(found: Confirmation, validation: ValidationResult) -> dict[str, str]:
    """Return the texts of the artifacts by name; without samples there is no evidence."""
    texts = {
        CONFIRMATION: found.evaluation.model_dump_json(indent=1, exclude={"samples"}),
        VALIDATION: validation.model_dump_json(indent=1),
    }
    return texts | ({EVIDENCE: found.model_dump_json()} if found.evaluation.samples else {})


def tags(promoted: bool, reason: str, approval: str) -> dict[str, str]:
    """Return whether the champion became the standing one, why, and a person's decision if there was one."""
    tags = {"promoted": str(promoted).lower(), "promotion": reason}
    return tags | ({"approval": approval} if approval else {})
