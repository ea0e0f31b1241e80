"""What a kernel is judged with, open for the time of a flow."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from kernel_scientist import HARNESS_VERSION, environment, preflight
from kernel_scientist.harness import admission
from kernel_scientist.harness.verifier import Verifier
from kernel_scientist.harness.workshop import Workshop
from kernel_scientist.languages import gxx
from kernel_scientist.params import Params
from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records import Kernel, digest
from kernel_scientist.scientist import knowledge
from kernel_scientist.scientist.mind import Assignment, Facts
from kernel_scientist.targets import Target


@dataclass(frozen=True)
class Laboratory:
    """What a kernel is judged with: problem, target, verifier."""

    params: Params
    problem: Problem
    target: Target
    verifier: Verifier

    def assignment(self) -> Assignment:
        """Return what a mind works on here."""
        settings = self.params.knowledge
        return Assignment(
            problem=self.problem,
            profile=self.problem.profile(self.params.profile),
            language=self.params.language,
            target=self.target.name,
            facts=Facts.here(),
            knowledge=knowledge.load([environment.root() / path for path in settings.paths]),
            knowledge_tokens=settings.tokens,
            most_findings=settings.findings,
        )


@contextmanager
def laboratory(params: Params) -> Generator[Laboratory]:
    """Open the judge for the parameters' problem and target; end its workers on the way out.

    Raises SetupError for an unknown problem, profile or target, a missing compiler, or a problem unfit to judge by.
    """
    problem, target = preflight.resolve(params)
    preload = ("triton",) if params.language == "triton" else ()
    with Workshop(params.harness, target.device, preload) as workshop:
        admission.require(problem, params.profile)
        verifier = Verifier(problem, params.profile, params.harness, workshop)
        yield Laboratory(params, problem, target, verifier)


def cache_key(lab: Laboratory, kernel: Kernel, step: str) -> str:
    """Return what a step's result depends on: problem, kernel, toolchain, device, harness."""
    parts = (step, lab.problem.digest, lab.params.profile, kernel.digest, kernel.language, lab.target.name)
    machine = (gxx.processor(), gxx.version() if kernel.language == "cpp" else "", HARNESS_VERSION)
    settings = (lab.params.harness.model_dump_json(), str(environment.cache_folder()))
    return f"{step}-{digest(chr(0).join((*parts, *machine, *settings)))}"
