"""The command that writes a campaign's kernels (`search.agent`): checks before the start, and what it must not see."""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment, laboratory
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import ROLES, Params
from kernel_scientist.sandbox import guest
from kernel_scientist.scientist.command.program import AgentCommand
from kernel_scientist.tracking import local_store

SECRET = ("problems", "data", "mlruns", "reports", "champions", ".cache", ".prefect", ".git", ".dvc")
"""Folders of a laboratory that hold held-out cases, records, or copies of them."""
UNPRICED = "what the agent's own calls cost is not known here, and budget.usd does not limit it"
"""What is said of its cost."""


def require(params: Params) -> None:
    """Raise SetupError unless every role has an agent, and the agent's command, if any, can be run and be confined."""
    from kernel_scientist.scientist import ensemble

    search = params.search
    ensemble.require(params.llm, params.language, by_command=bool(search.agent))
    if not search.agent:
        return
    if search.strategy != "agent":
        raise SetupError(f"search.agent is a command for search.strategy=agent, and the strategy is {search.strategy}")
    try:
        program = next(iter(shlex.split(search.agent)), "")
    except ValueError as error:
        raise SetupError(f"search.agent is no command line: {error} in {search.agent!r}") from error
    if shutil.which(program) is None:
        raise SetupError(f"search.agent: there is no program {program!r} on PATH that can be run")
    if missing := [given for given in search.agent_writes if not Path(given).expanduser().exists()]:
        raise SetupError(f"search.agent_writes: there is no {missing[0]}")
    scratch = Path(tempfile.gettempdir()).resolve()
    if guest.kind() and (inside := [path for path in _hidden(params) if scratch.is_relative_to(path)]):
        raise SetupError(
            f"search.agent: {inside[0]} is hidden from it, so its folders cannot be there: set TMPDIR to another"
        )
    if params.harness.sandbox == "auto" and not guest.kind():
        raise SetupError(
            f"{guest.NONE} to keep the agent's command from this machine's files: install bubblewrap "
            "(Debian, Ubuntu: apt-get install bubblewrap) or set harness.sandbox=basic to let it write everywhere"
        )


def roles(params: Params) -> Sequence[str]:
    """Return the roles that models or the playbook have in a campaign."""
    return ("distiller",) if params.search.agent else ROLES


def outlook(params: Params) -> dict[str, str]:
    """Return what a dry run says of the command; nothing if there is none."""
    search = params.search
    if not search.agent:
        return {}
    limits = f"at most {search.agent_minutes:g} min a run, confined by {guest.kind() or 'nothing'}"
    return {"agent": search.agent, "agent_limits": limits, "agent_usd": UNPRICED}


def of(params: Params, problem: Problem) -> AgentCommand:
    """Return the command of a campaign."""
    search = params.search
    writable = tuple(str(Path(given).expanduser().resolve()) for given in search.agent_writes)
    return AgentCommand(search.agent, 60 * search.agent_minutes, writable, _hidden(params, problem.folder))


def _hidden(params: Params, *problems: Path) -> tuple[str, ...]:
    """Return the files and folders that hold, or may hold, what an agent must not know: held-out cases and records."""
    laboratories = {environment.root(), laboratory.own()}
    paths = [folder / name for folder in laboratories for name in SECRET]
    paths += [git for folder in laboratories for git in _git_folders(folder)]
    paths += [*problems, laboratory.PACKAGED, environment.cache_folder(), environment.prefect_folder()]
    store = local_store.database(environment.tracking_uri(params.tracking.uri))
    paths += [store.parent] if store else []
    there = {path.resolve() for path in paths if path.exists()}
    return tuple(sorted(str(path) for path in there if there.isdisjoint(path.parents)))


def _git_folders(laboratory: Path) -> list[Path]:
    """Return the folder of the git repository that a laboratory lies in, wherever that is; nothing without git."""
    asked = ["git", "-c", "safe.directory=*", "-C", str(laboratory), "rev-parse", "--path-format=absolute"]
    try:
        done = subprocess.run([*asked, "--git-common-dir"], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return [Path(done.stdout.removesuffix("\n"))] if done.returncode == 0 else []
