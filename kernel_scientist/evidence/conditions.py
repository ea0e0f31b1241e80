"""Whether problem, cases, evaluator and environment are the same everywhere in an archive, and as they are here."""

from typing import Any

from kernel_scientist import problems
from kernel_scientist.evidence import archive, cases
from kernel_scientist.evidence.contents import Contents
from kernel_scientist.evidence.findings import Findings
from kernel_scientist.hardware import gpus
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evidence import CaseEvidence, EnvironmentEvidence, ProblemEvidence
from kernel_scientist.records.kernel import REFERENCE, digest
from kernel_scientist.records.names import FILE
from kernel_scientist.records.raw_samples import RawSamples

SHORT = 12
"""Digits of the evaluator's digest in an evaluation's environment."""

SETTINGS = {f"harness.{name}" for name in ("confidence", "stages", "margin", "drop_below")}
"""Parameters that are compared with the plan of a timing."""
AUTO, ON_GPU = "auto", ("cuda", "rocm")
"""The target that is resolved on the campaign's machine; the targets whose kernels are built for a GPU of it."""

INPUTS: dict[str, Any] = {
    "generated_by": True,
    **{name: {"__all__": {"inputs"}} for name in ("tests", "benchmarks", "held_out")},
}
"""Fields that may differ from machine to machine."""


def check(contents: Contents, findings: Findings) -> None:
    """Compare the statements on problem, evaluator and environment with each other, then with what is installed."""
    manifest, problem, where = contents.manifest, contents.problem, contents.environment
    if where is not None:
        _environment(where, contents, findings)
    if problem is None:
        return
    findings.same(f"{archive.PROBLEM}: name", problem.name, manifest.problem)
    for what, samples in contents.timings:
        listed = problem.held_out if what.endswith("held_out_samples") else problem.benchmarks
        _samples(what, samples, problem, listed, findings)
    if contents.validation is not None:
        told = contents.validation
        findings.same(f"{archive.VALIDATION}: problem", told.problem, problem.name)
        findings.same(f"{archive.VALIDATION}: target", told.target, manifest.target)
        findings.same(f"{archive.VALIDATION}: kernel", told.kernel, manifest.kernel)
        findings.same(f"{archive.VALIDATION}: digest", told.digest, contents.digest)
    _installed(problem, contents, findings)


def _samples(
    what: str, samples: RawSamples, problem: ProblemEvidence, listed: tuple[CaseEvidence, ...], findings: Findings
) -> None:
    from kernel_scientist.evaluation.timing import raw

    findings.same(f"{what}: problem: digest", samples.problem.digest, problem.digest)
    findings.same(f"{what}: cases", samples.cases, [one.case for one in listed])
    works = {one.case.name: one.work for one in listed}
    findings.same(f"{what}: problem: works", samples.problem.works, works)
    if samples.bound is not None and (listed_gpu := gpus.GPUS.get(samples.bound.name.lower())):
        with findings.computed_by(samples.evaluator):
            findings.same(f"{what}: bound", samples.bound, raw.bound(listed_gpu))
    if REFERENCE in samples.sources:
        findings.same(f"{what}: sources: {REFERENCE}", samples.sources[REFERENCE], problem.reference)


def _environment(stated: EnvironmentEvidence, contents: Contents, findings: Findings) -> None:
    what, samples, found = archive.ENVIRONMENT, contents.samples, contents.confirmation
    if contents.evaluation is not None:
        findings.same(f"{what}: environment", stated.environment, contents.evaluation.environment)
    if samples is not None:
        findings.same(f"{archive.SAMPLES}: evaluator", samples.evaluator, stated.evaluator)
        findings.same(f"{what}: environment: evaluator", stated.environment.get("evaluator"), samples.evaluator[:SHORT])
    _parameters(stated, contents, findings)
    if found is not None and (public := found.evaluation.samples) is not None:
        short = found.evaluation.environment.get("evaluator")
        for timing in filter(None, (public, found.held_out_samples)):
            findings.same(f"{archive.CONFIRMATION}: evaluator", timing.evaluator, public.evaluator)
            findings.same(f"{archive.CONFIRMATION}: ratio_confidence", timing.ratio_confidence, timing.confidence)
            findings.same(f"{archive.CONFIRMATION}: environment: evaluator", short, timing.evaluator[:SHORT])
    installed = environment.evaluator_digest()
    for other in {one.evaluator: None for _, one in contents.timings if one.evaluator != installed}:
        why = "another version of the evaluator is installed; the figures were computed again by the installed one"
        findings.open(f"evaluator {other[:SHORT]}", why)


