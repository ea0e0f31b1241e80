"""What times a kernel's rivals is out of its reach: the fork server, their workers, and what later workers start with.

Every kernel of `disturbers` is imported beside a rival's live worker. Then all is as before, whatever became of it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.driver import Driver
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import bubblewrap, landlock
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers import client
from kernel_scientist.workers.client import WorkerClient
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.cheats import corpus
from tests.conftest import ROOT
from tests.flows.service import until
from tests.workers import disturbers

pytestmark = pytest.mark.alone
LIMITS = Harness(import_timeout_s=4, call_timeout_s=4, memory_mib=512, output_mib=8)
LOOK = """
import ctypes, json, os, resource, signal, threading

LIBC = ctypes.CDLL(None)
LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_") and name not in ("RLIMIT_DATA", "RLIMIT_AS")]
mask = os.umask(0)
os.umask(mask)
seen = {
    "cores": sorted(os.sched_getaffinity(0)),
    "policy": [os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.getpriority(os.PRIO_PROCESS, 0)],
    "io": LIBC.syscall(252 if os.uname().machine == "x86_64" else 31, 1, 0),
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS},
    "timer slack": LIBC.prctl(30, 0, 0, 0, 0),
    "huge pages": LIBC.prctl(42, 0, 0, 0, 0),
    "mask": mask,
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "ignored": [number for number in range(1, 65) if signal.getsignal(number) is signal.SIG_IGN],
    "personality": LIBC.personality(ctypes.c_ulong(0xffffffff)),
    "oom": open("/proc/self/oom_score_adj").read(),
    "threads": threading.active_count(),
    "files": sorted(set(os.listdir(".")) - {"kernel.py"}),
    "variables": {name: value for name, value in os.environ.items() if os.getcwd() not in value},
}
print(json.dumps(seen))
threads = [threading.Thread(target=str) for _ in range(32)]
for thread in threads:
    thread.start()
def custom_kernel(data): return data
"""


class State(NamedTuple):
    """What a process that times, or is timed, runs under."""

    threads: dict[int, tuple[object, ...]]
    """Cores, scheduling class and niceness of each."""
    limits: str
    io: object
    oom: str
    stopped: bool

    @classmethod
    def of(cls, pid: int) -> "State":
        folder = Path(f"/proc/{pid}")
        threads = {
            thread: (
                frozenset(os.sched_getaffinity(thread)),
                os.sched_getscheduler(thread),
                os.sched_getparam(thread).sched_priority,
                os.getpriority(os.PRIO_PROCESS, thread),
            )
            for thread in (int(task.name) for task in (folder / "task").iterdir())
        }
        process = psutil.Process(pid)
        slack = folder / "timerslack_ns"
        oom = (folder / "oom_score_adj").read_text() + (slack.read_text() if os.geteuid() == 0 else "")
        stopped = process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
        return cls(threads, (folder / "limits").read_text(), process.ionice(), oom, stopped)


@pytest.fixture(scope="module", params=["bubblewrap", "landlock", "filter"])
def pool(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    """A pool under one enclosure; `filter`: only the filter of system calls."""
    if request.param == "bubblewrap" and not bubblewrap.bubblewrap_works():
        pytest.skip("this machine has no bubblewrap")
    if request.param == "landlock" and not landlock.version():
        pytest.skip("this machine has no Landlock")
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "bubblewrap":
            patch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
        level = "basic" if request.param == "filter" else "auto"
        with WorkerPool(LIMITS.model_copy(update={"sandbox": level})) as pool:
            yield pool


@pytest.fixture(scope="module")
def usual(pool: WorkerPool) -> Any:
    """What a worker finds around it before anything was disturbed."""
    return found(pool)


def imported(worker: WorkerClient, source: str) -> str:
    """Import a kernel's file; return what the worker said in the end, or how it failed."""
    try:
        worker.load(source, lambda _: (None, ""))
    except KernelFailure as failure:
        return failure.reason
    return ""


def found(pool: WorkerPool, timing: bool = True) -> Any:
    """What a fresh worker finds around it."""
    with pool.worker(timing) as worker:
        assert imported(worker, LOOK) == ""
        return json.loads(worker.log_tail().partition(": ")[2].splitlines()[-1])


