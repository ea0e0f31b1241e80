"""One prompt of each role as a model would get it, written to docs/prompts by `make prompts`.

Problem, seeds and digests are the laboratory's own; machine, kernels' times and failures are an example's, made up.
"""

import contextlib
import sys
import threading
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from kernel_scientist import problems
from kernel_scientist.compile.source import KernelSource
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import ModelError
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Speedup, Timing, Trial
from kernel_scientist.records.kernel import REFERENCE, Ask, Experiment, Kernel, Verdict
from kernel_scientist.records.params import Budget, Knowledge, Llm, Role
from kernel_scientist.scientist.context import knowledge
from kernel_scientist.scientist.llm.budget import Ledger
from kernel_scientist.scientist.llm.client import Channel, Read
from kernel_scientist.scientist.llm.mind import LanguageModel
from kernel_scientist.scientist.llm.reply_store import Archive
from kernel_scientist.scientist.prompts import Prompt
from kernel_scientist.scientist.roles import Assignment, Commission, Draft, Facts, Lessons, Selection, Turn
from kernel_scientist.scientist.showcase import counted, gpu

T = TypeVar("T")
PROBLEM = "fp8-blockwise-gemm"
NOTE = "<!-- Rendered by kernel_scientist.scientist.showcase; times, failures and machine are made up. -->"
FACTS = Facts(
    caches={"L1": 48 << 10, "L2": 1 << 20, "L3": 32 << 20},
    features=frozenset({"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16"}),
    vector_bytes=64,
    cores=2,
    model="an x86-64 server processor with AVX-512",
)
PEAKS = Machine("example", 600, {"fp32": 704, "bf16": 1408, "fp8": 1408}, "example")


class _Listener(Channel):
    """A channel that only hears what is asked."""

    def __init__(self) -> None:
        folder = environment.cache_folder() / "showcase"
        super().__init__(
            Llm(judge=Role(model="nobody")), Archive(folder), Ledger(Budget()), "showcase", threading.Event()
        )
        self.heard: dict[str, Prompt] = {}

    def ask(
        self,
        role: str,
        place: str,
        prompt: Prompt,
        read_as: Read[T],
        *,
        form: type[BaseModel] | None = None,
        sample: int = 0,
        prefer: str = "",
    ) -> tuple[T, tuple[Ask, ...]]:
        """Keep the prompt and answer nothing."""
        self.heard[role] = prompt
        raise ModelError("nobody is asked")


def rendered() -> dict[str, str]:
    """Return each role's example as text, by role."""
    problem, listener = problems.find(PROBLEM), _Listener()
    settings = Knowledge()
    mind = LanguageModel(
        Assignment(
            problem=problem,
            profile=problem.profile("cpu"),
            language="cpp",
            target="cpu",
            facts=FACTS,
            peaks=PEAKS,
            knowledge=knowledge.load([environment.root() / path for path in settings.paths]),
            knowledge_tokens=settings.tokens,
            most_findings=settings.findings,
        ),
        listener,
    )
    population = _population(problem)
    finding = (
        "Panels deeper than half of L1 cost more than they save: KC 256 beat KC 512 twice.",
        ["k00003", "k00004"],
    )
    lessons = Lessons().changed([finding], (), ())
    lessons = Lessons(findings=tuple(f.model_copy(update={"date": "2026-01-01"}) for f in lessons.findings))
    selection = Selection(base="k00003", reference="k00002", rationale="k00003 is the quickest; k00002 is its parent.")
    failed = population.get("k00004")
    assert failed.kernel.experiment is not None
    order = Commission(name="k00004", base="k00003", reference="k00002", experiment=failed.kernel.experiment)
    without = Population(tuple(t for t in population if t.kernel.name != "k00004"))
    turn = Turn.of(0, "showcase", 2)
    for play in (
        lambda: mind.select(population, lessons, turn),
        lambda: mind.design(population, selection, lessons, turn),
        lambda: mind.write(without, order, lessons),
        lambda: mind.repair(without, order, failed, lessons),
        lambda: mind.distil(population, lessons, turn),
        lambda: mind.judge(without, order, _drafts(without)),
    ):
        with contextlib.suppress(ModelError):
            play()
    texts = {role: _text(prompt) for role, prompt in listener.heard.items()}
    return {**texts, **_on_a_model(problem, settings)}


