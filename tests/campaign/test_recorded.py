"""A recorded confirmation stands for a new one only if everything that it depends on is the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.campaign import preflight, recorded
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Confirmation
from kernel_scientist.records.kernel import REFERENCE, Kernel
from kernel_scientist.records.params import Params
from tests import results
from tests.conftest import Cli
from tests.trials import trial

SOURCE = "def custom_kernel(d):\n    return d[1].copy_(d[0])\n"
SEEDS = "problems/identity/seeds"


@pytest.fixture
def champion(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A champion's file beside the confirmation that a campaign recorded: not confirmed."""
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    write(lab / "champion", Params(problem="identity"), verdict="ok", status="not confirmed", why="not faster")
    return lab / "champion" / "kernel.py"


def write(folder: Path, params: Params, seed: str = "cpp_blocked", **fields: str) -> None:
    """As a campaign writes it that confirmed its champion against a seed, against `reference`, or against nothing."""
    folder.mkdir(exist_ok=True)
    (folder / "kernel.py").write_text(SOURCE)
    kernel = Kernel(name="k00001", language="cpp", source=SOURCE)
    file = folder.parent / SEEDS / f"{seed}.py"
    baseline = file.read_text() if file.exists() else seed
    key = recorded.key(params, *preflight.resolve(params), kernel, baseline)
    made = results.validation(**fields, key=key, recorded="a-campaign")
    (folder / recorded.FILE).write_text(made.model_dump_json())


def test_it_is_used_and_its_answer_is_the_exit_code(champion: Path, cli_here: Cli) -> None:
    defaults = ("noise_runs=8", "pairs=12", "quiet_wait_s=30", "stages=3")
    settings = ("--set", "validate.processes=3", *(part for one in defaults for part in ("--set", f"harness.{one}")))
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


@pytest.mark.parametrize("seed", ["cpp_naive", REFERENCE, ""])
def test_validate_would_demand_another_baseline(champion: Path, seed: str) -> None:
    """The campaign's best seed was not the last one, no seed was timed, or its champion was a seed."""
    params = Params(problem="identity")
    write(champion.parent, params, seed, verdict="ok", status="confirmed", why="faster")
    assert recorded.confirmation(champion, params) is None


def test_a_seed_without_others_had_nothing_to_beat(champion: Path, lab: Path) -> None:
    for file in (lab / SEEDS).glob("cpp_*.py"):
        file.write_text(SOURCE)
    params = Params(problem="identity")
    write(champion.parent, params, "", verdict="ok", status="correct", why="right")
    found = recorded.confirmation(champion, params)
    assert found and found.status == "correct"


@pytest.mark.parametrize(("name", "source"), [("k00001", "# k00001"), (REFERENCE, REFERENCE), ("", "")])
def test_the_campaign_tells_what_its_champion_had_to_beat(name: str, source: str) -> None:
    best = trial("k00002", 2.0, base="k00001")
    done = Confirmation(confirmed=True, reason="faster", evaluation=best.evaluation, baseline=name)
    assert recorded.baseline(Population((trial("k00001", 1.0), best)), done) == source


@pytest.mark.parametrize(
    "file",
    [f"{SEEDS}/cpp_naive.py", "reference-kernels/identity/bars/new.py", "reference-kernels/identity/seeds/cpp_x.py"],
)
def test_other_opponents_need_a_new_one(champion: Path, lab: Path, file: str) -> None:
    params = Params(problem="identity")
    assert recorded.confirmation(champion, params)
    (lab / file).parent.mkdir(parents=True, exist_ok=True)
    (lab / file).write_text(SOURCE + "# others'\n")
    assert recorded.confirmation(champion, params) is None


@pytest.mark.parametrize("fact", ["kernel_scientist.hardware.cpu.model", "kernel_scientist.hardware.cpu.cores"])
def test_another_processor_needs_a_new_one(champion: Path, fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact, lambda: "another")
    assert recorded.confirmation(champion, Params(problem="identity")) is None


def test_another_host_needs_a_new_one(champion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    assert recorded.confirmation(champion, Params(problem="identity")) is None