def parent(pid: int) -> int:
    return psutil.Process(pid).ppid()


SAYS = """
if reached or absent:
    raise SystemError(f"it reached {reached}; there was no victim for {absent}")
def custom_kernel(data): return data
"""
FILES = ("its /proc", "shared folders", "clocks of", "settings of", "locks of")
"""Disturbers that reach for files, which a filter of system calls does not see."""


@pytest.mark.parametrize("name", disturbers.BODIES)
def test_nothing_that_times_its_rivals_is_reached(name: str, pool: WorkerPool, usual: Any) -> None:
    if pool.harness.sandbox == "basic" and name.startswith(FILES):
        pytest.skip("files are open with harness.sandbox: basic")
    with pool.worker(timing=True) as rival:
        fork_server = parent(rival.process.number)
        everybody = (os.getpid(), fork_server, rival.process.number)
        before = {pid: State.of(pid) for pid in everybody}
        with pool.worker(timing=True) as worker:
            said = imported(worker, disturbers.at_import(name, f"[os.getppid(), {rival.pid}]") + SAYS)
        assert "it reached" not in said, said
        assert {pid: State.of(pid) for pid in everybody} == before, said
        assert imported(rival, LOOK) == "", said
    assert found(pool) == usual, said
    assert not strays(fork_server), said


def strays(fork_server: int) -> list[psutil.Process]:
    """Descendants of the fork server that are no live workers: none a moment after its workers have been killed."""
    process = psutil.Process(fork_server)
    until(lambda: not process.children(recursive=True), "the killed workers end")
    return process.children(recursive=True)


@pytest.mark.slow
def test_all_of_it_as_an_ordinary_user() -> None:
    """As root much is refused by the lack of capabilities alone."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become another user: who is none has run the others as such")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run(
        [*user, sys.executable, "-c", f"import torch; open({__file__!r})"], capture_output=True
    ).returncode:
        pytest.skip("an ordinary user cannot read this laboratory or its Python")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": folder, "TMPDIR": folder}
        asked = ["-q", "-x", "-p", "no:cacheprovider", "-k", "reached and (landlock or filter)", __file__]
        command = [*user, sys.executable, "-m", "pytest", *asked]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]


class Watching(Driver):
    """A driver that notes how much CPU time other workers use during each row."""

    def __init__(self, evaluator: Evaluator) -> None:
        super().__init__(evaluator.problem, evaluator.harness, evaluator.pool)
        self.used_ns: dict[WorkerClient, list[int]] = {}

    def imported(self, worker: WorkerClient, *arguments: Any) -> None:
        super().imported(worker, *arguments)
        self.used_ns[worker] = []

    def row(self, worker: WorkerClient, *arguments: Any, **named: Any) -> Any:
        others = [other for other in self.used_ns if other is not worker and other.sock.fileno() >= 0]  # not closed
        before = {other: cpu_ns(other) for other in others}
        row = super().row(worker, *arguments, **named)
        for other, used in before.items():
            self.used_ns[other].append(cpu_ns(other) - used)
        return row


def cpu_ns(worker: WorkerClient) -> int:
    """CPU time of all threads of a worker (clock_getcpuclockid)."""
    return time.clock_gettime_ns(~worker.process.number << 3 | 2)


@pytest.fixture
def evaluator() -> Iterator[Evaluator]:
    harness = Harness(stages=1, pairs=0, noise_runs=0, memory_mib=1024, drop_below=0.0)
    with WorkerPool(harness) as pool:
        yield Evaluator(problems.load(ROOT / "problems" / "identity"), "cpu", harness, pool)


SOURCES = {fixture.name: fixture.source for fixture in corpus.load()}
HONEST = SOURCES["one_thread_copy"]


def evaluated(evaluator: Evaluator, source: str) -> Evaluation:
    """A kernel's evaluation beside the honest one, on one case."""
    kernel = Kernel(name="disturber", language="cpp", source=source)
    checked = evaluator.check(kernel, evaluator.compile(kernel))
    others = [evaluator.reference(), TimedSource(name="rival", source=HONEST)]
    return evaluator.time(kernel, checked, others, cases=evaluator.profile.benchmarks[1:2])


