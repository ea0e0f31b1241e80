"""What a kernel's run says in the MLflow UI: tags, params, metrics, artifacts."""

import difflib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kernel_scientist.compile.source import KernelSource, SourceError
from kernel_scientist.gpu.isa import assembly_store
from kernel_scientist.population.lineage import Population, roofline_fraction, score
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.profile import metrics as figures
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Trial, geomean
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import REFERENCE, Ask, Attempt, Author, Experiment, Kernel, Try, Verdict
from kernel_scientist.scientist.llm.reply_store import Reply

KIND, CAMPAIGN, KERNEL = "kind", "campaign", "kernel"
PARENT = "mlflow.parentRunId"
SOURCE, EVALUATION, EXPERIMENT, ASKS, ATTEMPTS = (
    "source/kernel.py",
    "evaluation.json",
    "experiment.json",
    "asks.json",
    "attempts.json",
)
TRIES, AUTHORS, COUNTERS = "tuning.json", "authors.json", "counters.json"
_ASKS, _ATTEMPTS = TypeAdapter(tuple[Ask, ...]), TypeAdapter(tuple[Attempt, ...])
_COUNTERS = TypeAdapter(tuple[Counters, ...])
_TRIES, _AUTHORS = TypeAdapter(tuple[Try, ...]), TypeAdapter(dict[str, Author])
TEXT = 5000
"""Characters of prose in a tag; MLflow cuts at 8000 without a word."""


def spending(replies: Sequence[Reply]) -> dict[str, float]:
    """Return what replies cost, in all, per role and per model: USD, tokens, calls; and how many came to nothing.

    `llm.broken_off`: calls that ended in the midst of a reply. `llm.unreadable_rate`: share of whole replies that could
    not be read.
    """
    metrics: dict[str, float] = {"llm.broken_off": sum(bool(r.failure) for r in replies)}
    of: dict[str, list[Reply]] = {"": list(replies)}
    for reply in replies:
        for suffix in (f".{reply.role}", f".{reply.question.model}", f".{reply.role}.{reply.question.model}"):
            of.setdefault(suffix, []).append(reply)
    for suffix, some in of.items():
        whole = [r for r in some if not r.failure]
        metrics[f"llm.usd{suffix}"] = sum(r.usd for r in some)
        metrics[f"llm.tokens{suffix}"] = sum(r.input_tokens + r.output_tokens for r in some)
        metrics[f"llm.calls{suffix}"] = len(some)
        metrics[f"llm.unreadable_rate{suffix}"] = sum(bool(r.fault) for r in whole) / len(whole) if whole else 0.0
    return {re.sub(r"[^\w./ -]", "_", key): value for key, value in metrics.items()}


def tags(parent_id: str, campaign: str, trial: Trial) -> dict[str, str]:
    """Return the tags of a kernel's run: lineage, verdict, report."""
    kernel, evaluation = trial.kernel, trial.evaluation
    title = kernel.experiment.title if kernel.experiment else "seed"
    found = {
        KIND: "kernel",
        CAMPAIGN: campaign,
        PARENT: parent_id,
        KERNEL: kernel.name,
        "mlflow.runName": f"{kernel.name} {title}"[:200],
        "language": kernel.language,
        "verdict": evaluation.verdict.value,
        "scored_by": "nothing" if not score(trial) else "model" if evaluation.by_model else "clock",
        "reason": evaluation.reason,
        "generation": str(kernel.generation),
        "digest": kernel.digest,
        "report": kernel.report,
        "sandbox": " ".join(evaluation.sandbox),
    }
    found |= {"coverage": evaluation.coverage} if evaluation.coverage else {}
    lineage = {"base": kernel.base, "reference": kernel.reference, "tuned_from": kernel.tuned_from}
    note = kernel.experiment.description if kernel.experiment else ""
    found |= {k: v for k, v in lineage.items() if v} | ({"mlflow.note.content": note} if note else {})
    return {k: v[:TEXT] for k, v in found.items()}


