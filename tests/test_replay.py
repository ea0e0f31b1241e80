"""A campaign's replies are enough to run it again, without a model and without a key."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import Cli, lab_environment, new_lab
from tests.modelserver import serving
from tests.scripted import Scripted
from tests.test_scientist import notes, settings


def test_a_colleague_replays_a_campaign_without_a_model(
    lab: Path, cli_here: Cli, tmp_path: Path, prefect_api: str
) -> None:
    """The same kernels from the replies alone, with nobody at the address; nothing is asked, nothing is paid."""
    more = ["search.generations=2", "knowledge.distil_every=1"]
    with serving(Scripted(("good", "compile error", "wrong"))) as server:
        arguments = settings(server, *more)
        done = cli_here("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    parent, _, notebook = notes(lab)
    theirs = new_lab(tmp_path / "colleague")
    shutil.copytree(lab / "data/replies", theirs / "data/replies")
    arguments += ["--set", f"llm.replay={parent.campaign}"]
    replayed = subprocess.run(
        [sys.executable, "-m", "kernel_scientist", "optimize", "--json", *arguments],
        cwd=theirs,
        env=lab_environment(theirs, PREFECT_API_URL=prefect_api),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert replayed.returncode == 0, replayed.stderr
    again, _, other = notes(theirs)
    before, after = notebook.population(parent), other.population(again)
    assert [(t.kernel.name, t.kernel.digest) for t in after] == [(t.kernel.name, t.kernel.digest) for t in before]
    assert len(after) == 2 + 2 * 3 and any(t.kernel.attempts for t in after)
    assert again.campaign != parent.campaign and json.loads(replayed.stdout)["usd"] == 0
    assert all(ask.recalled for t in after for ask in t.kernel.asks)
    assert [f.text for f in other.lessons(again).findings] == [f.text for f in notebook.lessons(parent).findings]
