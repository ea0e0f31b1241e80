"""Folders that are gone, that are files, that are full, and problems that are broken: one sentence, exit code 2."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kernel_scientist.cli import main
from kernel_scientist.cli.work import validation_code
from kernel_scientist.records import laboratory
from kernel_scientist.records.errors import SetupError, StoppedError
from kernel_scientist.records.kernel import Verdict
from tests import results
from tests.conftest import Cli


@pytest.mark.parametrize("command", ["doctor", "watch", "init new"])
def test_a_deleted_working_folder_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.delenv("KERNEL_SCIENTIST_ROOT", raising=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = CliRunner().invoke(main, command.split())
    monkeypatch.chdir(tmp_path)
    assert done.exit_code == 2 and "error: the current directory does not exist any more" in done.output


def test_a_file_in_place_of_the_laboratory_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").write_text("")
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path / "lab"))
    done = CliRunner().invoke(main, ["watch"])
    assert done.exit_code == 2 and f"error: {tmp_path}/lab is a file" in done.output


@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize(("error", "raised"), [(OSError, SetupError), (KeyboardInterrupt, StoppedError)])
def test_half_a_laboratory_is_removed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    raised: type[Exception],
    was_there: bool,
) -> None:
    folder, written, copy = tmp_path / "above" / "lab", list[str](), shutil.copyfile
    if was_there:
        folder.mkdir(parents=True)
        (folder / "mine.txt").write_text("mine")

    def until_full(source: Any, target: Any, **options: Any) -> Any:
        if len(written) > 20:
            raise error(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(str(target))
        return copy(source, target, **options)

    monkeypatch.setattr(shutil, "copyfile", until_full)
    monkeypatch.setattr(shutil.copytree, "__defaults__", (False, None, _copy_by(until_full), False, False))
    said = "what was made was removed"
    with pytest.raises(raised, match=said if raised is StoppedError else f"No space left on device; {said}"):
        laboratory.create(folder)
    assert len(written) > 20
    left = sorted(path.name for path in tmp_path.rglob("*"))
    assert left == (["above", "lab", "mine.txt"] if was_there else [])


def _copy_by(copyfile: Any) -> Any:
    def copy(source: Any, target: Any, **_options: Any) -> Any:
        return copyfile(source, target)

    return copy


def test_a_broken_problem_is_a_sentence_beside_the_others(lab: Path, cli_here: Cli) -> None:
    (lab / "problems" / "identity" / "task.yml").write_text("a: 1\na: 2\n")
    shown = cli_here("problems", "show", "identity")
    assert shown.returncode == 2 and "identity/task.yml: key 'a' is there twice" in shown.stderr
    listed = cli_here("problems", "list")
    assert listed.returncode == 2 and "error: broken, see above: identity;" in listed.stderr
    assert "rmsnorm" in listed.stdout


@pytest.mark.parametrize(
    ("verdict", "us", "is_predicted", "code"),
    [
        ("ok", None, True, 3),
        ("ok", 1.0, True, 1),  # measured on a GPU that the machine model knows
        ("ok", None, False, 1),  # a person declined its ranking
        ("compiled", None, False, 3),
        ("incorrect", None, False, 1),
    ],
)
def test_what_cannot_be_validated_here_is_undecided(
    verdict: str, us: float | None, is_predicted: bool, code: int
) -> None:
    predicted = results.predicted(2.0) if is_predicted else None
    made = results.validation(verdict=Verdict(verdict), geomean_us=us, predicted=predicted)
    assert validation_code(made) == code