def _parameters(stated: EnvironmentEvidence, contents: Contents, findings: Findings) -> None:
    """Compare the campaign's parameters with what follows from them, and name the others."""
    manifest, problem, params, used = contents.manifest, contents.problem, stated.params, {"language"}
    if problem is not None:
        findings.same(f"{archive.PROBLEM}: device", problem.device, "cuda" if manifest.target in ON_GPU else "cpu")
        for name in {"profile", "compat"} & params.keys():
            findings.same(f"{archive.PROBLEM}: {name}", getattr(problem, name), params[name])
            used.add(name)
    if (target := params.get("target", AUTO)) != AUTO:
        named = FILE.encode(target.replace(":", "-", 1))
        findings.same(f"{archive.MANIFEST}: target", manifest.target.lower(), named.lower())
        used.add("target")
    if stated.resumed_with:
        findings.open("settings of the timing", "the campaign was resumed with others: the kernel may be from before")
    elif contents.samples is not None:
        _settings(contents.samples, params, findings)
        used |= SETTINGS
    if others := ", ".join(name for name in params if name not in used):
        findings.open("other parameters of the campaign", f"nothing in the archive follows from them: {others}")


def _settings(samples: RawSamples, params: dict[str, str], findings: Findings) -> None:
    """Compare the plan of a timing with the parameters of its campaign."""
    try:
        confidence, stages = float(params["harness.confidence"]), int(params["harness.stages"])
        margin, below = float(params["harness.margin"]), float(params["harness.drop_below"])
        ratio_confidence = 1 - (1 - confidence) / stages
    except (KeyError, ValueError, ArithmeticError) as error:
        findings.wrong(f"{archive.ENVIRONMENT}: params", "no settings of a harness", error)
        return
    what = f"{archive.ENVIRONMENT}: params: harness"
    findings.same(f"{what}.confidence", confidence, samples.confidence)
    findings.same(f"{what}.stages", ratio_confidence, samples.ratio_confidence)
    findings.same(f"{what}.drop_below", below, samples.drop_below)
    findings.same(f"{what}.margin is at most each margin", all(margin <= one for one in samples.margins), True)


def _installed(stated: ProblemEvidence, contents: Contents, findings: Findings) -> None:
    """Compare the problem with the one that is installed here, and generate its inputs again."""
    what = f"problem {stated.name}"
    if stated.name not in problems.names():  # a path in an archive is never followed
        findings.open(what, "it is not installed here: its cases, inputs and work were only compared with each other")
        return
    try:
        problem = problems.find(stated.name, stated.device, stated.compat)
        if problem.digest != stated.digest:
            findings.open(what, "another version of it is installed: its cases and inputs were not generated again")
            return
        found = cases.of_problem(problem, stated.profile)
    except (SetupError, ValueError) as error:
        findings.open(what, f"it cannot be used here: {error}")
        return
    findings.same(archive.PROBLEM, *(one.model_dump(mode="json", exclude=INPUTS) for one in (stated, found)))
    _inputs(stated, found, findings)
    _seed(problem, contents, findings)


def _inputs(stated: ProblemEvidence, found: ProblemEvidence, findings: Findings) -> None:
    """Compare the digests of inputs: another version of torch, or another processor, may round them otherwise."""
    told, made = (
        [(one.case.name, one.inputs) for one in (*each.tests, *each.benchmarks, *each.held_out)]
        for each in (stated, found)
    )
    if told == made or (stated.generated_by == found.generated_by and all(inputs for _, inputs in made)):
        findings.same(f"{archive.PROBLEM}: inputs", told, made)
    else:
        why = f"those of the archive were generated by {stated.generated_by}, and differ here: {found.generated_by}"
        findings.open("inputs of cases", why)


def _seed(problem: Problem, contents: Contents, findings: Findings) -> None:
    """Look for the end of the lineage among the installed problem's seeds."""
    last = contents.lineage.kernels[-1] if contents.lineage and contents.lineage.kernels else None
    if last is None:
        return
    if last.origin is not None:
        findings.open(f"{archive.LINEAGE}: {last.name}", f"it is {last.origin.words}: its own base is recorded there")
        return
    installed = {digest(file.read_text()) for file in problem.seeds(last.language)}
    if last.digest in installed:
        findings.same(f"{archive.LINEAGE}: {last.name}: seed", last.digest, last.digest)
    else:
        findings.open(f"{archive.LINEAGE}: {last.name}", "no installed seed of the problem has its source")
