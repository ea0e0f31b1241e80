"""The artifacts of a kernel's MLflow run, written and read back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kernel_scientist.gpu.isa import assembly
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Trial
from kernel_scientist.records.gpu import Counters
from kernel_scientist.records.kernel import Attempt, Author, Experiment, Kernel, LlmCall, Origin, Try, edits
from kernel_scientist.records.names import FILE
from kernel_scientist.scientist.llm.response_cache import Reply
from kernel_scientist.tracking.run_content import KERNEL

SOURCE, EVALUATION, EXPERIMENT = "source/kernel.py", "evaluation.json", "experiment.json"
SAMPLES, DIFF, TRANSCRIPT = "samples.json", "base.diff", "agent.txt"
LISTS: dict[str, tuple[str, TypeAdapter[Any]]] = {
    "llm_calls": ("llm_calls.json", TypeAdapter(tuple[LlmCall, ...])),
    "attempts": ("attempts.json", TypeAdapter(tuple[Attempt, ...])),
    "tries": ("tuning.json", TypeAdapter(tuple[Try, ...])),
    "origin": ("origin.json", TypeAdapter(Origin)),
    "authors": ("authors.json", TypeAdapter(dict[str, Author])),
}
"""Records of a kernel that many lack, by field: the artifact's name and type."""
TAGS = ("language", "base", "reference", "generation", "report", "tuned_from")
"""Fields of a kernel that are tags of its run."""
COUNTERS = TypeAdapter(tuple[Counters, ...])


def write(folder: Path, trial: Trial, population: Population, replies: Sequence[Reply] = ()) -> None:
    """Write the artifacts: those that `read` needs, and prompts, logs, assembly and diff for human readers."""
    kernel, evaluation = trial.kernel, trial.evaluation
    (folder / SOURCE).parent.mkdir()
    (folder / SOURCE).write_text(kernel.source)
    (folder / EVALUATION).write_text(evaluation.model_dump_json(indent=1, exclude={"samples"}))
    if evaluation.samples:
        (folder / SAMPLES).write_text(evaluation.samples.model_dump_json())
    if kernel.experiment:
        (folder / EXPERIMENT).write_text(kernel.experiment.model_dump_json(indent=1))
    for field, (name, adapter) in LISTS.items():
        if values := getattr(kernel, field):
            (folder / name).write_bytes(adapter.dump_json(values, indent=1))
    if kernel.transcript:
        (folder / TRANSCRIPT).write_text(kernel.transcript)
    for number, reply in enumerate(replies, start=1):
        (folder / "exchanges").mkdir(exist_ok=True)
        (folder / "exchanges" / f"{number:02d}-{reply.role}.md").write_text(_exchange(reply))
    if evaluation.counters:
        (folder / "counters.json").write_bytes(COUNTERS.dump_json(evaluation.counters, indent=1))
    if evaluation.compile:
        _write_code(folder, evaluation.compile)
    if kernel.base is not None:
        before = population.get(kernel.base).kernel.source
        (folder / DIFF).write_text(edits(before, kernel.source, kernel.base, kernel.name))


def _write_code(folder: Path, report: CompileReport) -> None:
    if report.log:
        (folder / "compiler.txt").write_text(report.log)
    for code in report.objects:
        if text := assembly.get(code.digest):
            (folder / "assembly").mkdir(exist_ok=True)
            (folder / "assembly" / f"{FILE.encode(code.kernel)}-{code.digest[:8]}.s").write_text(text)


def _exchange(reply: Reply) -> str:
    messages = "\n\n".join(f"<!-- {m.role} -->\n\n{m.content}" for m in reply.request.messages)
    facts = f"{reply.request.model}, {reply.output_tokens} tokens, {reply.usd:.6f} USD, {reply.seconds:.1f} s"
    return f"{messages}\n\n<!-- reply: {facts} -->\n\n{reply.text}\n"


def read(folder: Path, tags: dict[str, str]) -> Trial:
    """Return the trial from a run's tags and artifacts.

    Raises OSError or ValidationError when something is missing or invalid.
    """
    fields: dict[str, Any] = {name: tags[name] for name in TAGS if name in tags}
    fields |= {"name": tags[KERNEL], "source": (folder / SOURCE).read_bytes().decode()}
    if (folder / EXPERIMENT).exists():
        fields["experiment"] = Experiment.model_validate_json((folder / EXPERIMENT).read_text())
    if (folder / TRANSCRIPT).exists():
        fields["transcript"] = (folder / TRANSCRIPT).read_text()
    for field, (name, adapter) in LISTS.items():
        if (path := folder / name).exists():
            fields[field] = adapter.validate_json(path.read_text())
    evaluation = Evaluation.model_validate_json((folder / EVALUATION).read_text())
    return Trial(kernel=Kernel.model_validate(fields), evaluation=evaluation)
