"""Whether times, intervals, ratios and decisions follow from the raw samples."""

from collections.abc import Callable
from typing import Any, TypeVar

from kernel_scientist.campaign import results
from kernel_scientist.evidence import archive
from kernel_scientist.evidence.contents import COMPUTED, Contents
from kernel_scientist.evidence.findings import Findings
from kernel_scientist.records.evaluation import CONFIRMED, Confirmation, Evaluation
from kernel_scientist.records.kernel import REFERENCE
from kernel_scientist.records.raw_samples import RawSamples, digest_of
from kernel_scientist.records.results import HeldOutResult, ValidationResult

T = TypeVar("T")
UNSOUND = (ValueError, KeyError, IndexError, ZeroDivisionError, OverflowError)
"""What the estimator raises for samples that no timing can have made."""


def check(contents: Contents, findings: Findings) -> None:
    """Compute every figure of the evaluation and of the confirmation again."""
    for name, samples in contents.timings:
        findings.same(f"{name}: digest", samples.digest, digest_of(samples.readings))
    if contents.evaluation is not None and contents.samples is not None:
        with findings.computed_by(contents.samples.evaluator):
            _evaluation(archive.EVALUATION, contents.evaluation, contents.samples, findings)
    if contents.confirmation is not None:
        is_hidden = contents.problem is not None and bool(contents.problem.held_out)
        _confirmation(contents.confirmation, is_hidden, findings)
        if contents.validation is not None:
            _validation(contents.validation, contents.confirmation, findings)
    elif contents.validation is None:
        findings.open("a confirmation", "the archive has none: the kernel is not a champion that was timed again")


def _evaluation(what: str, stated: Evaluation, samples: RawSamples, findings: Findings) -> None:
    from kernel_scientist.evaluation.timing import raw

    found = _sound(f"{what}: samples", lambda: raw.Recorded(samples).evaluation(stated), findings)
    if found is None:
        return
    for name in COMPUTED:
        findings.same(f"{what}: {name}", getattr(stated, name), getattr(found, name))
    findings.same(f"{what}: labels", sorted(stated.labels), sorted(found.labels))


def _confirmation(stated: Confirmation, is_hidden: bool, findings: Findings) -> None:
    """Compute a confirmation again. `is_hidden`: whether the problem has held-out cases."""
    from kernel_scientist.evaluation import confirmation
    from kernel_scientist.evaluation.timing import raw

    what, samples, hidden = archive.CONFIRMATION, stated.evaluation.samples, stated.held_out_samples
    if samples is None:
        findings.wrong(f"{what}: evaluation: samples", "missing", "those of its times")
        return
    with findings.computed_by(samples.evaluator):
        _evaluation(f"{what}: evaluation", stated.evaluation, samples, findings)
    if hidden is not None:
        with findings.computed_by(hidden.evaluator):
            times, speedups = _sound(what, raw.Recorded(hidden).held_out, findings) or ((), ())
            findings.same(f"{what}: held_out", stated.held_out, times)
            findings.same(f"{what}: held_out_speedups", stated.held_out_speedups, speedups)
    elif is_hidden or stated.held_out or stated.held_out_speedups:
        findings.wrong(f"{what}: held_out_samples", "missing", "those of the times on held-out cases")
    decided = confirmation.decide(stated.evaluation, stated.held_out_speedups, stated.baseline or None)
    with findings.computed_by(samples.evaluator):
        findings.same(f"{what}: confirmed", stated.confirmed, decided[0])
        findings.same(f"{what}: reason", stated.reason, decided[1])


def _validation(stated: ValidationResult, found: Confirmation, findings: Findings) -> None:
    """Compare what `validate` told with the confirmation that it is made of."""
    made = _sound(f"{archive.CONFIRMATION}: times", lambda: _told(found), findings) or {}
    for name, value in made.items():
        findings.same(f"{archive.VALIDATION}: {name}", getattr(stated, name), value)


def _told(found: Confirmation) -> dict[str, Any]:
    """Return what a validation says of a confirmation, by field."""
    over = found.evaluation.speedup_over(REFERENCE)
    hidden = next((one.cases for one in found.held_out_speedups if one.against == REFERENCE), {})
    report = found.evaluation.compile
    cases = results.cases(found.evaluation.timings, over.cases if over else {})
    return {
        **{name: getattr(found.evaluation, name) for name in results.SHARED},
        "status": found.status,
        "confirmed": found.status == CONFIRMED,
        "why": found.reason,
        "seconds": results.rounded(found.evaluation.seconds),
        "counters": results.counters(found.evaluation),
        "compile": report.model_copy(update={"log": ""}) if report else None,
        "clocks": [results.rounded(one.model_dump()) for one in found.evaluation.clocks],
        "cases": cases,
        "geomean_us": results.rounded(results.mean([one.time_us for one in cases])),
        "speedup": results.of_speedup(over) if over else None,
        "speedups": tuple(map(results.of_speedup, found.evaluation.speedups)),
        "held_out": HeldOutResult(
            cases=results.cases(found.held_out, hidden),
            speedups=tuple(map(results.of_speedup, found.held_out_speedups)),
        ),
        "bars": results.bars(found),
        **({} if found.evaluation.predictions else {"predicted": None}),
        "recorded": "",
        "key": "",
    }


def _sound(what: str, compute: Callable[[], T], findings: Findings) -> T | None:
    """Return what is computed from samples; None, which is a difference, if no timing can have made them."""
    try:
        return compute()
    except UNSOUND as error:
        findings.wrong(what, "clock readings", f"no timing can have made them: {type(error).__name__}: {error}")
        return None
