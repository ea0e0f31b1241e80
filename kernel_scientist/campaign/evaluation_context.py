"""The evaluation context: problem, target and steps, open for the duration of a flow."""

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from kernel_scientist.campaign import agent_command, preflight
from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.build_timing_lock import BuildTimingLock
from kernel_scientist.campaign.steps import FUNCTIONS, Steps
from kernel_scientist.campaign.target import Measured
from kernel_scientist.campaign.targets import factory
from kernel_scientist.campaign.transport import Connect
from kernel_scientist.compilers import gxx
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import Machine
from kernel_scientist.problems import published
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.approval import Approval
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, digest
from kernel_scientist.records.params import Params
from kernel_scientist.scientist import knowledge, symptoms
from kernel_scientist.scientist.roles import Agent, Assignment

if TYPE_CHECKING:
    from kernel_scientist.scientist.llm.client import LlmClient
    from kernel_scientist.scientist.llm.workbench import Workshop


@dataclass(frozen=True)
class EvaluationContext(Bench):
    """A bench, and the steps by which kernels are evaluated on it: the procedure of a confirmation."""

    steps: Steps = FUNCTIONS
    mcp: str = ""
    """Address of the MCP server that an agent's command gets; empty: there is none."""

    def compile(self, kernel: Kernel, cases: tuple[Case, ...]) -> Evaluation:
        """Compile a kernel, and check it on these cases."""
        return self.steps.compile(self, kernel, cases)

    def time(self, kernel: Kernel, measure: Callable[[], Measured], title: str, noise: bool = True) -> Measured:
        """Return what `measure` returns while the device is held (see `Steps.time`)."""
        return self.steps.time(self, kernel, measure, title, noise=noise)

    def approve(self, question: str) -> Approval:
        """Ask a person, if one is to be asked."""
        return self.steps.approve(self, question)

    def agent(self, client: "LlmClient", workshop: "Workshop") -> Agent:
        """Return the agent of a campaign. `workshop`: for roles with tools. Raises SetupError as `ensemble.require`."""
        # what models need is not installed where a single kernel is evaluated
        from kernel_scientist.scientist import ensemble
        from kernel_scientist.scientist.command.agent import CommandAgent
        from kernel_scientist.scientist.context.hidden_cases import HiddenCases
        from kernel_scientist.scientist.hiding import HidingAgent
        from kernel_scientist.scientist.llm.agent import LlmAgent

        llm, assignment, by_command = self.params.llm, self.assignment(), bool(self.params.search.agent)
        hidden = HiddenCases(self.target.profile) if self.params.search.hide_shapes else None
        others = ensemble.create(llm, assignment, client, workshop, by_command, hidden)
        if not by_command:
            return others
        command = agent_command.of(self.params, self.problem)
        if hidden is None:
            return CommandAgent(command, LlmAgent(assignment, client), others, self.mcp, self.stopped)
        scribe = LlmAgent(hidden.assignment(assignment), client.showing(hidden.text))
        return HidingAgent(CommandAgent(command, scribe, others, self.mcp, self.stopped), hidden)

    def assignment(self) -> Assignment:
        """Return the agents' assignment."""
        settings, machine = self.params.knowledge, self.target.machine
        paths = [environment.root() / path for path in settings.paths]
        gpu = machine if isinstance(machine, Gpu) else None
        return Assignment(
            problem=self.problem,
            profile=self.target.profile,
            language=self.params.language,
            target=self.address.name,
            cpu=self.target.cpu,
            peaks=machine or Machine(f"a GPU of target {self.address.name}", math.inf, {"fp32": math.inf}),
            gpu=gpu,
            by_model=self.by_model,
            knowledge=(documents := knowledge.load(paths)),
            knowledge_tokens=settings.tokens,
            symptoms=symptoms.load(paths, documents),
            most_findings=settings.findings,
            confidence=self.params.harness.confidence,
            published=published.best(published.on(self.problem.published, gpu.name)) if gpu else {},
            compiler=self.target.compiler,
            operators=self.target.operators,
        )


@contextmanager
def evaluation_context(
    params: Params, steps: Steps = FUNCTIONS, connect: Connect | None = None
) -> Generator[EvaluationContext]:
    """Open the target of the parameters for their problem; end its work on exit.

    `connect`: returns the transport to a pool; without it there are no pools. Raises SetupError for an unknown problem,
    profile, target or pool, a missing compiler, or a problem that is not admitted.
    """
    problem, address = preflight.resolve(params)
    with factory.opened(params, problem, address, connect) as target:
        yield EvaluationContext(params, target.problem, target, BuildTimingLock(address.builds_disturb), steps=steps)


def cache_key(bench: Bench, kernel: Kernel, step: str) -> str:
    """Return the cache key of a step: problem, kernel, toolchain, device, evaluator's sources and settings."""
    return f"{step}-{fingerprint(bench.params, bench.problem, bench.address, kernel, step)}"


def fingerprint(params: Params, problem: Problem, address: Address, kernel: Kernel, step: str) -> str:
    """Return a digest of all that the result of a step on a kernel depends on."""
    parts = (step, problem.digest, params.profile, kernel.digest, kernel.language, address.name)
    machine = (gxx.processor(), factory.toolchain(kernel.language, address), environment.evaluator_digest())
    machine += (metadata.version("torch"), metadata.version("triton"))
    settings = (params.harness.model_dump_json(), str(environment.cache_folder()))
    return digest(chr(0).join((*parts, *machine, *settings)))
