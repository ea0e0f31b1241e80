"""Problems are examined before use: a check that accepts a known wrong output is refused, with the reason."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.problems import admission
from kernel_scientist.records.errors import SetupError
from tests.conftest import ROOT, Cli, without_progress


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(ROOT / "problems/rmsnorm", tmp_path / "rmsnorm"))


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))


@pytest.mark.parametrize("name", problems.names())
def test_our_problems_are_fit(name: str) -> None:
    problem = problems.load(ROOT / "problems" / name)
    assert [admission.examine(problem, case) for case in problem.profile("cpu").tests[1:]] == ["", "", ""]


@pytest.mark.parametrize(
    ("file", "old", "new", "control"),
    [
        ("reference.py", "RTOL, ATOL = 1e-2, 1e-3", "RTOL, ATOL = 1e-2, 100.0", "zeros"),
        (  # a check that does not care which row is which
            "reference.py",
            "got, want = output.to(torch.float32), expected.to(torch.float32)",
            "got, want = (y.to(torch.float32).sort(0).values for y in (output, expected))",
            "permuted rows",
        ),
        ("lab.yml", "precision: float8_e4m3fn ", "precision: bfloat16 ", "lower precision"),
    ],
)
def test_a_check_that_lets_a_wrong_output_through_is_refused(
    folder: Path, file: str, old: str, new: str, control: str
) -> None:
    change(folder, file, old, new)
    with pytest.raises(SetupError, match=f"passes a wrong output on .*: {control}"):
        admission.require(problems.load(folder), "cpu")


def test_half_of_a_reduction_must_not_be_enough(folder: Path) -> None:
    change(folder, "reference.py", "x32.square().mean(dim=-1, keepdim=True)", "x32[:, :1].square()")
    change(folder, "reference.py", "x64.square().mean(dim=-1, keepdim=True)", "x64[:, :1].square()")
    change(folder, "lab.yml", "reduction: [0, 1]", "reduction: [1, 0]")  # zeroes half of the weights: seen
    assert admission.examine(problems.load(folder), problems.load(folder).profile("cpu").tests[-1]) == ""
    change(folder, "lab.yml", "reduction: [1, 0]", "reduction: [2, 1]")  # half of a buffer nobody reads
    with pytest.raises(SetupError, match="half of the reduction"):
        admission.require(problems.load(folder), "cpu")


def test_a_golden_output_must_pass(folder: Path) -> None:
    change(
        folder,
        "reference.py",
        "* weight).to(torch.bfloat16)\n\n\ndef check",
        "* weight * 2).to(torch.bfloat16)\n\n\ndef check",
    )
    with pytest.raises(SetupError, match="golden output in double precision fails"):
        admission.require(problems.load(folder), "cpu")


def test_what_passed_once_is_not_run_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admission.require(problems.load(folder), "cpu")
    monkeypatch.setattr(admission, "examine", lambda *_: "it would be refused now")
    admission.require(problems.load(folder), "cpu")
    change(folder, "reference.py", "EPS = 1e-6", "EPS = 2e-6")
    with pytest.raises(SetupError, match="refused now"):
        admission.require(problems.load(folder), "cpu")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("policy: {library: false}", "policy: {libary: false}", "policy.libary"),
        ("policy: {library: false}", "policy: {library: perhaps}", "policy.library"),
        ("precision: float8_e4m3fn ", "precision: float7 ", "'float7' is not a torch type"),
        ("rows: [1, 300, 1]", "rows: [300, 1, 1]", "vary: rows"),
    ],
)
def test_a_wrong_key_in_lab_yml_is_one_sentence(
    lab: Path, cli: Cli, prefect_api: str, old: str, new: str, words: str
) -> None:
    change(lab / "problems/rmsnorm", "lab.yml", old, new)
    seed = str(lab / "problems/rmsnorm/seeds/cpp_naive.py")
    done = cli("evaluate", seed, "--problem", "rmsnorm", PREFECT_API_URL=prefect_api)
    lines = without_progress(done.stderr)
    assert done.returncode == 2 and len(lines) == 1 and words in lines[0], done.stderr


@pytest.mark.slow
def test_processes_end_with_a_killed_command(tmp_path: Path) -> None:
    for number in (1, 2):
        pid = tmp_path / f"pid{number}"
        text = f"import os, pathlib, time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(120)\n"
        parts = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
        (tmp_path / f"{number}_Slow.py").write_text(f"n = 4\n{parts}{text}")
    env = {**os.environ, "KERNEL_SCIENTIST_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "kernel_scientist", "problems", "admit", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len([f for f in tmp_path.glob("pid*") if f.read_text()]) == 2)
        process.kill()
    pids = [int(f.read_text()) for f in tmp_path.glob("pid*")]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)
