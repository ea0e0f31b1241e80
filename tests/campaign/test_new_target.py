"""The target that docs/howto/extend.md adds: `kernel-scientist` on another host, over a stand-in for ssh."""

import os
import re
import sys
from pathlib import Path

import pytest

from kernel_scientist.campaign import preflight, single, targets
from kernel_scientist.hardware import addresses
from kernel_scientist.records import params
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.params import Params
from tests.conftest import ROOT, lab_environment

CHAPTER = (ROOT / "docs/howto/extend.md").read_text()
COPIES = "def custom_kernel(data):\n    return data[1].copy_(data[0])\n"
SLEEPS = "import time\n\ndef custom_kernel(data):\n    time.sleep(0.02)\n    return data[1].copy_(data[0])\n"
WRONG = "def custom_kernel(data):\n    return data[1].zero_()\n"
SSH = """#!/bin/sh
test "$1" = gpu1 || { echo "ssh: Could not resolve hostname $1" >&2; exit 255; }
shift
exec "$@"
"""


@pytest.fixture
def settings(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    """Parameters of the target `ssh:gpu1`, once the example is a module of `targets` and `ssh` an entry."""
    modules, programs = tmp_path / "modules", tmp_path / "programs"
    modules.mkdir()
    programs.mkdir()
    (example,) = re.findall(r"^```python\n(.*?)^```$", CHAPTER, re.MULTILINE | re.DOTALL)
    (modules / "ssh.py").write_text(example)
    monkeypatch.setattr(targets, "__path__", [*targets.__path__, str(modules)])
    monkeypatch.delitem(sys.modules, f"{targets.__name__}.ssh", raising=False)
    for module in (params, addresses):
        monkeypatch.setattr(module, "REMOTE_TARGETS", (*params.REMOTE_TARGETS, "ssh"))
    command = f'#!/bin/sh\nexec "{sys.executable}" -m kernel_scientist "$@"\n'
    for name, text in {"ssh": SSH, "kernel-scientist": command}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    for name, value in lab_environment(lab, PATH=f"{programs}:{os.environ['PATH']}").items():
        monkeypatch.setenv(name, value)
    return Params(problem="identity", target="ssh:gpu1", profile="cpu")


@pytest.fixture
def files(lab: Path, prefect_api: str, settings: Params, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with kernels; the other host's commands have a Prefect server."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    for name, source in {"copies": COPIES, "sleeps": SLEEPS, "wrong": WRONG}.items():
        (lab / f"{name}.py").write_text(source)
    return lab


@pytest.mark.slow
def test_a_kernel_is_timed_beside_another_on_another_host(settings: Params, files: Path) -> None:
    found = single.evaluate(str(files / "copies.py"), settings, str(files / "sleeps.py"))
    assert (found.target, found.verdict) == ("ssh-gpu1", Verdict.OK), found.reason
    assert found.speedup is not None and found.speedup.ratio > 1 and found.speedup.against == "sleeps (against)"
    assert [case.case for case in found.cases] == [pair.case for pair in found.speedup.cases]


@pytest.mark.slow
def test_a_wrong_kernel_is_incorrect_on_another_host(settings: Params, files: Path) -> None:
    found = single.evaluate(str(files / "wrong.py"), settings)
    assert found.verdict is Verdict.INCORRECT and found.reason and not found.cases


@pytest.mark.slow
def test_a_kernel_is_confirmed_on_another_host(settings: Params, files: Path) -> None:
    found = single.validate(str(files / "copies.py"), settings, str(files / "sleeps.py"))
    assert found.confirmed, found.why
    assert {one.against for one in found.speedups} >= {"reference", "sleeps"}


def test_what_is_wrong_with_the_other_host_is_one_sentence(settings: Params, lab: Path) -> None:
    (lab / "copies.py").write_text(COPIES)
    with pytest.raises(SetupError, match="name a profile of identity"):
        preflight.resolve(settings.model_copy(update={"profile": "auto"}))
    away = settings.model_copy(update={"target": "ssh:gpu2"})
    found = single.evaluate(str(lab / "copies.py"), away)
    assert found.verdict is Verdict.INFRASTRUCTURE
    assert "ssh gpu2 ended with status 255: ssh: Could not resolve hostname gpu2" in found.reason