def params(trial: Trial, problem: Problem) -> dict[str, str]:
    """Return the params of a kernel's run: what it is and what was predicted of it."""
    kernel = trial.kernel
    found: dict[str, Any] = {"problem": problem.name, "target": problem.device, "language": kernel.language}
    found |= {"base": kernel.base or "-", "reference": kernel.reference or "-", "generation": kernel.generation}
    if kernel.experiment:
        low, high = kernel.experiment.uplift
        found |= {"experiment": kernel.experiment.title.split(":")[0], "innovation": kernel.experiment.innovation}
        found |= {"predicted_uplift_min": low, "predicted_uplift_max": high}
    else:
        found["experiment"] = "seed"
    found |= {f"author.{role}": author.model for role, author in kernel.authors.items()}
    found |= {f"prompt.{role}": author.prompt[:12] for role, author in kernel.authors.items() if author.prompt}
    try:
        found |= {f"tunable.{k}": v for k, v in KernelSource(kernel.source).tunables.items()}
    except SourceError:
        pass  # a file that is not Python has no tunables to show
    return {k: str(v) for k, v in found.items()}


def metrics(trial: Trial, population: Population) -> dict[str, float]:
    """Return the metrics of a kernel's run: what was measured and what it cost."""
    evaluation = trial.evaluation
    found = {f"{step}_s": s for step, s in evaluation.seconds.items()}
    if evaluation.compile:
        found["compiler_s"] = evaluation.compile.seconds
        found |= {f"asm.{k}": v for k, v in evaluation.compile.instructions.items()}
        found |= {"code_bytes": evaluation.compile.code_bytes} if evaluation.compile.code_bytes else {}
        found |= _resources(evaluation.compile)
    asks = trial.kernel.asks
    if asks:
        found |= {"llm.usd": sum(a.usd for a in asks), "llm.calls": len(asks)}
        found |= {"llm.tokens": sum(a.input_tokens + a.output_tokens for a in asks)}
        found |= {"llm.unreadable": sum(bool(a.fault) for a in asks), "repairs": len(trial.kernel.attempts)}
    found |= predicted(trial, population) | counted(evaluation)
    if evaluation.verdict is not Verdict.OK or not evaluation.timings:
        return found
    found["geomean_us"] = evaluation.geomean_us or math.nan
    found |= {f"time_us.{t.case}": t.time_us for t in evaluation.timings}
    floors = [t.floor_us / t.time_us for t in evaluation.timings if t.floor_us]
    found |= {"roofline_fraction": geomean(floors)} if floors else {}
    speedup = evaluation.speedup_over(REFERENCE)
    if speedup:
        found |= {"speedup": speedup.ratio, "log2_speedup": math.log2(speedup.ratio)}
        found |= {"speedup_low": speedup.interval[0], "speedup_high": speedup.interval[1]} if speedup.resolved else {}
        found |= {"speedup_seen_low": speedup.seen[0]} if speedup.seen and speedup.resolved else {}
    uplift = population.add(trial).uplift(trial)
    return found if uplift is None else {**found, "measured_uplift": uplift}


def predicted(trial: Trial, population: Population) -> dict[str, float]:
    """Return what a machine model says of a kernel, under names of its own: never mixed with what was measured."""
    evaluation = trial.evaluation
    if not evaluation.predictions:
        return {}
    found = {f"predicted_us.{p.case}": p.time_us for p in evaluation.predictions}
    found["predicted_geomean_us"] = evaluation.predicted_us or math.nan
    found["predicted_roofline_fraction"] = roofline_fraction(evaluation) or math.nan
    uplift = population.add(trial).uplift(trial) if evaluation.by_model else None
    return found if uplift is None else {**found, "predicted_uplift": uplift}


def counted(evaluation: Evaluation) -> dict[str, float]:
    """Return what a GPU's counters say of a kernel, all cases together."""
    total = figures.total(evaluation.counters).model_dump()
    stalls: dict[str, float] = total.pop("stalls")
    known = {f"counter.{name}": value for name, value in total.items() if value is not None}
    return known | {f"counter.stall.{reason}": value for reason, value in stalls.items()}


def _resources(report: CompileReport) -> dict[str, float]:
    """Return what the most demanding of a GPU kernel's code objects takes."""
    names = ("vgpr", "agpr", "sgpr", "spills", "scratch_bytes", "lds_bytes")
    found = {f"gpu.{name}": float(max(getattr(o, name) for o in report.objects)) for name in names if report.objects}
    return found | ({"gpu.occupancy": float(min(o.occupancy for o in report.objects))} if report.objects else {})


