"""Renders example prompts of every role into docs/prompts, a folder per example (`make prompts`).

    python -m docs.write_prompts [--again]

Kernels for the MI300X are evaluated on its model target, and their evaluations kept in docs/prompts/evaluations: a
kernel that was not evaluated before is evaluated first; with `--again` all are.
"""

import contextlib
import sys
import threading
from collections.abc import Sequence
from typing import TypeVar

from docs import cpu_examples, mi300x_examples
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import environment
from kernel_scientist.records.errors import ModelError
from kernel_scientist.records.kernel import LlmCall
from kernel_scientist.records.params import Budget, Coding, Llm
from kernel_scientist.scientist.llm.agent import LlmAgent
from kernel_scientist.scientist.llm.client import CallSpec, LlmClient, Parser
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.response_cache import ResponseCache
from kernel_scientist.scientist.llm.toolbox import Toolbox
from kernel_scientist.scientist.prompts import Prompt
from kernel_scientist.scientist.proposals import (
    DesignInProgress,
    Draft,
    ExperimentTask,
    InFlight,
    Lesson,
    Lessons,
    Selection,
)
from kernel_scientist.scientist.roles import FOCUSES, Assignment, Step

T = TypeVar("T")
FOLDER = environment.root() / "docs" / "prompts"
NOTE = "<!-- Rendered by `make prompts`. {} -->"
MADE_UP = "The machine, its rates, all times, shares and the failure are made up."
EVALUATED = "The kernels were evaluated on the model target; their plans and reports are made up."
EXAMPLES = {
    "fp8-cpu": (cpu_examples.fp8, cpu_examples.fp8_drafts),
    "fp8-mi300x": (mi300x_examples.triton, mi300x_examples.triton_drafts),
    "hip-mi300x": (mi300x_examples.hip, mi300x_examples.hip_drafts),
    "kernelbench-cpu": (cpu_examples.kernelbench, cpu_examples.kernelbench_drafts),
}
"""Assignment and population, and two drafts of the experiment that failed: a wrong one and a right one."""
FINDINGS = {
    "fp8-cpu": "Six rows per register tile instead of four gained in all cases, +7.4 % in the mean.",
    "fp8-mi300x": "Tiles of 128 x 128 instead of 64 x 64: 27 % faster in the mean (predicted), as L2 limits no case "
    "now; at m 1024 those with n 512, 576 or 1536 and k 7168 have too few tiles and became slower.",
    "hip-mi300x": "Eight columns per workgroup instead of four: 1.8 % faster in the mean (predicted), slower at m 1024 "
    "with n 512 and n 1536, where fewer workgroups are divided less evenly.",
}
"""A campaign's finding by example; that of the KernelBench file has none yet."""
UNDER_WAY = {
    "fp8-cpu": "register tile of 14 x 32 in AVX-512",
    "fp8-mi300x": "split along k where tiles are few",
    "hip-mi300x": "matrix instructions on tiles in LDS",
    "kernelbench-cpu": "linear layer in C++, the rest by torch",
}
"""What another writer does meanwhile, by example."""
PACKED = "both operands packed beforehand"


class PromptRecorder(LlmClient):
    """A client that records prompts and calls no model."""

    def __init__(self) -> None:
        cache = ResponseCache(environment.cache_folder() / "prompts")
        llm = Llm(judge=Coding(model="none"))
        super().__init__(llm, cache, LlmBudget(Budget()), "prompts", threading.Event())
        self.prompts: dict[str, Prompt] = {}

    def ask(
        self, spec: CallSpec, prompt: Prompt, parse: Parser[T], tools: Toolbox | None = None
    ) -> tuple[T, tuple[LlmCall, ...]]:
        """Record the prompt and raise ModelError."""
        self.prompts[spec.role] = prompt
        raise ModelError("no model is called")


def rendered(name: str) -> dict[str, str]:
    """Return an example's prompt per role."""
    example, drafts = EXAMPLES[name]
    assignment, population = example()
    note = NOTE.format(MADE_UP if assignment.target == "cpu" else EVALUATED)
    texts = prompts(assignment, population, drafts(), FINDINGS.get(name, ""), UNDER_WAY[name])
    return {role: f"{note}\n{text}" for role, text in texts.items()}


def prompts(
    assignment: Assignment,
    population: Population,
    drafts: Sequence[str] = (),
    finding: str = "",
    under_way: str = PACKED,
) -> dict[str, str]:
    """Return every role's prompt for a population whose last kernel failed, on that kernel's base and reference.

    drafts: sources of which the judge chooses, by default the base with a comment and the kernel; finding: the only one
    of the campaign; under_way: the title of another writer's experiment.
    """
    recorder = PromptRecorder()
    agent = LlmAgent(assignment, recorder)
    *others, failed = population
    kernel = failed.kernel
    assert kernel.experiment is not None and kernel.base is not None
    earlier, base = Population(tuple(others)), kernel.base
    reference = kernel.reference or population.get(base).kernel.base or base
    others_work = (InFlight(f"k{len(population) + 1:05d}", base, under_way, "writing"),)
    step = Step.of(0, "prompts", 2, others_work, (DesignInProgress(3, base, FOCUSES[1]),), FOCUSES[0])
    selection = Selection(
        base=base,
        reference=reference,
        rationale=f"{base} is the fastest kernel; its parent shows its gain.",
    )
    task = ExperimentTask(
        name=kernel.name, base=base, reference=reference, experiment=kernel.experiment, in_flight=others_work
    )
    found = (Lesson(name="f001", text=finding, kernels=(base,), date="2026-01-01"),) if finding else ()
    lessons = Lessons(findings=found)
    sources = drafts or (f"{earlier.get(base).kernel.source}# done\n", kernel.source)
    sent = [Draft(source=source, report="Implemented as planned.") for source in sources]
    for call in (
        lambda: agent.select(population, lessons, step),
        lambda: agent.design(population, selection, lessons, step),
        lambda: agent.write(earlier, task, lessons),
        lambda: agent.repair(earlier, task, failed, lessons),
        lambda: agent.summarise(population, lessons, step),
        lambda: agent.judge(earlier, task, sent),
    ):
        with contextlib.suppress(ModelError):
            call()
    return {role: _markdown(prompt) for role, prompt in recorder.prompts.items()}


def _markdown(prompt: Prompt) -> str:
    return "\n".join(f"\n<!-- {m.role} -->\n\n{m.content.strip()}\n" for m in prompt.messages)


def main(arguments: Sequence[str]) -> None:
    """Write the examples."""
    mi300x_examples.evaluate(again="--again" in arguments)
    for name in EXAMPLES:
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
        for role, markdown in rendered(name).items():
            (FOLDER / name / f"{role}.md").write_text(markdown)


if __name__ == "__main__":
    main(sys.argv[1:])
