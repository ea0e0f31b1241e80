"""One kernel at the command line: without Prefect, with progress on standard error, with the tasks' retries."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernel_scientist.campaign.build_timing_lock import BuildTimingLock
from kernel_scientist.campaign.steps import DELAYS_S, FUNCTIONS
from kernel_scientist.records.errors import DeviceBusyError, InfrastructureError
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from tests.conftest import Cli

KERNEL = Kernel(name="mine", language="cpp", source="def custom_kernel(data): return data")
DONE = Evaluation(verdict=Verdict.OK)


def test_one_kernel_is_judged_without_services(cli: Cli, lab: Path) -> None:
    (lab / "mine.py").write_text("def custom_kernel(d):\n    return d[1].copy_(d[0])\n")
    done = cli("evaluate", "mine.py", "--problem", "identity", "--json", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0 and json.loads(done.stdout)["verdict"] == "ok", done.stderr
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "torch" in imported and not imported & {"prefect", "mlflow", "litellm", "scipy.stats"}
    others = ("import time:", "waiting for device", "warning: ")
    said = [line for line in done.stderr.splitlines() if not line.startswith(others)]
    steps = ["starting", "compiling mine", "checking mine", "waiting for the device", "timing mine"]
    assert said and said == [f"{step} ..." for step in steps[-len(said) :]]  # those of the first second are not shown


def test_a_kernel_that_fails_is_not_timed(cli_here: Cli, lab: Path) -> None:
    (lab / "wrong.py").write_text("def custom_kernel(d):\n    return d[1]\n")
    done = cli_here("evaluate", "wrong.py", "--problem", "identity")
    assert done.returncode == 1 and done.stdout.startswith("incorrect"), done.stdout
    assert "timing" not in done.stderr


def test_a_file_is_called_by_its_own_name(cli_here: Cli, lab: Path) -> None:
    (lab / r"my \1.py").write_text("def custom_kernel(d):\n    return d[0].nothing()\n")
    for command in ("evaluate", "validate"):
        done = cli_here(command, r"my \1.py", "--problem", "identity", "--json")
        told = json.loads(done.stdout)
        assert done.returncode == 1 and r'File "my \1.py", line 2, in custom_kernel' in told["evidence"][-1], told
        assert "kernel.py" not in done.stdout


def test_a_kernel_is_confirmed_without_prefect(cli_here: Cli, lab: Path) -> None:
    (lab / "slow.py").write_text(
        "import time\ndef custom_kernel(d):\n    time.sleep(0.01)\n    return d[1].copy_(d[0])\n"
    )
    (lab / "quick.py").write_text("def custom_kernel(d):\n    return d[1].copy_(d[0])\n")
    settings = ("--set", "validate.processes=2", "--set", "validate.blocks=3", "--problem", "identity", "--json")
    done = cli_here("validate", "quick.py", "--against", "slow.py", *settings)
    assert done.returncode == 0 and json.loads(done.stdout)["confirmed"], done.stderr
    (lab / "copy.py").write_text((lab / "quick.py").read_text())
    refused = cli_here("validate", "quick.py", "--against", "copy.py", *settings)
    assert refused.returncode == 2 and "copy.py is the same kernel" in refused.stderr, refused.stderr


@pytest.mark.parametrize("failures, calls", [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_infrastructure_errors_are_retried_twice(failures: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, slept = list[Kernel](), list[float]()

    def compile(kernel: Kernel) -> Evaluation:
        made.append(kernel)
        if len(made) <= failures:
            raise DeviceBusyError("busy")
        return DONE

    monkeypatch.setattr("time.sleep", slept.append)
    builder = SimpleNamespace(compile=compile, check=lambda *_: DONE)
    context: Any = SimpleNamespace(quiet=BuildTimingLock(), target=SimpleNamespace(builder=builder))
    if failures < 3:
        assert FUNCTIONS.compile(context, KERNEL) is DONE
    else:
        with pytest.raises(InfrastructureError, match="busy"):
            FUNCTIONS.compile(context, KERNEL)
    assert len(made) == calls and slept == list(DELAYS_S[:failures])


def test_other_errors_are_not_retried() -> None:
    def compile(*_: object) -> Evaluation:
        raise ValueError("wrong")

    target = SimpleNamespace(builder=SimpleNamespace(compile=compile))
    context: Any = SimpleNamespace(quiet=BuildTimingLock(), target=target)
    with pytest.raises(ValueError, match="wrong"):
        FUNCTIONS.compile(context, KERNEL)
