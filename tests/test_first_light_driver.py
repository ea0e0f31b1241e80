"""First light's step before torch, with a library in CUDA's place that needs more than the sandbox allows."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.first_light import driver, driver_try
from benchmarks.first_light.driver_try import SandboxTry
from benchmarks.first_light.outcome import Asked, NotHereError, StepError
from benchmarks.parts import Done
from kernel_scientist.sandbox import landlock

LIBRARY = r"""
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
static char memory[1 << 20];
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGet(int *device, int number) { return *device = 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = memory; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuMemAlloc_v2(unsigned long *at, unsigned long bytes) { *at = (unsigned long)memory; return 0; }
int cuMemcpyHtoD_v2(char *to, const char *from, unsigned long bytes) { memcpy(to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(char *to, const char *from, unsigned long bytes) { memcpy(to, from, bytes); return 0; }
"""
NEEDS = '(open("/etc/passwd", O_RDONLY) < 0 || socket(AF_UNIX, SOCK_DGRAM, 0) < 0) ? 304 : 0'


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(driver, "CONTROL", tmp_path)
    return tmp_path


def library(folder: Path, init: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cuda.c").write_text(LIBRARY)
    command = ["gcc", "-shared", "-fPIC", "-w", f"-DINIT={init}", "cuda.c", "-o", "libcuda.so.1"]
    subprocess.run(command, cwd=folder, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))


@pytest.mark.skipif(not landlock.version(), reason="this machine has no Landlock")
@pytest.mark.usefixtures("machine")
def test_each_call_is_made_in_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library lies where Landlock hides it."""
    library(tmp_path, "0", monkeypatch)
    monkeypatch.setattr(driver, "TRY_S", 60.0)
    tried = driver._tried
    assert (
        tried(driver.NOTHING)
        == tried(SandboxTry(readable=(str(tmp_path),)))
        == tried(SandboxTry(without=("landlock",)))
        == ""
    )
    assert "libcuda" in tried(driver.ALL)
    library(tmp_path, NEEDS, monkeypatch)
    assert tried(driver.NOTHING) == ""
    shown = SandboxTry(readable=(str(tmp_path), "/etc"))
    assert tried(shown) == "cuInit reports error 304" and tried(shown.joined(SandboxTry(calls=("socket",)))) == ""


def test_the_smallest_set_of_what_is_lacking_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(attempt: SandboxTry) -> str:
        file = "landlock" in attempt.without or "/run" in attempt.readable or "/" in attempt.readable
        call = "system calls" in attempt.without or "kill" in attempt.calls
        return "" if file and call else "cuInit reports error 304"

    monkeypatch.setattr(driver, "_tried", tried)
    found: dict[str, Any] = {}
    with pytest.raises(StepError, match=r"error 304.*it starts with: readable /run; allowed kill"):
        for facts in driver.driver_starts(Asked()):
            found |= facts
    assert found["driver, without landlock"] == "cuInit reports error 304" and found["driver, no layer"] == "starts"


def test_where_nothing_is_refused_it_ends_early(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_tried", lambda _: "")
    assert sum("driver, " in name for facts in driver.driver_starts(Asked()) for name in facts) == 2
    monkeypatch.setattr(driver, "_tried", lambda _: "cuInit reports error 100")
    with pytest.raises(StepError, match="without any sandbox either: cuInit reports error 100"):
        list(driver.driver_starts(Asked()))


def test_the_call_that_ends_a_process_is_named() -> None:
    begun = '{"call": "dlopen"}\n{"call": "cuInit"}\n'
    assert driver.refusal(Done(-31, 0.1, begun)) == "killed by SIGSYS in cuInit"
    assert driver.refusal(Done(None, 5.0, begun)) == "hung in cuInit"
    assert driver.refusal(Done(0, 0.1, begun + '{"error": "cuInit reports error 304"}\n')) == "cuInit reports error 304"
    assert driver.refusal(Done(0, 0.1, begun + '{"works": true}\n')) == ""


def test_the_stand_in_has_no_driver() -> None:
    with pytest.raises(NotHereError):
        list(driver.driver_starts(Asked(standin=True)))
    assert driver_try.LIBRARIES[0] == "libcuda.so.1"
