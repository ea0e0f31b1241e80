"""A promotion that is interrupted is completed by a resume, once, with the confirmation that was recorded."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import Cli, lab_environment, without_progress

pytestmark = pytest.mark.slow
SET = ("problem=identity", "search.generations=0", "harness.blocks=4", "harness.warmup_calls=1", "validate.blocks=3")
RESUME = ("optimize", "--resume", "--json", *(part for one in SET for part in ("--set", one)))
MODEL = "identity-cpp-cpu"
KILLED = """
import os, pkgutil, signal, sys
from kernel_scientist.records import environment
environment.prepare()
place, name, calls, *arguments = sys.argv[1:]
owner, left = pkgutil.resolve_name(place), int(calls)
act = getattr(owner, name)


def counted(*given, **named):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return act(*given, **named)


setattr(owner, name, counted)
from kernel_scientist.cli import main
main(arguments)
"""
"""Runs a command that is killed as soon as a function is called once more than so many times."""
CHAMPION = "kernel_scientist.report.champion"
MOMENTS = (
    (CHAMPION, "carry_out", 0),
    (CHAMPION, "_put", 4),  # the standing champion has a new source and its old card
    ("kernel_scientist.tracking.mlflow_store:MlflowStore", "register", 0),
    ("flows.promotion", "_record", 0),
)


def killed(lab: Path, api: str, place: str, name: str, calls: int) -> None:
    """Start or resume the campaign, which dies in its promotion."""
    command = [sys.executable, "-c", KILLED, place, name, str(calls), *RESUME]
    environment = lab_environment(lab, PREFECT_API_URL=api)
    done = subprocess.run(command, cwd=lab, env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def run_of(lab: Path) -> tuple[MlflowStore, Any]:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    run = store.latest()
    assert run is not None
    return store, run


def confirmed(lab: Path) -> str | None:
    """The campaign's confirmation as it is recorded."""
    store, run = run_of(lab)
    return store.text(run, "confirmation.json")


def standing(lab: Path) -> Path:
    return lab / "champions" / "identity" / "cpp-cpu"


def test_wherever_it_is_killed_a_resume_completes_it_once(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    found = set[str | None]()
    for moment in MOMENTS:
        killed(lab, prefect_api, *moment)
        found.add(confirmed(lab))
    done = cli_here(*RESUME, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {confirmed(lab)} == found, "it was confirmed more than once"
    store, run = run_of(lab)
    assert run.tags["promoted"] == "true" and not run.running
    (version,) = store.client.search_model_versions(f"name = '{MODEL}'")
    assert store.client.get_model_version_by_alias(MODEL, "champion").version == version.version
    card = json.loads((standing(lab) / "card.json").read_text())
    assert card["standing"] == result["standing"] and card["standing"]["replaced"]
    assert card["kernel"] == result["champion"] == version.tags["kernel"] and card["campaign"] == result["campaign"]
    assert "completing the promotion" in done.stderr
    again = cli_here(*RESUME, PREFECT_API_URL=prefect_api)
    assert again.returncode == 0 and "completing the promotion" not in again.stderr


def test_a_champion_that_was_promoted_meanwhile_stays(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    killed(lab, prefect_api, *MOMENTS[0])
    other = "def custom_kernel(data):\n    return data[1].copy_(data[0])\n"
    standing(lab).mkdir(parents=True)
    (standing(lab) / "kernel.py").write_text(other)
    done = cli_here(*RESUME, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    result, (_, run) = json.loads(done.stdout), run_of(lab)
    assert (standing(lab) / "kernel.py").read_text() == other
    assert not result["standing"]["replaced"] and "another champion was promoted" in result["standing"]["reason"]
    assert run.tags["promoted"] == "false" and run.tags["promotion"] == result["standing"]["reason"]
    assert Path(result["source"]).exists()


def test_champions_that_cannot_be_written_are_named_and_nothing_is_lost(
    lab: Path, cli: Cli, cli_here: Cli, prefect_api: str
) -> None:
    champions = lab / "champions"
    champions.write_text("a file in the place of the folder\n")
    early = cli(*RESUME, "--dry-run", PREFECT_API_URL=prefect_api)
    assert early.returncode == 2 and f"error: cannot write to {champions}, where results come" in early.stderr
    champions.unlink()
    champions.mkdir()
    (champions / "identity").write_text("a file in the place of the folder\n")
    done = cli(*RESUME, PREFECT_API_URL=prefect_api)
    said = without_progress(done.stderr)
    assert done.returncode == 2, done.stderr
    assert said[-1].startswith(f"error: cannot write the champion's file {lab}/champions/identity/"), done.stderr
    assert "Traceback" not in done.stderr and "waiting since" not in done.stderr
    before, (_, run) = confirmed(lab), run_of(lab)
    assert before and run.tags["ended"].startswith("it failed: cannot write the champion's file")
    (champions / "identity").unlink()
    done = cli_here(*RESUME, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    assert confirmed(lab) == before and (standing(lab) / "card.json").exists()
