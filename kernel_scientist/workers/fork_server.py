"""The fork server: it imports torch once and forks workers, which takes milliseconds instead of seconds.

Runs as `python -m kernel_scientist.workers.fork_server FD NATIVE CORES` with a clean environment and no secrets. Over
the control socket it receives JSON requests and sends one JSON reply each:

    {"spawn": {...settings...}} + [socket, log file, status pipe, memories]  ->  {"pid": 123}
    {"kill": 123}
    {"used": 123}                ->  {"used": bytes in the worker's folder, or null}
    {"keep": 123, "name": name}  keep the files that a worker compiled
    {"fill": 123, "name": name}  copy them to the folder of a fresh worker

When a worker ends, the fork server writes its exit status to its status pipe as decimal text. When the control socket
closes, the evaluator has ended, and the fork server kills all workers.

What a worker left running when it ended becomes a child of the fork server, which kills it.

Kept files go only to workers with the same source, to save Triton's compilation. They cannot carry
results from one worker to the next, because no two calls have the same inputs.
"""

import contextlib
import fcntl
import functools
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from kernel_scientist.sandbox import bubblewrap, lifetime
from kernel_scientist.workers import execution_environment
from kernel_scientist.workers.native import NativeHarness

MESSAGE = 1 << 16
PREFIX = "kernel-scientist-"
HOMES = ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
"""Environment variables that are set to the worker's own folder, so that programs write there."""
OURS = "harness"
"""Name of the compiled files of the harness's own kernel (`delay`), which every worker gets."""
MOST_KEPT = 256 << 20
"""Most bytes kept from one worker; if its files are larger, none is kept."""
MOST_KEPT_OF_ALL = 2 * MOST_KEPT
"""Most bytes kept of all sources together."""
TRITON_LIST, MOST_LIST = "__grp__", 1 << 16
"""Beginning of the names of Triton's lists of files, and most bytes of one."""
DEEPEST = 64
"""Deepest nesting of folders that is searched."""


class Forked(NamedTuple):
    """The fork server's record of a worker."""

    ended: int
    """Descriptor of the process (pidfd); it becomes readable when the worker ends."""
    status_pipe: int
    scratch: Path
    """Its folder."""


class ForkServer:
    """The fork server's request loop. It is single-threaded, because forking with threads is unsafe."""

    def __init__(self, control: socket.socket, native: NativeHarness, folder: Path) -> None:
        self.control, self.native, self.folder = control, native, folder
        self.workers: dict[int, Forked] = {}
        self.ready = selectors.DefaultSelector()
        self.inherited = execution_environment.Inherited.now()
        lifetime.adopt_orphans()

    def serve(self) -> None:
        """Answer requests and report the ends of workers until the control socket closes."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the evaluator handles Ctrl-C
        self.ready.register(self.control, selectors.EVENT_READ)
        while True:
            for key, _ in self.ready.select():
                if key.data is not None:
                    self._reap(key.data)
                elif not self._answer():
                    self._kill_all()
                    return

    def _answer(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE, 5)
        except OSError:
            data, descriptors = b"", []
        if not data:
            return False
        request: dict[str, Any] = json.loads(data)
        reply: dict[str, Any] = {}
        match request:
            case {"spawn": settings}:
                reply = {"pid": self._spawn(settings, descriptors)}
            case {"keep": pid, "name": name}:
                _keep(self._scratch(pid), self._kept(name))
                _drop_oldest([one for one in self.folder.glob("kept-*") if one != self._kept(OURS)])
            case {"fill": pid, "name": name}:
                _fill(self._kept(name), self._scratch(pid))
            case {"used": pid}:
                reply = {"used": used(self._scratch(pid))}
            case _:
                self._kill(request["kill"])
        self.control.send(json.dumps(reply).encode())
        return True

    def _scratch(self, pid: int) -> Path:
        return self.workers[pid].scratch if pid in self.workers else self.folder / "gone"

    def _kept(self, name: str) -> Path:
        return self.folder / f"kept-{name}"

    def _spawn(self, settings: dict[str, Any], descriptors: list[int]) -> int:
        sock, log, status_pipe, *memories = descriptors
        scratch = settings["limits"]["scratch"] = tempfile.mkdtemp(dir=self.folder)
        _fill(self._kept(OURS), Path(scratch))
        pid = os.fork()
        if pid == 0:
            try:
                self._become_worker(settings, sock, log, memories)
            except BaseException:
                traceback.print_exc()  # into the worker's log, whose end the evaluator quotes
            finally:
                os._exit(70)
        for descriptor in (sock, log, *memories):
            os.close(descriptor)
        self.workers[pid] = Forked(os.pidfd_open(pid), status_pipe, Path(scratch))
        self.ready.register(self.workers[pid].ended, selectors.EVENT_READ, pid)
        return pid

    def _become_worker(self, settings: dict[str, Any], sock: int, log: int, memories: list[int]) -> None:
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.setsid()
        lifetime.die_with_parent()
        lifetime.adopt_orphans()
        os.chdir(scratch := settings["limits"]["scratch"])
        os.environ.update(dict.fromkeys(HOMES, scratch))
        execution_environment.enter(settings["cores"], settings["nice"])
        self.inherited.restore()
        from kernel_scientist.workers.untrusted import main as worker

        tempfile.tempdir = None  # the fork server's; the worker's is its own folder
        own = [fcntl.fcntl(fd, fcntl.F_DUPFD, 16) for fd in (sock, *memories)]
        for number, descriptor in enumerate(own, worker.CHANNEL):
            os.dup2(descriptor, number)
        os.closerange(worker.CHANNEL + len(own), 1 << 16)
        worker.run(socket.socket(fileno=worker.CHANNEL), settings, self.native)

    def _reap(self, pid: int) -> None:
        worker = self.workers.pop(pid)
        self.ready.unregister(worker.ended)
        os.close(worker.ended)
        _, status = os.waitpid(pid, 0)
        _end_group(pid)
        self._end_orphans()
        remove(worker.scratch)
        with contextlib.suppress(BrokenPipeError):  # the evaluator may have closed it
            os.write(worker.status_pipe, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(worker.status_pipe)

    def _end_orphans(self) -> None:
        """Kill the descendants of workers that have ended, also those in a session of their own, and wait for them."""
        with contextlib.suppress(FileNotFoundError):  # a system without lists of children
            while orphans := set(lifetime.children()) - self.workers.keys():
                for orphan in orphans:
                    os.kill(orphan, signal.SIGKILL)
                    os.waitpid(orphan, 0)

    def _kill(self, pid: int) -> None:
        if pid in self.workers:  # once reaped, its number may belong to another process
            _end_group(pid)
            os.kill(pid, signal.SIGKILL)

    def _kill_all(self) -> None:
        for pid in self.workers:
            self._kill(pid)
        for pid in self.workers:
            os.waitpid(pid, 0)  # its folder is removed next, so it must have ended


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _keep(scratch: Path, place: Path) -> None:
    """Copy the files of a worker's folder to `place`, unless `place` has files or the folder is too large."""
    size = used(scratch)
    if size is not None and size <= MOST_KEPT and not place.exists():
        _fill(scratch, place)


