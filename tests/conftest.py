"""Fixtures: laboratories in temporary folders, a pool, one Prefect server for all of pytest's processes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from filelock import FileLock

from kernel_scientist.records import environment

environment.prepare()

from kernel_scientist import problems  # noqa: E402
from kernel_scientist.cli import main  # noqa: E402
from kernel_scientist.evaluation.evaluator import Evaluator  # noqa: E402
from kernel_scientist.records.params import Harness  # noqa: E402
from kernel_scientist.workers.worker_pool import WorkerPool  # noqa: E402

# The same examples every time: a change is judged by what it changes. `--hypothesis-profile explore` draws new ones.
with suppress(ModuleNotFoundError):  # a GPU's machine may lack it, and none of the GPU's tests needs it
    import hypothesis

    hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
    hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
    hypothesis.settings.load_profile("steady")

ROOT = Path(__file__).resolve().parent.parent
Cli = Callable[..., subprocess.CompletedProcess[str]]


def without_progress(stderr: str) -> list[str]:
    """The lines that a command printed, without those that say what it is doing, or that something disturbs it."""
    said = [line for line in stderr.splitlines() if line.strip() and not line.startswith("warning: ")]
    return [line for line in said if not line.endswith(" ...")]


def cpu_seconds() -> float:
    """CPU time of this process and of all that it started: what took long although the machine is busy."""
    found = 0.0
    for process in (own := psutil.Process(), *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            found += sum(process.cpu_times()[:4])  # its own, and those of children that have ended
    return found


LONG = (
    *("test_evaluator_against_cheats.py", "test_llm_campaign.py", "test_campaign.py", "test_playbook_triton.py"),
    *("test_playbook.py", "test_inspect.py", "test_suite.py", "test_pipeline.py", "test_model_campaign.py"),
    *("test_fuzz.py", "test_extension.py", "test_sandbox.py", "test_hip.py", "test_ui.py", "test_evaluator.py"),
    *("test_imports.py", "test_bars.py", "test_service.py", "test_pages.py"),
)
"""Files that take longest: started first, so that the processes end at the same time."""
QUICK = ("records", "population", "search", "hardware", "report", "docs", "tracking", "gpu/isa", "gpu/model")
"""Folders whose tests `make check` runs: together less than a minute on two cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    import torch

    folders = tuple(f"{ROOT / 'tests' / folder}/" for folder in QUICK)
    for item in items:
        if str(item.path).startswith(folders) and item.path.name not in LONG:
            item.add_marker("quick")
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs a GPU that torch can use")
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def side_by_side(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pytest's processes share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def _cache(side_by_side: Path) -> None:
    cache, built = side_by_side / "cache", ROOT / ".cache" / "machine"
    os.environ["KERNEL_SCIENTIST_CACHE"] = str(cache)
    built.mkdir(parents=True, exist_ok=True)  # the machine takes a minute of processor to build
    cache.mkdir(exist_ok=True)
    with suppress(FileExistsError):
        (cache / "machine").symlink_to(built)
    os.environ.pop("MLFLOW_TRACKING_URI", None)


@pytest.fixture(scope="session")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(
        Harness(call_timeout_s=3, import_timeout_s=5, stages=1, pairs=0, noise_runs=0, output_mib=4, memory_mib=512)
    ) as shop:
        yield shop


@pytest.fixture(scope="session")
def evaluator_for(pool: WorkerPool) -> Callable[[str], Evaluator]:
    def make(problem: str) -> Evaluator:
        return Evaluator(problems.load(ROOT / "problems" / problem), "cpu", pool.harness, pool)

    return make


@pytest.fixture(scope="session")
def empty_store(side_by_side: Path) -> Path:
    """A new MLflow store. MLflow takes seconds to make one, in which it repeats its own history."""
    from mlflow import MlflowClient

    path = side_by_side / "store" / "mlflow.db"
    with FileLock(side_by_side / "store.lock"):
        if not path.exists():
            path.parent.mkdir()
            MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def hears_hangups() -> Iterator[None]:
    """Tests that run under nohup ignore SIGHUP, and so would what they start."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def lab(tmp_path: Path, empty_store: Path) -> Path:
    """A laboratory of its own: problems, parameters, an empty store, nothing else."""
    folder = new_lab(tmp_path / "lab")
    (folder / "mlruns").mkdir()
    shutil.copy(empty_store, folder / "mlruns")
    return folder


def new_lab(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for part in ("problems", "knowledge"):
        shutil.copytree(ROOT / part, folder / part)
    # A/A runs, tuning, waits, further stages and sets take more time than most tests, which have them on their own
    none, once = ("noise_runs", "pairs", "tries", "quiet_wait_s"), ("stages", "processes")
    params = (ROOT / "params.yaml").read_text()
    for name in (*none, *once):
        params, changed = re.subn(rf"(?m)^  {name}: \d+", f"  {name}: {int(name in once)}", params)
        assert changed == 1, name
    (folder / "params.yaml").write_text(params)
    return folder


@pytest.fixture(scope="session")
def prefect_api(side_by_side: Path) -> Iterator[str]:
    """A real Prefect server, shared by the flows of all of pytest's processes: one takes 18 s of processor to start.

    The process that asks first has it, and waits at its end until no other one uses it.
    """
    address, users = side_by_side / "prefect.url", side_by_side / "prefect.users"
    users.mkdir(exist_ok=True)
    ours, lock = users / str(os.getpid()), FileLock(side_by_side / "prefect.lock")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PREFECT_HOME", str(side_by_side / "prefect"))
        with lock:
            if mine := not address.exists():
                from flows import server

                stack.enter_context(server.serving())
                from prefect.settings import PREFECT_API_URL

                address.write_text(str(PREFECT_API_URL.value()))
            ours.touch()
        yield address.read_text()
        ours.unlink()
        while mine:
            with lock:
                if not any(users.iterdir()):
                    address.unlink()
                    break
            time.sleep(0.2)


@pytest.fixture
def cli(lab: Path) -> Cli:
    """The command line, as a process, in the laboratory `lab`."""

    def run(*arguments: str, timeout: float | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kernel_scientist", *arguments],
            cwd=lab,
            env=lab_environment(lab, **extra),
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture
def cli_here(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in this process: what a call says and its exit code, without importing everything each time."""

    def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch:
            for name in [n for n in os.environ if n.startswith(("PREFECT_API", "MLFLOW_TRACKING"))]:
                patch.delenv(name)
            for name, value in {"KERNEL_SCIENTIST_ROOT": str(lab), **extra}.items():
                patch.setenv(name, value)
            patch.chdir(lab)
            with as_in_a_new_process():
                done = CliRunner().invoke(main, arguments)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    return run


@contextmanager
def as_in_a_new_process() -> Iterator[None]:
    """Have Prefect take its server from the environment of now: it reads that once, when it is imported."""
    if "prefect" not in sys.modules:
        yield
        return
    from prefect.settings import PREFECT_API_URL, temporary_settings

    address = os.environ.get("PREFECT_API_URL")
    with temporary_settings({PREFECT_API_URL: address}) if address else nullcontext():
        yield


def lab_environment(lab: Path, **extra: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_API", "MLFLOW_TRACKING"))}
    env |= {"PREFECT_HOME": str(lab / ".prefect"), "KERNEL_SCIENTIST_ROOT": str(lab), "PYTHONPATH": str(ROOT)}
    return {**env, **extra}


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip()
