"""Checks of a call before anything starts. Each error is a SetupError with one sentence."""

import os
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kernel_scientist import problems
from kernel_scientist.campaign import agent_command, disk_space, hidden_sizes
from kernel_scientist.campaign.targets import factory
from kernel_scientist.compilers.source import language_of, read_kernel
from kernel_scientist.hardware import addresses
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import disk, environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.params import PLAYBOOK, WRITER, Model, Params
from kernel_scientist.sandbox import device_queue

LEAST_BYTES = 1 << 20
"""A cache folder without room for so much is full."""


def resolve(params: Params) -> tuple[Problem, Address]:
    """Return the parameters' problem and the address of their target.

    Raises SetupError when the language cannot be evaluated there, or the target itself cannot be used.
    """
    address = addresses.of(params)
    problem = problems.find(params.problem, address.device, params.compat)
    factory.require(params, problem, address)
    return problem, address


def kernels(params: Params, files: Sequence[Path], is_named: bool) -> None:
    """Check kernel files: each is readable and defines `custom_kernel`; the first one's language can be evaluated.

    Unless the call names the problem (`is_named`), the first one is no seed of another problem.
    """
    sources = [read_kernel(file) for file in files]
    _require_cache()
    _require_locks()
    problem, _ = resolve(params.model_copy(update={"language": language_of(sources[0])}))
    folder = files[0].resolve().parent
    owner = folder.parent
    if folder.name == "seeds" and (owner / "task.yml").is_file() and not is_named and owner != problem.folder.resolve():
        told = f"{files[0]} is a seed of {owner.name}, and the parameter `problem` is {params.problem}"
        raise SetupError(f"{told}: add --problem {owner.name}")


def campaign(params: Params) -> tuple[Problem, Address]:
    """Check a call of `optimize`: problem, target, compiler, names of models, and the `checks`; return as `resolve`."""
    problem, address = resolve(params)
    agent_command.require(params)
    hidden_sizes.require(params, problem, address)
    for check in checks(params, problem):
        check()
    return problem, address


def checks(params: Params, problem: Problem) -> tuple[Callable[[], None], ...]:
    """Return checks of what a campaign reads and writes: folders, seeds, documents, approval, stores, room on disks.

    Each raises SetupError, and leaves nothing but the folder of compiled kernels.
    """
    from kernel_scientist.tracking.access import require_usable

    store = environment.tracking_uri(params.tracking.uri)
    return (
        _require_cache,
        _require_locks,
        *(partial(_results, environment.root() / name) for name in ("champions", "reports")),
        partial(_seeds, problem, params.language),
        partial(_documents, params),
        partial(_approval, params),
        partial(require_usable, store),
        partial(_replies, environment.root() / params.llm.replies),
        partial(disk_space.require, params),
    )


def _seeds(problem: Problem, language: Language) -> None:
    for seed in problem.seeds(language):
        read_kernel(seed)


def _documents(params: Params) -> None:
    from kernel_scientist.scientist import knowledge, symptoms

    paths = [environment.root() / path for path in params.knowledge.paths]
    knowledge.load(paths)
    symptoms.load(paths)


def _approval(params: Params) -> None:
    if params.validate_.approval and not os.environ.get("PREFECT_API_URL"):
        raise SetupError(
            "validate.approval needs a Prefect server on which a person can answer: set PREFECT_API_URL to its address"
        )


def _replies(folder: Path) -> None:
    from kernel_scientist.scientist.llm.response_cache import FILE, is_linked

    try:
        disk.try_folder(folder)
        if not is_linked(folder / FILE):
            disk.try_database(folder / FILE)
    except (OSError, sqlite3.DatabaseError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(f"cannot write to {folder}, the store of models' replies (llm.replies): {reason}") from error


def models(params: Params) -> list[str]:
    """Return what is wrong with agents whose role has others that can be called.

    Raises SetupError if no agent of a role of the campaign can be called: no server answers, it has not the model, or
    a key is missing or refused; or if no replies are kept of the campaign whose replies are to be used.
    """
    llm = params.llm
    if llm.replay:  # its replies are there already
        _require_replies(environment.root() / llm.replies, llm.replay)
        return []
    for blank in [name for name, key in os.environ.items() if name.endswith("API_KEY") and not key.strip()]:
        del os.environ[blank]  # litellm takes an empty key for one
    known: dict[str, str] = {}
    warnings = list[str]()
    for name in agent_command.roles(params):
        role = llm.role(name)
        agents = [*role.models, *role.fallbacks]
        for one in agents:
            if (key := one.model_dump_json()) not in known:
                known[key] = "" if one.model in (PLAYBOOK, WRITER) else _unreachable(one)
        reasons = [known[one.model_dump_json()] for one in agents]
        if all(reasons):
            raise SetupError(f"llm.{name}: {reasons[0]}")
        warnings += [
            f"llm.{name}: {reason}; other agents of the role replace it"
            for reason in dict.fromkeys(filter(None, reasons))
        ]
    return warnings


def _require_replies(folder: Path, campaign: str) -> None:
    from kernel_scientist.scientist.llm.response_cache import FILE, ResponseCache

    if not (folder / FILE).exists() or not ResponseCache(folder).paid_by(campaign):
        raise SetupError(f"llm.replay: no replies of a campaign {campaign} are kept in {folder}")


def _unreachable(model: Model) -> str:
    """Return why a model cannot be called, as far as that is known without a call that is paid; empty if it can."""
    from kernel_scientist.scientist.llm import provider

    if model.api_key_env and not os.environ.get(model.api_key_env, "").strip():
        return f"{model.model} needs a key in the variable {model.api_key_env}, which is not set"
    if model.api_base or model.api_key_env:  # the key that is used, whatever variable litellm would ask for
        return provider.refusal(model)
    import litellm

    # cloud accounts (Azure, AWS) have other ways to sign in than a variable
    names = [] if model.model.startswith("azure") else litellm.validate_environment(model.model)["missing_keys"]
    missing = " or ".join(name for name in names if name.endswith("API_KEY"))
    if missing:
        return f"{model.model} needs a key in the variable {missing}, which is not set"
    return provider.refusal(model)


def _results(folder: Path) -> None:
    try:
        disk.try_folder(folder)
    except OSError as error:
        raise SetupError(f"cannot write to {folder}, where results come: {error.strerror}") from error


def _require_locks() -> None:
    try:
        disk.try_folder(device_queue.made_folder())
    except OSError as error:
        raise SetupError(
            f"cannot write to {device_queue.FOLDER}, the folder of this host's locks on devices: {error.strerror}"
        ) from error


def _require_cache() -> None:
    folder = environment.cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(LEAST_BYTES))
    except OSError as error:
        raise SetupError(
            f"cannot write to {folder}, the folder of compiled kernels and locks: {error.strerror}; "
            "set KERNEL_SCIENTIST_CACHE to another folder"
        ) from error


def prefect() -> None:
    """Check that the configured Prefect server, if any, answers."""
    from kernel_scientist.tracking.access import no_answer

    api = os.environ.get("PREFECT_API_URL")
    if api and (reason := no_answer(f"{api.rstrip('/')}/health")):
        raise SetupError(
            f"no Prefect server answers at {api} ({reason}); start one, or unset PREFECT_API_URL to start one for this "
            "run"
        )