def _drop_oldest(kept: list[Path]) -> None:
    """Remove the folders of kept files that are oldest, until the others are small enough together."""
    rest = sorted(kept, key=lambda place: place.stat().st_mtime)
    while len(rest) > 1 and sum(used(place) or 0 for place in rest) > MOST_KEPT_OF_ALL:
        remove(rest.pop(0))


def _fill(place: Path, scratch: Path) -> None:
    """Copy files, folders and links from `place`, if it exists. A file that is there already is left alone.

    A worker may have loaded a library from it: to write there would change the code that the worker runs.
    """
    if place.is_dir():
        with contextlib.suppress(OSError):  # special and unreadable files are skipped
            copy = functools.partial(_copy_unless_there, str(place), str(scratch))
            shutil.copytree(place, scratch, symlinks=True, dirs_exist_ok=True, copy_function=copy)


def _copy_unless_there(place: str, scratch: str, source: str, target: str) -> None:
    """Copy a file. Triton's lists of a kernel's files name them by their whole paths: these become the copies'."""
    if os.path.lexists(target):
        return
    shutil.copy2(source, target)
    name = os.path.basename(target)
    if name.startswith(TRITON_LIST) and os.path.getsize(target) <= MOST_LIST:
        text = Path(target).read_text(errors="replace")
        Path(target).write_text(text.replace(place, scratch))


def used(folder: Path) -> int | None:
    """Return the size of a folder in bytes; None if folders in it are locked or nested too deeply."""
    total = 0
    try:
        for root, folders, names in os.walk(folder, onerror=_refuse):
            if folders and len(Path(root).relative_to(folder).parts) >= DEEPEST:
                return None
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # the running worker may delete files
                    total += os.lstat(os.path.join(root, name)).st_blocks * 512
    except OSError:
        return None
    return total


def remove(folder: Path) -> None:
    """Remove the folder of a process that has ended, as far as permissions allow."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if folder.exists():  # folders in it are locked, or too deep for Python
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, str(folder)], capture_output=True, check=False)


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _clear_stale() -> None:
    """Remove the folders of fork servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            remove(folder)


def main() -> None:
    """Import the shared modules, serve requests, and remove the folder at the end."""
    control = socket.socket(fileno=int(sys.argv[1]))
    native = NativeHarness(sys.argv[2])
    os.sched_setaffinity(0, {int(core) for core in sys.argv[3].split(",")})
    for module in ("kernel_scientist.workers.untrusted.main", *sys.argv[4:]):
        importlib.import_module(module)
    bubblewrap.readable()  # cached here: it takes 2 ms
    _clear_stale()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    try:
        with contextlib.suppress(ConnectionError):  # the evaluator has gone
            ForkServer(control, native, folder).serve()
    finally:
        remove(folder)
    os._exit(0)  # the interpreter's end takes half a second with torch, for which the evaluator waits


if __name__ == "__main__":
    main()
