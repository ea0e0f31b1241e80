"""One try to start CUDA's driver behind some of the sandbox's layers, in this process, without torch.

`python -m benchmarks.first_light.driver_try TRY`: a `SandboxTry` as JSON. Prints a line of JSON before and after each
call, so that one which ends the process is known. Imports only the standard library and the sandbox.
"""

import ctypes
import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.first_light import layers
from kernel_scientist.sandbox import bubblewrap, seccomp, system_calls

LIBRARIES = (
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
)
BYTES = 1 << 20
MEMORY, OUTPUT = 4 << 30, 64 << 20


@dataclass(frozen=True)
class SandboxTry:
    """What a try leaves out of a worker's sandbox, or adds to what it allows."""

    without: tuple[str, ...] = ()
    """Layers (`layers.FUNCTIONS`)."""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    """System calls that the filter lets through."""

    def joined(self, other: "SandboxTry") -> "SandboxTry":
        """Return the try with what either leaves out and adds."""
        mine, theirs = asdict(self), asdict(other)
        return SandboxTry(**{name: tuple(dict.fromkeys((*mine[name], *theirs[name]))) for name in mine})

    def words(self) -> str:
        """Return it as words: empty for a worker's whole sandbox."""
        parts = {"without": self.without, "readable": self.readable, "writable": self.writable, "allowed": self.calls}
        return "; ".join(f"{name} {', '.join(values)}" for name, values in parts.items() if values)


def confine(attempt: SandboxTry, scratch: str) -> tuple[str, ...]:
    """Confine this process as a worker, but for what the try says; return the layers in force."""
    for layer in attempt.without:
        layers.leave_out(layer)
    visible, writable = bubblewrap.visible, bubblewrap.writable
    program = system_calls.program

    def more_read(device: str) -> tuple[str, ...]:
        return (*visible(device), *attempt.readable)

    def more_written(device: str, folder: str) -> tuple[str, ...]:
        return (*writable(device, folder), *attempt.writable)

    def more_called(allowed: tuple[str, ...] = (), *others: Any, **named: Any) -> bytes:
        return program((*allowed, *attempt.calls), *others, **named)

    for module, name, more in (
        (bubblewrap, "visible", more_read),
        (bubblewrap, "writable", more_written),
        (system_calls, "program", more_called),
    ):
        setattr(module, name, more)
    limits = seccomp.Limits("auto", "cuda", scratch, MEMORY, MEMORY, OUTPUT, programs=True, threads=True)
    return seccomp.confine_worker(limits)


def use_driver() -> None:
    """Start the driver, and copy some bytes to the GPU and back. Raises OSError naming the call that fails."""
    cuda = _library()
    context, device, memory = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
    _call(cuda, "cuInit", 0)
    _call(cuda, "cuDeviceGet", ctypes.byref(device), 0)
    _call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    _call(cuda, "cuCtxSetCurrent", context)
    _call(cuda, "cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(BYTES))
    data, back = ctypes.create_string_buffer(os.urandom(BYTES), BYTES), ctypes.create_string_buffer(BYTES)
    _call(cuda, "cuMemcpyHtoD_v2", memory, data, ctypes.c_size_t(BYTES))
    _call(cuda, "cuMemcpyDtoH_v2", back, memory, ctypes.c_size_t(BYTES))
    if back.raw != data.raw:
        raise OSError("cuMemcpyDtoH_v2 gives other bytes than were copied to the GPU")


def _library() -> ctypes.CDLL:
    errors = list[str]()
    _say(call="dlopen")
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            errors.append(str(error))
    raise OSError(f"dlopen: {errors[0]}")


def _call(cuda: ctypes.CDLL, name: str, *arguments: Any) -> None:
    _say(call=name)
    if error := getattr(cuda, name)(*arguments):
        raise OSError(f"{name} reports error {error}")


def _say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def main() -> None:
    """Make the try."""
    attempt = SandboxTry(**{name: tuple(values) for name, values in json.loads(sys.argv[1]).items()})
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ["TMPDIR"] = scratch
        try:
            _say(call="the sandbox")
            _say(layers=confine(attempt, scratch))
            use_driver()
            _say(works=True)
        except OSError as error:
            _say(error=str(error)[:500])
        sys.stdout.flush()
        os._exit(0)  # what the driver does at the end is not asked; `driver` removes the folder


if __name__ == "__main__":
    main()
