"""Progress lines: a campaign's are shown in the terminal, its kernels' steps only for one kernel."""

import logging

import pytest

from kernel_scientist.cli import progress

LOGGER = logging.getLogger("kernel_scientist.progress")


@pytest.mark.parametrize(("steps", "quiet"), [(True, False), (False, False), (False, True)])
def test_progress_is_shown_and_warnings_are_marked(
    steps: bool, quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    monkeypatch.setattr(LOGGER, "propagate", True)
    before = LOGGER.level
    with progress.shown(steps, quiet):
        while not quiet and "starting" not in capsys.readouterr().err:
            pass  # the first second is over
        LOGGER.info("opening the MLflow store")
        LOGGER.debug("compiling k00001")
        LOGGER.warning("the machine is busy")
    LOGGER.setLevel(before)
    shown = capsys.readouterr().err.splitlines()
    assert ("opening the MLflow store ..." in shown) is not quiet
    assert ("compiling k00001 ..." in shown) is (steps and not quiet)
    assert ("warning: the machine is busy" in shown) is not quiet
