"""What is said of kernels on a machine that has no compiler for HIP, and what works there all the same."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import ROOT, Cli

HIPCC = Path("/opt/rocm/bin/hipcc")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(HIPCC.exists(), reason="hipcc is found there in any case")]
COMPILERS = ("clang", "hipcc")


@pytest.fixture(scope="module")
def search_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with every program of this machine but compilers for HIP."""
    folder = tmp_path_factory.mktemp("bin")
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in place.iterdir() if place.is_dir() else ():
            link = folder / program.name
            if not program.name.startswith(COMPILERS) and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_a_hip_kernel_is_undecided_and_one_sentence_says_why(cli: Cli, search_path: str) -> None:
    seed = ROOT / "problems/identity/seeds/hip_naive.py"
    done = cli("evaluate", str(seed), "--problem", "identity", "--target", "model:mi300x", PATH=search_path)
    (line,) = done.stdout.splitlines()
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert line.startswith("infrastructure: it cannot be compiled on this machine: no HIP compiler: ")
    assert "clang-19 is installed (Debian: apt-get install clang-19)" in line


def test_a_triton_kernel_is_executed_and_predicted(cli: Cli, search_path: str) -> None:
    seed = ROOT / "problems/identity/seeds/triton_naive.py"
    done = cli("evaluate", str(seed), "--problem", "identity", "--target", "model:mi300x", "--json", PATH=search_path)
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["verdict"] == "ok", found
    assert found["coverage"].startswith("executed: all programs of ") and found["predicted"]["cases"]
