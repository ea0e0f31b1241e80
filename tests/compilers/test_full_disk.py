"""A full disk is reported as a full disk, not as an error in a kernel's source."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, without_progress
from tests.small_disk import on_a_disk_of

BUILD = """
from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.request import BuildRequest
print(gxx.build(BuildRequest('extern "C" void f() {}', {}, [])).report.ok)
"""


def test_a_disk_that_fills_during_a_build_is_infrastructure(tmp_path: Path) -> None:
    assert on_a_disk_of("8m", tmp_path / "large", "-c", BUILD).stdout == "True\n"
    done = on_a_disk_of("12k", tmp_path / "small", "-c", BUILD)
    assert f"InfrastructureError: no space left on device: {tmp_path}/small/objects" in done.stderr, done.stderr


def test_a_cache_without_room_is_named_before_anything_starts(tmp_path: Path) -> None:
    seed = str(ROOT / "problems/identity/seeds/cpp_blocked.py")
    done = on_a_disk_of("64k", tmp_path / "cache", "-m", "kernel_scientist", "evaluate", seed, "--problem", "identity")
    (error,) = without_progress(done.stderr)
    assert done.returncode == 2 and error.startswith(f"error: cannot write to {tmp_path}/cache")
    assert "No space left on device" in error


@pytest.mark.parametrize("full", ["mlruns", ".cache", ".prefect"])
def test_a_campaign_whose_disk_has_too_little_room_does_not_start(lab: Path, full: str) -> None:
    settings = {"KERNEL_SCIENTIST_CACHE": str(lab / ".cache"), "KERNEL_SCIENTIST_ROOT": str(lab)}
    before = sorted(lab.rglob("*"))
    call = ("-m", "kernel_scientist", "optimize", "--set", "problem=identity")
    done = on_a_disk_of("3m", lab / full, *call, **settings, PREFECT_HOME=str(lab / ".prefect"))
    (error,) = without_progress(done.stderr)
    assert done.returncode == 2 and error.startswith(f"error: there is too little room on the disk of {lab / full}: ")
    assert re.search(r": [123](\.\d+)? MB are free, and a campaign of 18 kernels takes up to \d\d MB \(", error)
    made = {file for file in set(lab.rglob("*")) - set(before) if file.name not in (full, ".cache")}
    assert not made, "something was started"


def test_a_dry_run_refuses_a_disk_with_too_little_room(lab: Path) -> None:
    settings = {"KERNEL_SCIENTIST_CACHE": str(lab / ".cache"), "KERNEL_SCIENTIST_ROOT": str(lab)}
    call = ("-m", "kernel_scientist", "optimize", "--dry-run", "--set", "problem=identity")
    done = on_a_disk_of("3m", lab / "mlruns", *call, **settings, PREFECT_HOME=str(lab / ".prefect"))
    assert done.returncode == 2 and "seeds:" in done.stdout, done.stderr
    assert f"error: there is too little room on the disk of {lab / 'mlruns'}: " in done.stderr