def _on_a_model(problem: Problem, settings: Knowledge) -> dict[str, str]:
    """Return what is told besides when GPU kernels are predicted, and when they are timed and counted."""
    digests = knowledge.load([environment.root() / path for path in settings.paths])
    assignment = gpu.assignment(problem, FACTS, digests, settings.tokens, settings.findings)
    found: dict[str, str] = {}
    for where, there, plays in (
        ("mi300x", assignment, gpu.plays),
        ("rocm", counted.assignment(assignment), counted.plays),
    ):
        listener = _Listener()
        for play in plays(LanguageModel(there, listener), problem).values():
            with contextlib.suppress(ModelError):
                play()
        found |= {f"{role}-triton-{where}": _text(prompt) for role, prompt in listener.heard.items()}
    return found


def _drafts(population: Population) -> list[Draft]:
    base = KernelSource(population.get("k00003").kernel.source)
    return [
        Draft(source=base.with_tunables({"KC": kc}).text, report=f"KC is {kc}; nothing else was changed.")
        for kc in (512, 384)
    ]


def _text(prompt: Prompt) -> str:
    return "\n".join([NOTE, *(f"\n<!-- {m.role} -->\n\n{m.content.strip()}\n" for m in prompt.messages)])


def _population(problem: Any) -> Population:
    naive, blocked = (f.read_text() for f in problem.seeds("cpp"))
    deeper = Experiment(
        title="deeper panels",
        description="KC 256 halves the passes over C and a panel pair still fits half of L1.",
        rubric=("set KC to 256",),
        uplift=(5, 15),
        innovation=25,
    )
    decode = Experiment(
        title="decode fp8 in registers",
        description="Decoding 16 values by shifts saves the table's gathers: 2 loads fewer per element.",
        rubric=("replace the table look-up in the packing loop by shifts", "keep the scalar tail"),
        uplift=(10, 40),
        innovation=70,
    )
    quicker = KernelSource(blocked).with_tunables({"KC": 256}).text
    broken = quicker.replace("#include <cstdint>", "#include <cstdint>\n#include <hip_fp8.h>", 1)
    log = "kernel.cpp:3:10: fatal error: hip_fp8.h: No such file or directory"
    refused = Evaluation(
        verdict=Verdict.COMPILE_ERROR,
        reason="the C++ compiler refuses it",
        compile=CompileReport(ok=False, compiler="g++", log=log),
    )
    lost = Kernel(
        name="k00004",
        language="cpp",
        source=broken,
        base="k00003",
        reference="k00002",
        experiment=decode,
        generation=2,
    )
    return Population(
        (
            Trial(kernel=Kernel(name="k00001", language="cpp", source=naive), evaluation=_timed(problem, 0.12)),
            Trial(
                kernel=Kernel(name="k00002", language="cpp", source=blocked), evaluation=_timed(problem, 3.9, "k00001")
            ),
            Trial(
                kernel=Kernel(
                    name="k00003",
                    language="cpp",
                    source=quicker,
                    base="k00002",
                    reference="k00001",
                    experiment=deeper,
                    generation=1,
                    report="KC is 256; nothing else was changed.",
                ),
                evaluation=_timed(problem, 4.3, "k00002"),
            ),
            Trial(kernel=lost, evaluation=refused),
        )
    )


def _timed(problem: Any, ratio: float, beaten: str = "") -> Evaluation:
    work = {case.name: problem.work(case) for case in problem.profile("cpu").benchmarks}
    timings = [
        Timing(case=case, time_us=w.flops / 2e4 / ratio, interval_us=(w.flops / 2e4 / ratio,) * 2)
        for case, w in work.items()
    ]
    speedups = [Speedup(against=REFERENCE, ratio=ratio, interval=(ratio * 0.97, ratio * 1.03))]
    speedups += [Speedup(against=beaten, ratio=1.1, interval=(1.05, 1.15))] if beaten else []
    return Evaluation(verdict=Verdict.OK, timings=tuple(timings), speedups=tuple(speedups))


def main(folder: Path) -> None:
    """Write the examples."""
    folder.mkdir(parents=True, exist_ok=True)
    for role, text in rendered().items():
        (folder / f"{role}.md").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else environment.root() / "docs" / "prompts")
