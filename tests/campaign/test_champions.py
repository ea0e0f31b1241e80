"""A champion is replaced only by a better one of the same problem, language and target."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernel_scientist.campaign import champions
from kernel_scientist.campaign.champions import STANDING
from kernel_scientist.records import environment
from kernel_scientist.records.errors import StoppedError
from kernel_scientist.records.evaluation import Confirmation, Evaluation, Prediction, Trial
from kernel_scientist.records.kernel import Kernel, Origin, Verdict
from kernel_scientist.sandbox import device_lock
from tests.conftest import ROOT, Cli
from tests.trials import trial


def standing(source: str = "before = 1", predicted_us: float | None = None) -> Trial:
    kernel = Kernel(name=STANDING, language="cpp", source=source)
    return Trial(kernel=kernel, evaluation=evaluation(predicted_us))


def evaluation(predicted_us: float | None) -> Evaluation:
    found = Prediction(case="c", machine="MI300X", time_us=predicted_us or 0.0, floor_us=0.1, limited_by="hbm")
    return Evaluation(verdict=Verdict.OK, by_model=True, predictions=(found,) if predicted_us else ())


def confirmed(best: Trial, is_confirmed: bool = True) -> Confirmation:
    return Confirmation(confirmed=is_confirmed, reason="seen", evaluation=best.evaluation)


def test_a_measured_champion_must_be_faster_in_one_run() -> None:
    better, worse = trial("k2", 3.0, {STANDING: (1.1, 1.3)}), trial("k2", 3.0, {STANDING: (0.9, 1.3)})
    assert champions.verdict(standing(), better, confirmed(better)) == (
        True,
        "1.2x [1.1, 1.3] the standing one's speed, timed in one run",
    )
    assert not champions.verdict(standing(), worse, confirmed(worse))[0]
    assert not champions.verdict(standing(), better, confirmed(better, is_confirmed=False))[0]
    assert not champions.verdict(standing(), trial("k2", 9.0), confirmed(trial("k2", 9.0)))[0], "not timed beside it"
    assert champions.verdict(None, worse, confirmed(worse, is_confirmed=False))[0]
    busy = Evaluation(verdict=Verdict.INFRASTRUCTURE, reason="no worker started")
    undecided = standing().model_copy(update={"evaluation": busy})
    assert champions.verdict(undecided, better, confirmed(better)) == (
        False,
        "the standing one could not be evaluated: no worker started",
    )


def test_the_standing_champion_is_itself_with_the_leaderboards_header() -> None:
    now = Kernel(name="k2", language="triton", source="def custom_kernel(data): ...\n")
    best = Trial(kernel=now, evaluation=evaluation(41.0))
    found = confirmed(best, is_confirmed=False)
    same = standing("#!POPCORN leaderboard p\n\n" + now.source, predicted_us=79.7)
    assert champions.verdict(same, best, found) == (False, "the standing champion is the same kernel")
    origin = Origin(campaign="earlier", kernel="k9", date="2026-01-01")
    of_another = same.model_copy(update={"kernel": same.kernel.model_copy(update={"origin": origin})})
    assert champions.verdict(of_another, best, found) == (
        False,
        "the standing champion, k9 of campaign earlier (2026-01-01), is the same kernel",
    )
    assert champions.verdict(standing("def custom_kernel(data): return 1\n", 79.7), best, found)[0]


@pytest.mark.parametrize(
    ("before_us", "now_us", "replaces"),
    [(79.7, 41.0, True), (41.0, 79.7, False), (41.0, 41.0, False), (None, 41.0, True), (41.0, None, False)],
)
def test_a_predicted_champion_must_be_predicted_faster(
    before_us: float | None, now_us: float | None, replaces: bool
) -> None:
    best = Trial(kernel=Kernel(name="k2", language="triton", source="# now"), evaluation=evaluation(now_us))
    found = confirmed(best, is_confirmed=False)  # nothing is measured on a model
    assert champions.verdict(standing(predicted_us=before_us), best, found)[0] == replaces


def test_champions_of_other_languages_and_targets_lie_elsewhere() -> None:
    places = {champions.folder("p", language, t) for language in ("cpp", "triton") for t in ("cpu", "model-mi300x")}
    assert len(places) == 4 and all(environment.root() in place.parents for place in places)


def test_validate_without_a_file_needs_a_champion(cli_here: Cli) -> None:
    done = cli_here("validate", "--set", "problem=identity")
    assert done.returncode == 2 and "there is no champion of identity in cpp on cpu yet" in done.stderr


def test_one_process_at_a_time_replaces_a_champion(tmp_path: Path) -> None:
    """Two processes each read a number and write the next one: without turns one of them would be lost."""
    (tmp_path / "number").write_text("0")
    code = (
        "import sys, threading, time\nfrom pathlib import Path\nfrom kernel_scientist.sandbox import device_lock\n"
        "file = Path(sys.argv[1], 'number')\n"
        "for _ in range(20):\n"
        "    with device_lock.turn(file, threading.Event()):\n"
        "        number = int(file.read_text())\n        time.sleep(0.001)\n        file.write_text(str(number + 1))\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0] and (tmp_path / "number").read_text() == "40"


def test_who_waits_for_a_turn_can_be_stopped(tmp_path: Path) -> None:
    stopped = threading.Event()
    with device_lock.turn(tmp_path, stopped):
        threading.Timer(0.2, stopped.set).start()
        with pytest.raises(StoppedError), device_lock.turn(tmp_path, stopped):
            raise AssertionError("two turns at once")