def test_what_a_kernel_left_running_does_not_run_beside_its_rivals(evaluator: Evaluator) -> None:
    watching = evaluator.driver = Watching(evaluator)
    evaluation = evaluated(evaluator, SOURCES["c10_burns_others_time"])
    assert evaluation.verdict is Verdict.OK, evaluation.reason
    used = [ns for worker in watching.used_ns for ns in watching.used_ns[worker]]
    assert used and not any(used), used


NEAR = "[os.getppid(), *(set(range(os.getpid() - 4, os.getpid() + 5)) - {os.getpid()})]"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["its cores", "its niceness", "the niceness of all of the user", "its own cores"])
def test_the_same_code_with_a_disturbance_is_not_faster(name: str, evaluator: Evaluator) -> None:
    source = f"{disturbers.at_import(name, NEAR)}\n{HONEST}"
    for _ in range(3):  # a real gain comes again
        evaluation = evaluated(evaluator, source)
        assert evaluation.verdict in (Verdict.OK, Verdict.REJECTED), evaluation.reason
        if not any(speedup.faster for speedup in evaluation.speedups if speedup.against == "rival"):
            return
    pytest.fail(f"it is faster than itself: {evaluation.speedups}")


def test_a_program_that_outlives_its_worker_is_ended_in_a_session_of_its_own(pool: WorkerPool) -> None:
    """As on a GPU, where a worker may start programs, and the import fails before the seal."""
    with pool.worker(compiles=True) as worker:
        fork_server = parent(worker.process.number)
        leaves = disturbers.at_import("a process that burns a core", "[]")
        said = imported(
            worker,
            f"{leaves}while not open('/proc/self/task/{{0}}/children'.format(os.getpid())).read():\n"
            "    pass\nraise KeyError('it ends here')",
        )
        assert "it ends here" in said, said
        assert worker.process.has_children()
    assert not strays(fork_server)


def test_a_fork_server_that_does_not_answer_is_ended_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
    with WorkerPool(LIMITS) as pool:
        with pool.worker() as worker:
            stuck = psutil.Process(parent(worker.process.number))
        stuck.suspend()
        with monkeypatch.context() as patch, pytest.raises(InfrastructureError):
            patch.setattr(client, "START_TIMEOUT_S", 1)
            with pool.worker():
                pass
        assert not stuck.is_running()
        found(pool)


class Outsider(Watching):
    """Somebody who moves the workers' parent while a kernel is imported."""

    def imported(self, worker: WorkerClient, *arguments: Any) -> None:
        super().imported(worker, *arguments)
        parent, every = worker.process.parent().number, set(self.pool.cores)
        os.sched_setaffinity(parent, every ^ os.sched_getaffinity(parent) or {min(every)})


@pytest.mark.parametrize("level", ["none", "auto"])
def test_cores_that_change_are_noticed_from_the_import_on(level: str) -> None:
    """Without a sandbox it is the kernel that reached them; with one it cannot have been."""
    harness = Harness(sandbox=level, stages=1, pairs=0, noise_runs=0, memory_mib=512)
    with WorkerPool(harness) as pool:
        if len(pool.cores) == 1:
            pytest.skip("this machine has one core")
        evaluator = Evaluator(problems.load(ROOT / "problems" / "identity"), "cpu", harness, pool)
        if level == "auto":
            evaluator.driver = Outsider(evaluator)
            with pytest.raises(InfrastructureError, match="from outside the sandbox"):
                evaluated(evaluator, HONEST)
            return
        every = set(pool.cores)  # and not the same ones as in the check, whose worker imports it before
        harm = f"os.sched_setaffinity(os.getppid(), {every} ^ os.sched_getaffinity(os.getppid()) or {{{min(every)}}})"
        evaluation = evaluated(evaluator, f"import os\n{harm}\n{HONEST}")
        assert evaluation.verdict is Verdict.REJECTED and "the workers' parent were changed" in evaluation.reason
