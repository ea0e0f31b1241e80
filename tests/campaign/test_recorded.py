"""A recorded confirmation stands for a new one only if everything that it depends on is the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.campaign import preflight, recorded
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Params
from tests.conftest import Cli

SOURCE = "def custom_kernel(d):\n    return d[1].copy_(d[0])\n"


@pytest.fixture
def champion(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A champion's file beside the confirmation that a campaign recorded: not confirmed."""
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    write(lab / "champion", Params(problem="identity"), verdict="ok", status="not confirmed", why="not faster")
    return lab / "champion" / "kernel.py"


def write(folder: Path, params: Params, **validation: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "kernel.py").write_text(SOURCE)
    key = recorded.key(params, *preflight.resolve(params), Kernel(name="k00001", language="cpp", source=SOURCE))
    (folder / recorded.FILE).write_text(json.dumps({**validation, recorded.KEY: key, "recorded": "a-campaign"}))


def test_it_is_used_and_its_answer_is_the_exit_code(champion: Path, cli_here: Cli) -> None:
    settings = ("--set", "harness.noise_runs=8", "--set", "harness.pairs=12", "--set", "harness.quiet_wait_s=30")
    done = cli_here("validate", str(champion), "--problem", "identity", "--recorded", "--json", *settings)
    assert done.returncode == 1 and json.loads(done.stdout)["recorded"] == "a-campaign", done.stderr


@pytest.mark.parametrize(
    "changed",
    [{"validate": {"blocks": 7}}, {"harness": {"blocks": 9}}, {"profile": "full"}, {"problem": "rmsnorm"}],
    ids=str,
)
def test_other_settings_need_a_new_one(champion: Path, changed: dict[str, Any]) -> None:
    assert recorded.confirmation(champion, Params(problem="identity"))
    assert recorded.confirmation(champion, Params.model_validate({"problem": "identity", **changed})) is None


def test_another_kernel_a_failed_one_and_a_damaged_file_need_a_new_one(champion: Path) -> None:
    params = Params(problem="identity")
    champion.write_text(SOURCE + "# another\n")
    assert recorded.confirmation(champion, params) is None
    write(champion.parent, params, verdict="infrastructure", status="not confirmed", why="a worker died")
    assert recorded.confirmation(champion, params) is None
    champion.with_name(recorded.FILE).write_text("{")
    assert recorded.confirmation(champion, params) is None
    champion.with_name(recorded.FILE).write_text("[]")
    assert recorded.confirmation(champion, params) is None
