"""The sandbox, tried from inside: what a kernel cannot see, reach, write or outlive, with and without namespaces."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kernel_scientist import problems
from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.request import BuildRequest
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.records.errors import InfrastructureError, SetupError, StoppedError
from kernel_scientist.records.kernel import Case, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import bubblewrap, device_lock, device_queue, landlock, seccomp
from kernel_scientist.sandbox.failure import KernelFailure
from kernel_scientist.workers import fork_server
from kernel_scientist.workers.client import WorkerClient
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT, dedent
from tests.flows.service import until

pytestmark = pytest.mark.alone
KINDS = ("bubblewrap", "landlock")


def available(kind: str) -> bool:
    return bubblewrap.bubblewrap_works() if kind == "bubblewrap" else landlock.version() > 0


@pytest.fixture(params=KINDS, scope="module")
def shop(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    if not available(request.param):
        pytest.skip(f"this machine has no {request.param}")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "landlock":
            patch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
        with WorkerPool(Harness(import_timeout_s=10, memory_mib=512)) as pool:
            yield pool


def test_a_worker_is_identified_however_early_it_sends(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    greet = WorkerClient.greet

    def late(self: WorkerClient) -> None:
        time.sleep(0.3)
        greet(self)

    monkeypatch.setattr(WorkerClient, "greet", late)
    with pool.worker() as worker:
        assert worker.process is not None and worker.process.number > 0
        command = Path(f"/proc/{worker.process.number}/cmdline").read_bytes()
        assert b"kernel_scientist.workers.fork_server" in command and worker.process.number != os.getpid()


def run(shop: WorkerPool, body: str) -> None:
    """Run Python in a worker, at the place of a kernel's import."""
    source = (
        f"import os, sys, socket, ctypes\nfrom pathlib import Path\n{dedent(body)}\ndef custom_kernel(d): return d\n"
    )
    with shop.worker() as worker:
        worker.load(source, lambda request: (gxx.build(request).path, ""))


def refused(shop: WorkerPool, body: str) -> None:
    """Run Python that must meet an error of the system's."""
    attempt = "\n".join(f"    {line}" for line in dedent(body).splitlines())
    run(shop, f"try:\n{attempt}\nexcept OSError:\n    pass\nelse:\n    raise SystemError('it was let through')\n")


@pytest.mark.parametrize(
    "path",
    ["problems/identity/reference.py", "params.yaml", "tests/conftest.py", ".git/config", "pyproject.toml"],
)
def test_no_file_of_the_laboratory_is_seen(shop: WorkerPool, path: str) -> None:
    refused(shop, f"open({str(ROOT / path)!r}).read()")


