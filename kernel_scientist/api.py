"""The use cases as functions. Commands print what these return, and a notebook imports the same ones:

    import kernel_scientist as ks
    print(ks.evaluate("kernel.py", problem="rmsnorm").speedup)

`overrides` are the same as `--set` on the command line (`["harness.noise_runs=0"]`), `params_file` is another
params.yaml. Raises SetupError if the call or this machine is wrong, with one sentence; a kernel's fault is a verdict.
With PREFECT_API_URL set they are flows on that server, otherwise `optimize` starts a server for its campaign and the
others need none.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.capability import Capability
from kernel_scientist.records.comparison_result import ComparisonResult
from kernel_scientist.records.compilation import CompilationResult
from kernel_scientist.records.control_result import ControlResult
from kernel_scientist.records.evidence import EvidenceResult, VerificationResult
from kernel_scientist.records.overrides import names
from kernel_scientist.records.params import load
from kernel_scientist.records.problem_result import (
    Admission,
    AdmissionsResult,
    BaselineResult,
    ProblemResult,
    ProblemRow,
)
from kernel_scientist.records.results import EvaluationResult, ValidationResult
from kernel_scientist.records.suite_result import SuiteResult

File = str | Path


def evaluate(
    file: File,
    problem: str | None = None,
    target: str | None = None,
    against: File | None = None,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> EvaluationResult:
    """Compile, check and time one kernel file, beside the reference and `against` (another file).

    `target`: `auto`, `cpu`, `cuda`, `rocm`, `model:mi300x`, `pool:NAME`, `kernelbot`. The result's speedup is over
    `against`, without one over the reference.
    """
    from kernel_scientist.campaign import preflight, single

    named = _named(problem, target)
    params = load(params_file, overrides, named)
    preflight.kernels(params, [Path(one) for one in (file, against) if one], _names_problem(problem, overrides))
    if _is_server_set():
        return _flow("evaluate", [*overrides, *_overriding(named)], params_file, file=str(file), against=_text(against))
    return single.evaluate(str(file), params, _text(against))


def check(
    file: File,
    problem: str | None = None,
    target: str | None = None,
    is_executed: bool = True,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> EvaluationResult:
    """Compile one kernel file and compare its outputs on every checking case; nothing is timed, and no flow runs.

    `is_executed`: without it the kernel is only compiled. `target`: as for `evaluate`, but no pool.
    """
    from kernel_scientist.campaign import preflight, single

    params = load(params_file, overrides, _named(problem, target))
    preflight.kernels(params, [Path(file)], _names_problem(problem, overrides))
    return single.check(str(file), params, is_executed)


def profile_kernel(
    file: File,
    problem: str | None = None,
    target: str | None = None,
    case: str = "",
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> EvaluationResult:
    """Check one kernel file and profile its calls on one timed case; no flow runs.

    On a CPU the result has `sampled`, shares of samples by source line (Linux' perf), on a GPU `counters`, on a model
    target `predicted`. Where nothing can be read, its environment says why (`counters`). `case`: by default the one
    that moves most bytes. `target`: as for `evaluate`, which is what is done where kernels are checked elsewhere.
    """
    from kernel_scientist.campaign import preflight, single

    params = load(params_file, overrides, _named(problem, target))
    preflight.kernels(params, [Path(file)], _names_problem(problem, overrides))
    return single.profile(str(file), params, case)


def compile(
    file: File,
    problem: str | None = None,
    machine: str = "",
    arch: str = "",
    entry: str | None = None,
    inputs: str | None = None,
    lines: bool = True,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> CompilationResult:
    """Compile a Triton or HIP file for a GPU that need not be present; nothing is compared.

    `problem`: whose cases a submission is called on, by default the first whose inputs it accepts. `machine`, `arch`:
    such as mi300x and gfx942, by default these. `entry`, `inputs`: of another file, the function and its arguments.
    `lines`: whether a timed case is executed for its source lines' times (AMD's GPUs), for at most a minute.
    """
    from kernel_scientist.campaign import compiling
    from kernel_scientist.hardware import gpus

    gpu = gpus.chosen(machine, arch or ("" if machine else "gfx942"))
    return compiling.compiled(Path(file), gpu, problem, load(params_file, overrides), entry, inputs, lines)


def validate(
    file: File | None = None,
    problem: str | None = None,
    target: str | None = None,
    against: File | None = None,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
    recorded: bool = False,
) -> ValidationResult:
    """Confirm a kernel in fresh processes, on new seeds and held-out cases.

    `file`: the standing champion without one. `against`: the kernel that it must beat, by default the problem's last
    seed. `recorded`: the confirmation that a campaign wrote beside the file will do if all that it depends on is the
    same.
    """
    from kernel_scientist.campaign import champions, preflight, single
    from kernel_scientist.campaign import recorded as known

    named = _named(problem, target)
    params = load(params_file, overrides, named)
    file = file or champions.file(params)
    preflight.kernels(params, [Path(one) for one in (file, against) if one], _names_problem(problem, overrides))
    if recorded and not against and (found := known.confirmation(Path(file), params)):
        return found
    if _is_server_set():
        return _flow("validate", [*overrides, *_overriding(named)], params_file, file=str(file), against=_text(against))
    return single.validate(str(file), params, _text(against))


def optimize(
    problem: str | None = None,
    target: str | None = None,
    resume: bool | str = False,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> CampaignResult:
    """Run one campaign and confirm its champion.

    `resume`: go on with the latest campaign of the problem, language and target (true), or with the one of this id.
    """
    from kernel_scientist.campaign import outlook
    from kernel_scientist.workers import prepared

    named = _named(problem, target)
    params = load(params_file, overrides, named)
    with prepared.started_ahead(params, *outlook.require(params, resume)):
        return _flow("optimize", [*overrides, *_overriding(named)], params_file, resume=resume)


def suite(
    name: str,
    paths: Sequence[File],
    level: int | None = None,
    jobs: int = 1,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> SuiteResult:
    """Run a campaign for each of many problems.

    `paths`: problems' files, or folders that contain them. `level`: only those in folders named level<N>
    (KernelBench). `jobs`: campaigns at the same time, where no CPU is timed.
    """
    from kernel_scientist.campaign.suite import Suite
    from kernel_scientist.records import environment
    from kernel_scientist.tracking.access import require_usable

    params, places = load(params_file, overrides), [str(path) for path in paths]
    Suite.of(name, places, level).require_quiet(params, jobs)
    require_usable(environment.tracking_uri(params.tracking.uri))
    return _flow("suite:run", overrides, params_file, name=name, paths=places, level=level, jobs=jobs)


def compare(
    first: Sequence[str],
    second: Sequence[str],
    recorded: bool = False,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> ComparisonResult:
    """Compare two campaigns, or two lists of repeats, by name at equal budget.

    The incumbents of each pair are timed in one run on this host; with `recorded` nothing is timed.
    """
    from kernel_scientist.campaign import comparing

    return comparing.compare_campaigns(load(params_file, overrides), first, second, timed=not recorded)


def control(
    name: str,
    paths: Sequence[File],
    first: Sequence[str] = (),
    second: Sequence[str] = (),
    repeats: int = 5,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> ControlResult:
    """Run two ways of searching at equal budget on several problems, with repeats, and compare them.

    `first`, `second`: overrides of either side, beside `overrides`, which both have: `["search.strategy=greedy"]`.
    `repeats`: campaigns of each side on each problem. A `name` used before goes on with the campaigns that are left.
    """
    from kernel_scientist.campaign.control import Control
    from kernel_scientist.records import environment
    from kernel_scientist.tracking.access import require_usable

    places = [str(path) for path in paths]
    found = Control.of(name, places, first, second, repeats, overrides, params_file)
    require_usable(environment.tracking_uri(found.params[0].tracking.uri))
    given = {"first": list(first), "second": list(second)}
    ran = _flow("control", overrides, params_file, name=name, paths=places, repeats=repeats, **given)
    return found.result(ran)


def export_evidence(
    kernel: str,
    campaign: str | None = None,
    out: File | None = None,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> EvidenceResult:
    """Write one archive with all that a recorded kernel's figures rest on.

    `campaign`: its id; the latest of the problem, language and target without one. `out`: the archive's file.
    """
    from kernel_scientist.evidence import export

    return export.export(load(params_file, overrides), kernel, campaign, _text(out))


def verify(archive: File) -> VerificationResult:
    """Compute every figure of an archive of evidence again, offline. The result says what could not be checked."""
    from kernel_scientist.evidence import verify

    return verify.verify(str(archive))


def list_problems() -> list[ProblemRow]:
    """Return the problems of this laboratory, broken ones and imports that are not here yet included."""
    from kernel_scientist.campaign import describing

    return describing.listed()


def describe_problem(name: str) -> ProblemResult:
    """Return a problem's text, seeds and cases with their work, also of one that cannot be evaluated here."""
    from kernel_scientist.campaign import describing

    return describing.described(name)


