"""Workers' view of this machine: the paths that they can read, and bubblewrap's namespaces around all workers.

In the namespaces there is no network, no other process, no home, no problem folder, a private /tmp of bounded size, and
a read-only root made of the system's libraries, Python and this package. Landlock (see `landlock`) uses the same paths.
"""

import contextlib
import functools
import os
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
LISTED = Path(__file__).resolve().parent / "path"
"""Folder in which processes find this package that may not list the one around it."""
AMD = ("/opt/rocm", "/opt/amdgpu")
"""ROCm, and the libdrm of AMD's packages, to which ROCm is linked."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", *AMD)
MACHINE = ("/sys/devices/system", "/proc/cpuinfo", "/proc/meminfo")
GPU_FACTS = ("/sys", "/proc/devices", "/proc/sys/vm")
"""Paths that a GPU's driver reads. They are read-only, because clocks can be set there."""
PROC_DRIVER = Path("/proc/driver")
"""Folder of what drivers report: NVIDIA's reads its own entries here, and does not start if it cannot."""
GPU_DEVICES = ("kfd", "dri", "nvidia*", "nvhost*", "nvmap", "dxg")
"""Names in /dev that the drivers of AMD's and NVIDIA's GPUs use; `dxg` is that of Windows' Linux."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
TMP_BYTES = 1 << 30
PACKAGES = ("site-packages", "dist-packages")
"""Names of the folders into which Python's packages are installed."""


def gpu_devices() -> tuple[str, ...]:
    """Return the device files of all GPUs; environment variables select the one that a worker uses."""
    return tuple(str(path) for name in GPU_DEVICES for path in sorted(Path("/dev").glob(name)))


def gpu_facts() -> tuple[str, ...]:
    """Return the paths that a GPU's driver reads; NVIDIA's has several of its own (nvidia, nvidia-uvm, nvidia-caps)."""
    return (*GPU_FACTS, *(str(path) for path in sorted(PROC_DRIVER.glob("nvidia*"))))


def python_path() -> str:
    """Return PYTHONPATH for confined processes: this package, and folders of packages that a user put on the path."""
    return os.pathsep.join((str(PACKAGE.parent), *_given()))


def _given() -> tuple[str, ...]:
    """Return the folders of packages on Python's path that the interpreter does not find by itself in every process.

    They come before the standard library (PYTHONPATH), or belong to a user, whose home confined processes do not have.
    The current folder and that of this package may be a laboratory, with problems in it: these stay hidden, whatever
    they contain.
    """
    library = sysconfig.get_path("stdlib")
    first = sys.path[: sys.path.index(library)] if library in sys.path else []
    own = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    hidden = (PACKAGE.parent, Path.cwd())
    found = list[str]()
    for path in map(Path, (*first, *(path for path in own if path in sys.path))):
        named = path.name in PACKAGES
        laboratory = not named and any(folder.is_relative_to(path.resolve()) for folder in hidden)
        if path.is_absolute() and not laboratory and path.is_dir() and (named or any(path.glob("*.dist-info"))):
            found.append(str(path))
    return tuple(dict.fromkeys(found))


@functools.cache
def readable() -> tuple[str, ...]:
    """Return the paths that a worker must be able to read.

    torch may lie outside Python's own folders: in a user's folder, or in another environment that a .pth file names.
    """
    packages = {*(path for path in sys.path if Path(path).name in PACKAGES), *_given()}
    python = {sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), *packages}
    return (*SYSTEM, *sorted(python), str(PACKAGE))


def visible(device: str) -> tuple[str, ...]:
    """Return the paths that Landlock lets a worker read."""
    return (*readable(), *MACHINE, f"/proc/{os.getpid()}", *((*gpu_facts(), *gpu_devices()) if device != "cpu" else ()))


def writable(device: str, scratch: str) -> tuple[str, ...]:
    """Return the paths that Landlock lets a worker write: on a GPU also its threads' names.

    CUDA's driver names threads by writing to /proc, and does not start if it cannot (error 304).
    """
    return (scratch, *DEVICES, *((*gpu_devices(), f"/proc/{os.getpid()}/task") if device != "cpu" else ()))


@functools.cache
def bubblewrap_refusal() -> str:
    """Return why this system cannot use bubblewrap: an empty string if it can."""
    if shutil.which("bwrap") is None:
        return "not installed: apt-get install bubblewrap"
    try:
        done = subprocess.run([*bubblewrap("cpu", ()), "true"], capture_output=True, timeout=20, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def bubblewrap_works() -> bool:
    """Whether bubblewrap is installed and this system lets it make namespaces."""
    return not bubblewrap_refusal()


def end_orphans(program: str) -> None:
    """Kill half-made namespaces for `program` whose evaluator was killed.

    bubblewrap's inner process waits for the outer one before it asks to die with it. If the outer one is killed first,
    the inner one waits for ever (https://github.com/containers/bubblewrap/issues/633).
    """
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            if (folder / "comm").read_text() != "bwrap\n" or program.encode() not in (folder / "cmdline").read_bytes():
                continue
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            inner = status["NSpid"].split()[1:] == ["1"]
            if inner and Path(f"/proc/{int(status['PPid'])}/comm").read_text() != "bwrap\n":
                os.kill(int(folder.name), signal.SIGKILL)


def bubblewrap(device: str, files: Sequence[str], folder: str = "/tmp") -> list[str]:
    """Return the command that runs a program in its own namespaces, in a folder that it may write to.

    `files`: additional paths that the program can read.
    """
    command = ["bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--uid", "65534", "--gid", "65534", "--hostname", "worker"]
    command += ["--die-with-parent", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]
    for path in readable():
        if Path(path).is_symlink():
            command += ["--symlink", str(Path(path).readlink()), path]
            if not str(Path(path).resolve()).startswith("/usr"):  # ROCm's lies beside its link
                command += ["--ro-bind-try", str(Path(path).resolve()), str(Path(path).resolve())]
        else:
            command += ["--ro-bind-try", path, path]
    command += ["--ro-bind-try", MACHINE[0], MACHINE[0]]
    if device != "cpu":
        command += ["--ro-bind-try", GPU_FACTS[0], GPU_FACTS[0]]  # the others lie in the namespace's own /proc
        for path in gpu_devices():
            command += ["--dev-bind-try", path, path]
    for path in files:
        command += ["--ro-bind", path, path]
    if folder != "/tmp":
        command += ["--bind", folder, folder]
    if device == "cpu":  # a GPU's driver names threads in /proc
        command += ["--remount-ro", "/proc", "--remount-ro", "/dev"]
    return [*command, "--chdir", folder, "--"]