def write_artifacts(folder: Path, trial: Trial, population: Population, replies: Sequence[Reply] = ()) -> None:
    """Write the files of a kernel's run: all that `read` needs, and what people want to see."""
    kernel, evaluation = trial.kernel, trial.evaluation
    (folder / SOURCE).parent.mkdir()
    (folder / SOURCE).write_text(kernel.source)
    (folder / EVALUATION).write_text(evaluation.model_dump_json(indent=1))
    if kernel.experiment:
        (folder / EXPERIMENT).write_text(kernel.experiment.model_dump_json(indent=1))
    if kernel.asks:
        (folder / ASKS).write_bytes(_ASKS.dump_json(kernel.asks, indent=1))
    if kernel.attempts:
        (folder / ATTEMPTS).write_bytes(_ATTEMPTS.dump_json(kernel.attempts, indent=1))
    for number, reply in enumerate(replies, start=1):
        exchanges = folder / "exchanges"
        exchanges.mkdir(exist_ok=True)
        (exchanges / f"{number:02d}-{reply.role}.md").write_text(_exchange(reply))
    if kernel.tries:
        (folder / TRIES).write_bytes(_TRIES.dump_json(kernel.tries, indent=1))
    if kernel.authors:
        (folder / AUTHORS).write_bytes(_AUTHORS.dump_json(kernel.authors, indent=1))
    if evaluation.counters:
        (folder / COUNTERS).write_bytes(_COUNTERS.dump_json(evaluation.counters, indent=1))
    if evaluation.compile and evaluation.compile.log:
        (folder / "compiler.txt").write_text(evaluation.compile.log)
    for code in evaluation.compile.objects if evaluation.compile else ():
        if assembly := assembly_store.get(code.digest):
            (folder / "assembly").mkdir(exist_ok=True)
            (folder / "assembly" / f"{code.kernel}-{code.digest[:8]}.s").write_text(assembly)
    if kernel.base is not None:
        before = population.get(kernel.base).kernel.source.splitlines(keepends=True)
        after = kernel.source.splitlines(keepends=True)
        diff = difflib.unified_diff(before, after, kernel.base, kernel.name)
        (folder / "base.diff").write_text("".join(diff))


def _exchange(reply: Reply) -> str:
    """Return a rendered prompt and what came back, to be read by people."""
    messages = "\n\n".join(f"<!-- {m.role} -->\n\n{m.content}" for m in reply.question.messages)
    facts = f"{reply.question.model}, {reply.output_tokens} tokens, {reply.usd:.6f} USD, {reply.seconds:.1f} s"
    return f"{messages}\n\n<!-- reply: {facts} -->\n\n{reply.text}\n"


def read(folder: Path, tags: dict[str, str]) -> Trial:
    """Return the trial that a run's tags and artifacts hold. Raises OSError or ValidationError for what is missing."""
    experiment, asks, attempts, tries, authors = (folder / f for f in (EXPERIMENT, ASKS, ATTEMPTS, TRIES, AUTHORS))
    kernel = Kernel.model_validate(
        {
            "name": tags[KERNEL],
            "language": tags["language"],
            "source": (folder / SOURCE).read_text(),
            "base": tags.get("base"),
            "reference": tags.get("reference"),
            "generation": int(tags["generation"]),
            "report": tags.get("report", ""),
            "experiment": Experiment.model_validate_json(experiment.read_text()) if experiment.exists() else None,
            "asks": _ASKS.validate_json(asks.read_text()) if asks.exists() else (),
            "attempts": _ATTEMPTS.validate_json(attempts.read_text()) if attempts.exists() else (),
            "tries": _TRIES.validate_json(tries.read_text()) if tries.exists() else (),
            "authors": _AUTHORS.validate_json(authors.read_text()) if authors.exists() else {},
            "tuned_from": tags.get("tuned_from"),
        }
    )
    return Trial(kernel=kernel, evaluation=Evaluation.model_validate_json((folder / EVALUATION).read_text()))