def test_no_home_no_secret_no_password_file(shop: WorkerPool, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("sk-secret")
    refused(shop, f"open({str(secret)!r}).read()")
    refused(shop, f"os.listdir({str(tmp_path)!r})")
    refused(shop, "open('/etc/shadow').read()")
    refused(shop, "os.listdir(os.path.expanduser('~root'))[0]; raise SystemError") if os.geteuid() else None


def test_the_evaluator_is_out_of_reach(shop: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    for pid in (os.getpid(), "' + str(os.getppid()) + '"):
        refused(shop, f"open('/proc/{pid}/mem', 'rb').read(1)")
        refused(shop, f"assert b'sk-secret' in open('/proc/{pid}/environ', 'rb').read(); raise SystemError")
    run(shop, "assert 'sk-secret' not in open('/proc/self/environ').read() + str(dict(os.environ))")
    refused(shop, f"os.kill({os.getpid()}, 0)")


def test_the_locks_and_their_queue_are_out_of_reach(shop: WorkerPool) -> None:
    with device_lock.device(f"test-{os.getpid()}", 60):
        (own,) = (device_queue.FOLDER / device_queue.QUEUE).glob(f"*test-{os.getpid()}")
        for path in (device_queue.FOLDER, own.parent):
            refused(shop, f"os.listdir({str(path)!r})")
        for path in (own, device_queue.FOLDER / f"test-{os.getpid()}.lock"):
            refused(shop, f"open({str(path)!r})")
            refused(shop, f"os.remove({str(path)!r})")
        refused(shop, f"open({str(own.parent / 'mine')!r}, 'w')")


@pytest.mark.parametrize("folder", ["/dev/shm", "/var/tmp", "/usr/lib", str(ROOT), str(ROOT / "kernel_scientist")])
def test_nothing_is_written_where_another_worker_could_read_it(shop: WorkerPool, folder: str) -> None:
    refused(shop, f"open({folder!r} + '/left-behind', 'w').write('x')")


def test_files_in_tmp_do_not_outlive_their_worker(shop: WorkerPool) -> None:
    run(shop, "for d in ('.', '/tmp'):\n    try: open(d + '/left-behind', 'w').write('x')\n    except OSError: pass")
    run(shop, "assert not [p for d in ('.', '/tmp') for p in Path(d).rglob('left-behind')]")


def test_packages_cannot_be_shadowed(shop: WorkerPool) -> None:
    refused(shop, "import torch; open(os.path.dirname(torch.__file__) + '/evil.py', 'w').write('x')")
    run(shop, "open('torch.py', 'w').write('raise SystemError'); import importlib, torch.nn.functional")
    with shop.worker() as worker:
        assert worker.layers


@pytest.mark.parametrize(
    "call", ["socket.socket()", "socket.socket(socket.AF_UNIX)", "socket.create_connection(('1.1.1.1', 53))"]
)
def test_no_network(shop: WorkerPool, call: str) -> None:
    refused(shop, call)


def test_temporary_files_go_where_a_kernel_may_write(shop: WorkerPool) -> None:
    run(shop, "import tempfile\nwith tempfile.NamedTemporaryFile() as file: assert file.name.startswith(os.getcwd())")


FORBIDDEN = ["os.fork()", "os.system('true')"] + [
    f"ctypes.CDLL(None).{call}" for call in ("ptrace(16, 1, 0, 0)", "unshare(0x10000000)", "mount(0, 0, 0, 0, 0)")
]


@pytest.mark.parametrize("call", FORBIDDEN)
def test_a_forbidden_call_ends_the_worker(shop: WorkerPool, call: str) -> None:
    with pytest.raises(KernelFailure) as caught:
        run(shop, call)
    assert caught.value.verdict is Verdict.REJECTED and "forbidden system call" in caught.value.reason


SIGNALS = """
import errno, platform, threading
libc = ctypes.CDLL(None, use_errno=True)
calls = {"x86_64": (234, 297, 129), "aarch64": (131, 240, 138)}[platform.machine()]
info = ctypes.create_string_buffer(128)
def signalled(who):
    answers = [libc.syscall(calls[0], who, who, 0) and ctypes.get_errno()]
    answers += [libc.syscall(calls[1], who, who, 0, info) and ctypes.get_errno()]
    return answers + [libc.syscall(calls[2], who, 0, info) and ctypes.get_errno()]
assert signalled(os.getppid()) == [errno.EACCES] * 3, signalled(os.getppid())
assert libc.syscall(calls[0], os.getpid(), threading.get_native_id(), 0) == 0
"""


def test_no_signal_reaches_another_worker_nor_the_parent(shop: WorkerPool) -> None:
    run(shop, SIGNALS)
    with pytest.raises(KernelFailure, match="SIGABRT"):
        run(shop, "os.abort()")
    with pytest.raises(KernelFailure, match="SIGABRT"):
        run(shop, "import threading; t = threading.Thread(target=os.abort); t.start(); t.join()")


def test_no_capability_and_no_way_back_to_root(shop: WorkerPool) -> None:
    run(shop, "assert 'CapEff:\\t0000000000000000' in open('/proc/self/status').read()")
    refused(shop, "os.chroot('.')")
    if shop.enclosure == "bubblewrap":
        run(shop, "assert os.getuid() != 0")


def test_the_layers_in_force_are_reported(shop: WorkerPool) -> None:
    with shop.worker() as worker:
        assert {"rlimits", "no-new-privs", "seccomp"} <= set(worker.layers)
        assert ("bubblewrap" in shop.layers) == (shop.enclosure == "bubblewrap")
        assert ("landlock" in worker.layers) == (landlock.version() > 0)


@pytest.mark.parametrize(
    "source",
    [
        f'#include "{ROOT}/params.yaml"',
        f'asm(".incbin \\"{ROOT}/params.yaml\\"");',
        '#include "/etc/passwd"',
        '#include "/proc/self/environ"',
    ],
)
def test_the_compiler_reads_no_file_of_ours(source: str) -> None:
    report = gxx.build(BuildRequest(source, {}, [])).report
    assert not report.ok
    assert "OPENAI" not in report.log and "generations" not in report.log and "root:" not in report.log


def test_folders_of_killed_fork_servers_are_cleared(shop: WorkerPool, tmp_path: Path) -> None:
    if shop.enclosure == "bubblewrap":
        pytest.skip("the folders are in a namespace and end with it")
    with pytest.raises(InfrastructureError), shop.worker():
        process = shop._process
        assert process is not None
        process.kill()
        process.wait()
    left = list(Path("/tmp").glob(f"kernel-scientist-{process.pid}-*"))
    assert left
    with shop.worker():
        assert not any(folder.exists() for folder in left)


DEEP = """
home = os.getcwd()
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
os.mkdir("locked", 0)
os.chdir(home)
"""


def test_folders_however_deep_are_the_kernels_own_failure_and_go(shop: WorkerPool) -> None:
    source = f"import os\n{DEEP}\ndef custom_kernel(data): return data[1]\n"
    for _ in range(2):
        with shop.worker() as worker:
            worker.load(source, lambda _: (None, ""))
            with pytest.raises(KernelFailure, match="too deep") as caught:
                shop.require_room(worker)
            assert caught.value.verdict is Verdict.REJECTED
            process = shop._process
    with shop.worker() as worker:
        shop.require_room(worker)  # below the same parent, which has removed what the others left
        assert shop._process is process and process is not None
        if shop.enclosure != "bubblewrap":
            (folder,) = Path("/tmp").glob(f"kernel-scientist-{process.pid}-*")
            deadline = time.monotonic() + 20  # a process that was killed ends when a busy machine comes to it
            while (left := len(list(folder.iterdir()))) > 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert left == 1


def test_folders_that_are_too_deep_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.chdir(scratch)
    exec(DEEP, {"os": os})
    fork_server._keep(scratch, tmp_path / "kept")
    fork_server.remove(scratch)
    assert not list(tmp_path.iterdir())


REMOVES = """
import os, sys, tempfile
from pathlib import Path
from kernel_scientist.sandbox import seccomp
from kernel_scientist.workers import fork_server
seccomp.confine_builder(programs=True)  # root has no power over locked folders either now
top = Path(tempfile.mkdtemp(dir="/tmp", prefix="locked-"))
os.chdir(top)
for name in ("a", "a/b", "a/b/c", "d"):
    os.mkdir(name)
Path("a/b/c/file").write_text("x")
(outside := Path(tempfile.mkdtemp(dir="/tmp", prefix="locked-"))).joinpath("file").write_text("x")
os.symlink(outside, "a/link")
for name in ("a/b/c", "a/b", "a", "d"):
    os.chmod(name, 0)
assert fork_server.used(top) is None
fork_server.remove(top)
assert not top.exists() and outside.joinpath("file").exists()
fork_server.remove(outside)
assert not outside.exists()
"""


def test_locked_folders_are_removed_without_any_privilege() -> None:
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", REMOVES], env=environment, check=True)


def test_nothing_is_left_of_many_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
    with WorkerPool(Harness()) as shop:
        for _ in range(10):
            with shop.worker():
                pass
        process = shop._process
        assert process is not None
    assert not list(Path("/tmp").glob(f"kernel-scientist-{process.pid}-*"))


def test_a_worker_without_its_sandbox_does_not_start() -> None:
    too_much = Harness(output_mib=1e30)  # a limit that the system call cannot take
    with WorkerPool(too_much) as shop, pytest.raises(InfrastructureError, match="OverflowError"), shop.worker():
        pass


def test_packages_of_another_environment_are_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch may lie in one that a .pth file names. The laboratory's own folder is on the path too, and stays hidden."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.setattr(sys, "path", [str(ROOT), str(packages), *sys.path])
    bubblewrap.readable.cache_clear()
    try:
        assert str(packages) in bubblewrap.readable() and str(ROOT) not in bubblewrap.readable()
    finally:
        bubblewrap.readable.cache_clear()


def test_no_sandbox_at_all_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "supported", lambda: False)
    with pytest.raises(SetupError, match=r"harness\.sandbox=none"):
        WorkerPool(Harness())
    with WorkerPool(Harness(sandbox="none")) as shop, shop.worker() as worker:
        assert worker.layers == ()


def test_without_namespaces_and_landlock_files_stay_readable_only_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    with pytest.raises(SetupError, match=r"install bubblewrap .* harness\.sandbox=basic"):
        WorkerPool(Harness())
    with WorkerPool(Harness(sandbox="basic")) as shop, shop.worker() as worker:
        assert "seccomp" in worker.layers and "landlock" not in worker.layers


@pytest.mark.skipif(not bubblewrap.bubblewrap_works(), reason="needs bubblewrap")
def test_a_namespace_whose_evaluator_was_killed_ends_with_the_next_one() -> None:
    around = [word for word in bubblewrap.bubblewrap("cpu", ()) if word != "--die-with-parent"]
    command = [*around, "sh", "-c", "sleep 60", "a program of this test"]

    def namespace() -> tuple[subprocess.Popen[bytes], psutil.Process]:
        outer = subprocess.Popen(command)
        inner = until(lambda: psutil.Process(outer.pid).children(), "bubblewrap starts")[0]
        until(lambda: inner.children(), "the program runs")
        return outer, inner

    killed, orphan = namespace()
    alive, inner = namespace()
    killed.kill()
    killed.wait()
    bubblewrap.end_orphans("another program")
    assert orphan.is_running()
    bubblewrap.end_orphans("a program of this test")
    until(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE, "the orphan ends")
    assert inner.is_running()
    inner.kill()
    alive.wait()


def test_a_fork_server_whose_evaluator_has_gone_ends_without_a_word() -> None:
    pool = WorkerPool(Harness())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    with theirs:
        command, control = pool._command(str(theirs.fileno())), [theirs.fileno()]
        done = subprocess.run(command, env=pool._environment(), pass_fds=control, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_pool_stays_closed() -> None:
    shop = WorkerPool(Harness())
    with shop.worker():
        pass
    shop.close()
    with pytest.raises(StoppedError), shop.worker():
        pass


BUILDS = """
import os, subprocess
subprocess.run(["true"], check=True)  # a compiler
if {stray}:
    subprocess.run(["sh", "-c", "sleep 60 &"], start_new_session=True)  # an orphan
def custom_kernel(data):
    x, out = data
    if x.numel() == {runs_at}:
        subprocess.run(["true"])
    return out.copy_(x)
"""


@pytest.mark.parametrize(
    ("stray", "runs_at", "reason"),
    [
        (False, 0, ""),
        (False, 64, "forbidden system call"),
        (True, 0, "still running"),
    ],
)
def test_programs_may_start_until_a_worker_is_sealed(stray: bool, runs_at: int, reason: str) -> None:
    """As on a GPU, where Triton starts compilers: in the build's calls, and not afterwards."""
    problem = problems.find("identity")
    harness = Harness(call_timeout_s=5, import_timeout_s=10, noise_runs=0)
    with WorkerPool(harness) as shop, shop.worker(compiles=True) as worker:
        worker.load(BUILDS.format(stray=stray, runs_at=runs_at), lambda _: (None, ""))
        evaluator = Evaluator(problem, "cpu", harness, shop)

        def call(size: int) -> None:
            evaluator.driver.row(worker, {0: evaluator.inputs.draw(Case(sizes={"size": size}, seed=1))})

        call(32)
        if not reason:
            worker.seal()
            call(64)
            return
        with pytest.raises(KernelFailure, match=reason) as caught:
            worker.seal()
            call(64)
        assert caught.value.verdict is Verdict.REJECTED


COMPILES = """
import os
from pathlib import Path
cache = Path(os.environ["TRITON_CACHE_DIR"]) / "key"
if cache.exists():
    raise SystemError(f"its cache holds {sorted(p.name for p in cache.glob('*'))}")
cache.mkdir()
(cache / "binary").write_bytes(b"x" * 1000)
(cache / "launcher.so").write_bytes(b"y")
(cache / "link").symlink_to("/etc/passwd")
os.mkfifo(cache / "pipe")
def custom_kernel(d): return d
"""


def test_compiled_files_go_to_the_next_worker_with_the_same_source_only() -> None:
    """As on a GPU: Triton's cache. Links stay links, pipes are not taken along."""
    if not landlock.version():
        pytest.skip("this system has no Landlock, and nothing is kept without it")
    with WorkerPool(Harness(import_timeout_s=10, memory_mib=512)) as shop:

        def compiles(source: str) -> None:
            with shop.worker() as worker:
                shop.fill(worker, source)
                worker.load(source, lambda _: (None, ""))
                shop.keep(worker, source)

        compiles(COMPILES)
        with pytest.raises(KernelFailure, match=r"its cache holds \['binary', 'launcher.so', 'link'\]"):
            compiles(COMPILES)
        compiles(f"{COMPILES}# another one")


def test_stopped_threads_do_nothing_until_they_go_on(shop: WorkerPool) -> None:
    busy = """
        import threading
        def count():
            while True:
                pass
        for _ in range(3):
            threading.Thread(target=count, daemon=True).start()
    """
    with shop.worker() as worker:
        worker.load(f"{dedent(busy)}\ndef custom_kernel(d): return d\n", lambda _: (None, ""))
        number = worker.process.number if worker.process is not None else 0
        assert worker.can_stop and shop.can_stop
        for paused in (worker.paused(), shop.native.stopped(number)):
            with paused as stopped:
                assert stopped.allowed
                before = others_cpu_ticks(number)
                time.sleep(0.05)
                assert others_cpu_ticks(number) == before
            deadline = time.monotonic() + 60
            while others_cpu_ticks(number) == before and time.monotonic() < deadline:
                time.sleep(0.01)
            assert others_cpu_ticks(number) > before
        with worker.paused():
            pass  # a worker that was stopped can be killed


def others_cpu_ticks(pid: int) -> int:
    """Return the CPU time of all threads but the main one."""
    stats = (task / "stat" for task in Path(f"/proc/{pid}/task").iterdir() if task.name != str(pid))
    return sum(sum(map(int, stat.read_text().rsplit(")", 1)[1].split()[11:13])) for stat in stats)
