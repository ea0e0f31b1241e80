"""What an archive states and nothing else in it shows. A verification lists it with the reason."""

from kernel_scientist.evidence.contents import Contents
from kernel_scientist.evidence.findings import Findings
from kernel_scientist.hardware import gpus
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.raw_samples import RawSamples

_CHECKED = "it comes of the check, and no kernel is executed here"
_WRITTEN = "the evaluator wrote it down, and nothing in the archive follows from it"
NEVER = {
    "the verdict": "no kernel is executed here: `kernel-scientist evaluate` checks its source on the problem again",
    "the clock readings": "an archive cannot show which machine made them: `kernel-scientist validate` times it again",
    "the secret inputs": "seeds of checked and timed calls come from the operating system and are not kept",
    "machine, versions and load": "they are what the evaluator wrote down; they were only compared with each other",
    "campaign, MLflow run and date": "they are of a store that is not in the archive",
}
"""What no archive can show."""
EVALUATED = {
    "reason": ("the reason of the verdict", _CHECKED),
    "coverage": ("how much was checked", _CHECKED),
    "evidence": ("the evidence of verdict and labels", _CHECKED),
    "skipped": ("that it was not executed", "the predictions that decided it are not in the archive"),
    "sandbox": ("the layers of the sandbox", _WRITTEN),
    "seconds": ("the seconds of each step", _WRITTEN),
    "compile": ("the compile report", "nothing is compiled here"),
    "predictions": ("the predicted times", "they follow from counts of executed code, which are not in the archive"),
    "counters": ("the hardware counters", "only the GPU has them"),
}
"""Fields of an evaluation from which no other statement follows, each with its name and the reason."""


def note(contents: Contents, findings: Findings) -> None:
    """List what is stated in an archive and was not checked."""
    for what, why in NEVER.items():
        findings.open(what, why)
    if contents.evaluation is not None:
        _evaluation(contents.evaluation, contents.samples, findings)
    if contents.confirmation is not None:
        _evaluation(contents.confirmation.evaluation, contents.confirmation.evaluation.samples, findings)
    _timings(contents, findings)
    _lineage(contents, findings)
    if contents.confirmation is not None:
        findings.open("what the confirmation compares with", "the search chose the source that was to be beaten")
        findings.open("settings of the confirmation", "they may be others than the campaign's")
        if contents.confirmation.bars:
            findings.open("verdicts of others' kernels beside the champion", "their sources are not in the archive")


def _evaluation(stated: Evaluation, samples: RawSamples | None, findings: Findings) -> None:
    from kernel_scientist.evaluation.timing import raw

    for name, (what, why) in EVALUATED.items():
        if getattr(stated, name):
            findings.open(what, why)
    if not all(samples and raw.is_timed(label) for label in stated.labels):
        findings.open("labels of the screen and of the check", "only those that the clock readings show were compared")


def _timings(contents: Contents, findings: Findings) -> None:
    if contents.timings:
        findings.open("margins", "they are `harness.margin` or the machine's noise, which is not in the archive")
    for _, samples in contents.timings:
        if samples.dropped_after:
            findings.open("after how many blocks the kernel was dropped", _WRITTEN)
        if samples.bound is not None and samples.bound.name.lower() not in gpus.GPUS:
            findings.open(f"the rates of {samples.bound.name}", "it is in no table: floors are computed from its rates")


def _lineage(contents: Contents, findings: Findings) -> None:
    kernels = contents.lineage.kernels if contents.lineage else ()
    if any(one.experiment for one in kernels):
        findings.open("experiments and their predicted gains", "they are what was planned before the evaluation")
    if any(one.origin for one in kernels[:-1]):
        findings.open("which campaign made a kernel of the lineage", "that campaign is not in the archive")
    if kernels[1:]:
        findings.open("verdicts and generations of ancestors", "their evaluations are not in the archive")
