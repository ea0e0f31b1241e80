"""What a population knows of a kernel without reading its whole record, and the score that ranks kernels."""

from typing import NamedTuple

from kernel_scientist.compile.fingerprint import fingerprint
from kernel_scientist.records.evaluation import Evaluation, Trial, geomean
from kernel_scientist.records.kernel import REFERENCE, Author, Verdict


class Entry(NamedTuple):
    """One kernel in the index of a population: small, so that a hundred thousand fit into memory."""

    name: str
    base: str | None
    generation: int
    title: str
    """Title of the experiment; empty for a seed."""
    verdict: Verdict
    score: float
    time_us: float | None
    """Geometric mean of the measured times; None without a time."""
    by_model: bool
    timed_first: bool
    """Whether the kernel was timed against the reference only: there was no incumbent yet."""
    beaten: tuple[str, ...]
    """Kernels that it was timed against and found faster than."""
    skipped: bool
    tuned_from: str | None
    tuning_s: float
    """Time that its tuning took, in seconds."""
    digest: str
    fingerprint: str
    writer: str
    """Model of the writer; `playbook` for the rule-based agent and for seeds."""
    usd: float
    """Cost of its model calls."""
    cell: tuple[str, ...]
    """Cell of the archive of strategy `islands`; see `cell`."""
    root: str
    """The seed, or the standing champion, that it descends from."""
    is_seed: bool
    """Whether people wrote it."""

    @staticmethod
    def of(trial: Trial, root: str | None = None) -> "Entry":
        """Return the entry of a kernel. `root`: the root of its base; None: the kernel itself."""
        kernel, evaluation = trial.kernel, trial.evaluation
        ok = evaluation.verdict is Verdict.OK
        return Entry(
            name=kernel.name,
            base=kernel.base,
            generation=kernel.generation,
            title=kernel.experiment.title if kernel.experiment else "",
            verdict=evaluation.verdict,
            score=score(trial),
            time_us=evaluation.geomean_us,
            by_model=evaluation.by_model,
            timed_first=len(evaluation.speedups) == 1,
            beaten=tuple(s.against for s in evaluation.speedups if ok and s.faster and s.against != REFERENCE),
            skipped=evaluation.skipped,
            tuned_from=kernel.tuned_from,
            tuning_s=sum(t.seconds for t in kernel.tries),
            digest=kernel.digest,
            fingerprint=fingerprint(kernel.source),
            writer=kernel.authors.get("writer", Author.of(())).model,
            usd=sum(call.usd for call in kernel.llm_calls),
            cell=cell(evaluation),
            root=root or kernel.name,
            is_seed=kernel.is_seed,
        )

    @property
    def is_experiment(self) -> bool:
        """Whether it carries out a designed experiment: neither a seed nor a tuned kernel."""
        return bool(self.title) and self.tuned_from is None


def order(name: str) -> tuple[int, str]:
    """Return the key that sorts kernel names by their number, also beyond k99999."""
    return len(name), name


def score(trial: Trial) -> float:
    """Return the number that ranks kernels: the speedup over the reference in the kernel's own run, 0 without a time.

    The ratio is used because times of different runs are not comparable: clocks and load change. On a model target
    the score is the predicted share of the roofline's speed.
    """
    evaluation = trial.evaluation
    if evaluation.verdict is not Verdict.OK or evaluation.skipped:
        return 0.0
    if evaluation.by_model:
        return roofline_fraction(evaluation) or 0.0
    speedup = evaluation.speedup_over(REFERENCE)
    return speedup.ratio if speedup else 0.0


def roofline_fraction(evaluation: Evaluation) -> float | None:
    """Return the predicted share of the roofline's speed (geometric mean over the cases); None without predictions."""
    fractions = [p.floor_us / p.time_us for p in evaluation.predictions if p.floor_us]
    return geomean(fractions) if fractions else None


def beats(trial: Trial, other: str) -> bool:
    """Whether a kernel was timed against `other` and the test found it faster."""
    speedup = trial.evaluation.speedup_over(other)
    return trial.evaluation.verdict is Verdict.OK and speedup is not None and speedup.faster


def cell(evaluation: Evaluation) -> tuple[str, ...]:
    """Return a kernel's cell, computed from its code: widest vectors, kind of arithmetic, size as a power of two."""
    report = evaluation.compile
    counts = report.instructions if report else {}
    widest = next((kind for kind in ("zmm", "ymm", "xmm") if counts.get(kind)), "scalar")
    size = (report.code_bytes or 0).bit_length() if report else 0
    return widest, "dot" if counts.get("dot") else "fma" if counts.get("fma") else "plain", f"2^{size} bytes"