def admit(
    paths: Sequence[File],
    limit_s: float = 300,
    compat: str = "intended",
    done: Callable[[Admission], None] = lambda one: None,
) -> AdmissionsResult:
    """Say which problems at and below some paths can be used, and why the others cannot.

    `limit_s`: seconds for one problem. `compat`: as in params.yaml. `done`: called with each answer.
    """
    from kernel_scientist.problems import admissions

    return admissions.admitted([str(path) for path in paths], limit_s, compat, done)


def baseline(
    cases: File = "data/cases",
    problem: str | None = None,
    target: str | None = None,
    overrides: Sequence[str] = (),
    params_file: str | None = None,
) -> BaselineResult:
    """Time a problem's reference and its seeds, after verifying the reference against the frozen cases."""
    from kernel_scientist.campaign import baseline as seeds
    from kernel_scientist.records import environment

    return seeds.measure(load(params_file, overrides, _named(problem, target)), environment.root() / cases)


def doctor() -> list[Capability]:
    """Return what this machine can do, one record per capability. It takes some 20 s."""
    from kernel_scientist.campaign import capabilities

    return capabilities.examine()


def _flow(entry: str, overrides: Sequence[str], params_file: str | None, **arguments: Any) -> Any:
    """Run a flow, on the server that is set, else on one of its own. The domain knows it by its name only."""
    from kernel_scientist.campaign import preflight

    module, _, function = entry.partition(":")
    preflight.prefect()
    with resolve_name("flows.server:serving")((f"flows.{module}", "mlflow.store.tracking.sqlalchemy_store")):
        flow = resolve_name(f"flows.{module}:{function or module}")
        return flow(overrides=list(overrides), params_file=params_file, **arguments)


def _is_server_set() -> bool:
    return bool(os.environ.get("PREFECT_API_URL"))


def _named(problem: str | None, target: str | None) -> dict[str, str]:
    return {name: value for name, value in (("problem", problem), ("target", target)) if value is not None}


def _names_problem(problem: str | None, overrides: Sequence[str]) -> bool:
    return problem is not None or names(overrides, "problem")


def _overriding(named: dict[str, str]) -> list[str]:
    return [f"{key}={json.dumps(value)}" for key, value in named.items()]


def _text(file: File | None) -> str | None:
    return None if file is None else str(file)
