"""What CUDA's driver does when it starts, in a worker's sandbox, as far as it can be tried without a GPU.

It names its threads through /proc, listens on a socket that nobody connects to, makes an anonymous file, and reserves
much address space. If one of these is refused, it does not start.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist.sandbox import landlock
from tests.conftest import ROOT

CONFINED = """
import mmap, os, resource, socket, sys, threading
from kernel_scientist.sandbox import seccomp

limits = seccomp.Limits("auto", sys.argv[1], sys.argv[2], 1 << 30, 1 << 30, 1 << 24, True, True)
layers = seccomp.confine_worker(limits)

def refused(work):
    try:
        work()
    except (PermissionError, OSError) as error:
        return type(error).__name__
    return "allowed"

def name_a_thread():
    started, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (started.set(), end.wait()))
    thread.start()
    started.wait()
    try:
        with open(f"/proc/self/task/{thread.native_id}/comm", "w") as name:
            name.write("cuda00001400006")
    finally:
        end.set()

def listen():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
        ours.bind(f"\\0cuda-uvmfd-{os.getpid()}")
        ours.listen(1)

def connect():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
        ours.bind(f"\\0to-{os.getpid()}")
        ours.listen(1)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
            other.connect(f"\\0to-{os.getpid()}")

def accept():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours:
        ours.bind(f"\\0of-{os.getpid()}")
        ours.listen(1)
        ours.setblocking(False)
        ours.accept()

def reserve():
    libc = __import__("ctypes").CDLL(None, use_errno=True)
    libc.mmap.restype = __import__("ctypes").c_void_p
    size = __import__("ctypes").c_size_t(1 << 40)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # without reserving memory
    if libc.mmap(None, size, 0, flags, -1, 0) == 2**64 - 1:
        raise OSError("mmap")

print(refused(name_a_thread), refused(listen), refused(reserve))
print(refused(lambda: os.close(os.memfd_create("cuda"))))
print(refused(connect), refused(accept), refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)))
print(refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)), refused(socket.socket))
print(refused(lambda: open("/proc/self/comm", "w")) if "landlock" in layers else "PermissionError")
seccomp.seal(sys.argv[1] != "cpu")
print(refused(listen))
"""


def confined(device: str, folder: Path) -> list[str]:
    command = [sys.executable, "-c", CONFINED, device, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_gpus_worker_lets_cudas_driver_start(tmp_path: Path) -> None:
    assert confined("cuda", tmp_path) == [*["allowed"] * 4, *["PermissionError"] * 7]


def test_a_worker_on_a_cpu_has_none_of_it(tmp_path: Path) -> None:
    if not landlock.version():
        pytest.skip("this machine has no landlock")
    found = confined("cpu", tmp_path)
    assert found == ["PermissionError", "PermissionError", "OSError", "allowed", *["PermissionError"] * 7]
