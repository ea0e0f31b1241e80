"""The confirmation that a campaign recorded beside its champion's file, so that the pipeline need not repeat it.

It stands for a new one only if that would be the same: kernel, what it must be faster than, what else it is timed
beside, problem, evaluator, settings and machine. A campaign confirms against its best seed, `validate` against the last
of the other seeds; they are usually the same. A seed that stays champion had nothing to beat, so it is confirmed anew
if there are others.
"""

import hashlib
import socket
from pathlib import Path

from kernel_scientist.campaign import preflight, single
from kernel_scientist.campaign.evaluation_context import fingerprint
from kernel_scientist.compilers.source import language_of, read_kernel
from kernel_scientist.hardware import cpu
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import reference_kernels
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Confirmation
from kernel_scientist.records.kernel import Kernel, Verdict, digest
from kernel_scientist.records.params import Params
from kernel_scientist.records.results import ValidationResult

FILE = "validation.json"
"""The file with the result of `validate`, whose field `key` tells of what the confirmation is."""


def key(params: Params, problem: Problem, address: Address, kernel: Kernel, baseline: str) -> str:
    """Return all that a confirmation of a kernel depends on, as a digest; empty if other hosts confirm it.

    `baseline`: the source that the kernel must be faster than; see `baseline`.
    """
    if not address.confirms_here:
        return ""
    step = f"confirm {params.validate_.model_dump_json()}"
    machine = (socket.gethostname(), cpu.model(), str(cpu.cores()))
    beside = problem.seeds(kernel.language) + reference_kernels.files(problem.name, reference_kernels.BAR)
    opponents = (f"{file.parent.name}/{file.name} {_digest(file)}" for file in beside)
    evaluated = fingerprint(params, problem, address, kernel, step)
    # this package decides what a kernel is timed beside and must beat
    parts = (evaluated, environment.sources_digest("campaign"), digest(baseline), *machine, *opponents)
    return digest(chr(0).join(parts))


def baseline(population: Population, confirmation: Confirmation) -> str:
    """Return the source that a campaign's champion had to be faster than; empty for nothing, `reference` for that.

    `validate` never demands that a kernel is faster than the reference, unless that is a seed.
    """
    name = confirmation.baseline
    return population.get(name).kernel.source if name in population else name


def confirmation(file: Path, params: Params) -> ValidationResult | None:
    """Return the result of `validate` that was recorded beside a kernel's file; None if a new one must be made.

    Raises SetupError for a file that is no kernel, and for parameters that cannot be evaluated here.
    """
    source = read_kernel(file)
    kernel = Kernel(name=file.stem, language=language_of(source), source=source)
    problem, address = preflight.resolve(params.model_copy(update={"language": kernel.language}))
    try:
        found = ValidationResult.model_validate_json(file.with_name(FILE).read_text())
    except (OSError, ValueError):  # there is none, or it is damaged
        return None
    rivals = single.rivals(problem, kernel)
    wanted = key(params, problem, address, kernel, rivals[-1].source if rivals else "")
    is_decided = found.verdict is not Verdict.INFRASTRUCTURE
    return found if is_decided and wanted and found.key == wanted else None


def _digest(file: Path) -> str:
    """Return a digest of a seed or bar; empty if it cannot be read: a champion is exported all the same."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""
