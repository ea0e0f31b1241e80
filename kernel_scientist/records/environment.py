"""Paths, and process defaults that must be set before any third-party import.

Only this module reads the project's settings from the process environment. Every entry point (command line, flows,
tests) calls `prepare()` first.
"""

import functools
import getpass
import hashlib
import logging
import os
import re
import socket
import threading
from pathlib import Path

from kernel_scientist.records import laboratory
from kernel_scientist.records.errors import SetupError

DEFAULTS = {
    # Otherwise an offline `mlflow server` deadlocks while litellm fetches its price map.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",  # DEV loads a .env from the working directory at import
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DVC_NO_ANALYTICS": "1",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # its workers outlive the server
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",  # the server gets all logs; the terminal shows our table
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",  # a server that hangs is noticed; a campaign waits for it in its own way
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # standard output is for results, such as JSON
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "OMP_WAIT_POLICY": "passive",  # the evaluator's own threads must not spin during a timed call
}

TERSE = {
    "urllib3.connectionpool": logging.ERROR,  # a warning of 200 characters for each attempt to reach a server
    "mlflow.store.db.utils": logging.CRITICAL,  # the traceback of an error that is raised as well
}
"""Least level of what these loggers say: a campaign waits for a store that is away, and says so in its own line."""


OURS = ("KERNEL_SCIENTIST_", "PREFECT_", "MLFLOW_", "DVC_")
"""Beginnings of the variables of this project and of the services that it runs on."""


def root() -> Path:
    """Return the laboratory's folder: `$KERNEL_SCIENTIST_ROOT`, else the nearest parent of the working directory that
    is one, else the checkout this package lies in, else the files that the wheel carries, which are not written to."""
    if given := os.environ.get("KERNEL_SCIENTIST_ROOT"):
        return Path(given).resolve()
    here = working_folder()
    for folder in (here, *here.parents):
        if laboratory.is_one(folder):
            return folder
    return laboratory.own()


def working_folder() -> Path:
    """Return the working directory. Raises SetupError if it was deleted."""
    try:
        return Path.cwd().resolve()
    except FileNotFoundError as error:
        raise SetupError("the current directory does not exist any more: change to one that does") from error


def is_writable() -> bool:
    """Whether there is a laboratory in which runs can be recorded; the files that a wheel carries are none."""
    return root() != laboratory.PACKAGED


def enter() -> dict[str, str]:
    """Make the project's folder the working directory: the pull step of the deployments in prefect.yaml."""
    folder = root()
    os.chdir(folder)
    return {"directory": str(folder)}


def prepare() -> Path:
    """Set the process defaults that the user has not set; return the project's folder.

    Raises SetupError if it is no folder, or the working directory was deleted.
    """
    working_folder()
    folder = root()
    if folder.exists() and not folder.is_dir():
        raise SetupError(f"{folder} is a file: KERNEL_SCIENTIST_ROOT names the laboratory's folder")
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    for name, level in TERSE.items():
        logging.getLogger(name).setLevel(level)
    os.environ.setdefault("PREFECT_HOME", str(prefect_folder()))
    return folder


def tracking_uri(configured: str = "") -> str:
    """Return the MLflow store's address: `$MLFLOW_TRACKING_URI`, else `configured`, else the database in `mlruns/`."""
    if given := os.environ.get("MLFLOW_TRACKING_URI") or configured:
        return given
    return f"sqlite:///{root() / 'mlruns' / 'mlflow.db'}"


def mlflow_pages(store: str) -> str:
    """Return where people see a store's pages: `$KERNEL_SCIENTIST_MLFLOW_PAGES`, else where `kernel-scientist ui` last
    served them; empty if neither is known."""
    if given := os.environ.get("KERNEL_SCIENTIST_MLFLOW_PAGES"):
        return given.rstrip("/")
    try:
        return _served(store).read_text()
    except OSError:
        return ""


def serve_mlflow_pages(store: str, address: str) -> None:
    """Note where a store's pages are served from now on."""
    keep(_served(store), address)


def _served(store: str) -> Path:
    return cache_folder() / "pages" / hashlib.sha256(store.encode()).hexdigest()[:32]


def prefect_folder() -> Path:
    """Return the folder of Prefect's settings and of the database of a server that is started here."""
    return Path(os.environ.get("PREFECT_HOME") or root() / ".prefect")


def owner() -> str:
    """Return whose campaigns this process starts: `$KERNEL_SCIENTIST_OWNER`, else user, host and project's folder."""
    given = os.environ.get("KERNEL_SCIENTIST_OWNER") or f"{_user()}@{socket.gethostname()}:{root()}"
    return re.sub(r"[^\w@:./ +-]", "-", given)[:250]  # it is searched for in a language with quotes


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())


def of_others() -> dict[str, str]:
    """Return the environment of a user's program: without what leads to this laboratory's stores and servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


def host_target() -> str:
    """Return what this host evaluates kernels on for a pool: `$KERNEL_SCIENTIST_TARGET`, else its GPU, else its CPU."""
    return os.environ.get("KERNEL_SCIENTIST_TARGET") or "auto"


def cache_folder() -> Path:
    """Return the folder of built kernels and locks; safe to delete at any time."""
    given = os.environ.get("KERNEL_SCIENTIST_CACHE")
    return Path(given) if given else root() / ".cache" if is_writable() else host_folder()


def host_folder() -> Path:
    """Return the folder of what all checkouts of a user share on this host, unless a cache folder is named."""
    given, shared = os.environ.get("KERNEL_SCIENTIST_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else Path(shared or Path.home() / ".cache") / "gpu-kernel-scientist"


def keep(file: Path, text: str) -> None:
    """Write a file of a cache, and the folder for it; nobody reads a part of it, whoever else writes it too."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    temporary.write_text(text)
    temporary.replace(file)


@functools.cache
def sources_digest(*packages: str) -> str:
    """Return a digest of the sources of packages and modules of this project, such as `gpu`, for cache keys of results.

    This invalidates cached results whenever the code that computed them changes.
    """
    package, total = Path(__file__).resolve().parents[1], hashlib.sha256()
    for folder in packages:
        if not (package / folder).exists():
            raise FileNotFoundError(f"there is no {folder} in {package}, so no digest of it")
        for file in sorted((package / folder, *(package / folder).rglob("*"))):
            if file.suffix in (".py", ".cpp", ".h"):
                total.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    return total.hexdigest()


def evaluator_digest() -> str:
    """Return the digest of all code that determines a kernel's verdict and times."""
    return sources_digest("compilers", "evaluation", "gpu", "hardware", "problems", "records", "sandbox", "workers")
