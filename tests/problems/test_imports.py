"""Others' problems and kernels come by DVC: real git and DVC repositories in temporary folders."""

import json
import shutil
from pathlib import Path

import pytest

from kernel_scientist.campaign import describing
from kernel_scientist.problems import load
from kernel_scientist.problems.imports import dvc_program, importing, provenance
from kernel_scientist.records.errors import SetupError
from tests.conftest import Cli
from tests.problems import others

PIPELINE = """
stages:
  measure:
    cmd: cat problems/amd/utils.py > measured
    deps: [problems/amd/copy, problems/amd/utils.py]
    outs: [{measured: {push: false}}]
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    return others.repository(tmp_path / "theirs")


@pytest.fixture
def project(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    return others.under_dvc(lab)


def files(folder: Path) -> dict[str, bytes]:
    inside = (f for f in folder.rglob("*") if f.is_file() and not {".git", ".dvc"} & set(f.relative_to(folder).parts))
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in inside}


@pytest.mark.slow
def test_a_problem_comes_with_its_set_is_updated_and_reaches_a_fresh_clone(
    project: Path, theirs: Path, cli_here: Cli, tmp_path: Path
) -> None:
    first = others.git(theirs, "rev-parse", "HEAD")
    done = cli_here("problems", "import", str(theirs), "--path", "problems/amd/copy", "--rev", "main")
    assert done.returncode == 0, done.stderr
    assert first[:12] in done.stdout and "licence    MIT License (problems/amd.LICENSE)" in done.stdout

    rows = {row["problem"]: row for row in json.loads(cli_here("problems", "list", "--json").stdout)}
    assert rows["amd/copy"]["about"] == "Their copy." and rows["identity"]["origin"] is None
    origin = {"address": str(theirs), "path": "problems/amd/copy", "revision": first}
    origin["licence"] = "MIT License (problems/amd.LICENSE)"
    assert rows["amd/copy"]["origin"] == origin
    assert f"from {theirs} problems/amd/copy at {first[:12]}" in cli_here("problems", "list").stdout
    assert json.loads(cli_here("problems", "show", "amd/copy", "--json").stdout)["origin"] == origin

    refused = cli_here("problems", "show", "amd/copy", "--write-lab")  # an update would remove the file
    assert refused.returncode == 2 and "lies in the import" in refused.stderr
    assert not (project / "problems/amd/copy/lab.yml").exists()

    (project / "dvc.yaml").write_text(PIPELINE)
    assert "Running stage 'measure'" in others.dvc(project, "repro")
    assert "Running stage" not in others.dvc(project, "repro")

    second = others.commit(theirs, **{"problems/amd/utils.py": "N = 2\n"})
    others.dvc(project, "update", "problems/amd.dvc")
    assert "Running stage 'measure'" in others.dvc(project, "repro")
    assert (project / "measured").read_text() == "N = 2\n"
    updated = provenance.of(project / "problems/amd")
    assert updated is not None and updated.revision == second and updated.rev == "main" and not updated.is_stored

    third = others.commit(theirs, LICENSE="Apache License\n")
    done = cli_here("problems", "update", "amd", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["revision"] == third and "Apache License" in done.stdout
    updated = provenance.of(project / "problems/amd")
    assert updated is not None and updated.is_stored

    others.dvc(project, "push")
    others.commit(project)
    shutil.rmtree(theirs)  # the remote has it, not only the source
    others.git(tmp_path, "clone", "--quiet", str(project), "clone")
    clone = tmp_path / "clone"
    absent = json.loads(cli_here("problems", "list", "--json", KERNEL_SCIENTIST_ROOT=str(clone)).stdout)[-1]
    assert absent["problem"] == "amd" and "dvc pull" in absent["about"] and absent["origin"]["revision"] == third
    others.dvc(clone, "pull", "--allow-missing")
    assert (clone / "problems/amd.LICENSE").read_text() == "Apache License\n"
    problem = load(clone / "problems/amd/copy")
    case = problem.profile("full").tests[0]
    assert problem.check(problem.generate(case), problem.reference(problem.generate(case)))[0]
    assert not others.git(clone, "status", "--short")


def test_folders_and_files_outside_git(project: Path, tmp_path: Path) -> None:
    others.write(tmp_path / "plain", others.their_files())
    whole = importing.problem(str(tmp_path / "plain/problems/amd"), name="gpumode/amd")
    assert not whole.is_git and whole.address == str(tmp_path / "plain/problems/amd") and whole.is_stored
    assert whole.licence == "MIT License (problems/gpumode/amd.LICENSE)"
    assert (project / "problems/gpumode/amd/copy/task.yml").is_file()
    (tmp_path / "plain/problems/amd/utils.py").write_text("N = 3\n")
    assert importing.update_problem("gpumode/amd").revision != whole.revision
    assert (project / "problems/gpumode/amd/utils.py").read_text() == "N = 3\n"


@pytest.mark.slow
def test_kernelbench_is_imported_by_level_and_by_file(project: Path, theirs: Path) -> None:
    level = importing.problem(str(theirs / "KernelBench/level1"))
    assert level.path == "KernelBench/level1" and (project / "problems/level1/19_ReLU.py").is_file()
    one = importing.problem(f"file://{theirs}", "KernelBench/level1/19_ReLU.py", name="one/1_ReLU")
    assert one.content == project / "problems/one/1_ReLU.py" and one.content.is_file()
    found = {row.problem: row.origin and row.origin.path for row in describing.listed() if "ReLU" in row.problem}
    assert found == dict.fromkeys(["level1/19_ReLU", "one/1_ReLU"], "KernelBench/level1/19_ReLU.py")
    shown = describing.described("one/1_ReLU")
    assert shown.origin and shown.origin.path == "KernelBench/level1/19_ReLU.py"


@pytest.mark.slow
def test_a_kernel_is_imported_as_a_seed_or_as_a_bar(project: Path, theirs: Path, cli_here: Cli) -> None:
    call = ("reference-kernels", "import", str(theirs), "--path", "kernels/fast.py", "--problem", "identity")
    for options in (("--as", "seed"), ("--as", "bar", "--name", "theirs")):
        done = cli_here(*call, *options)
        assert done.returncode == 0, done.stderr
    rows = json.loads(cli_here("reference-kernels", "list", "--problem", "identity", "--json").stdout)
    assert [(row["kernel"], row["use"]) for row in rows] == [
        ("identity/bars/theirs", "bar"),
        ("identity/seeds/cpp_fast", "seed"),
    ]
    assert all(
        row["origin"]["licence"].startswith("MIT License") and row["origin"]["path"] == "kernels/fast.py"
        for row in rows
    )
    assert not json.loads(cli_here("reference-kernels", "list", "--problem", "rmsnorm", "--json").stdout)
    problem = load(project / "problems/identity")
    assert [f.stem for f in problem.seeds("cpp")] == ["cpp_naive", "cpp_fast", "cpp_blocked"]
    shown = json.loads(cli_here("problems", "show", "identity", "--json").stdout)
    assert shown["imported_bars"] == ["theirs.py"] and shown["imported_seeds"] == ["cpp_fast.py"]
    others.commit(theirs, **{"kernels/fast.py": f"# faster\n{others.KERNEL}"})
    assert cli_here("reference-kernels", "update", "identity/bars/theirs").returncode == 0
    assert (project / "reference-kernels/identity/bars/theirs.py").read_text().startswith("# faster")
    others.git(theirs, "rm", "--quiet", "kernels/fast.py")
    others.commit(theirs)
    before, done = files(project), cli_here("reference-kernels", "update", "identity/bars/theirs")
    assert done.returncode == 2 and "there is no committed 'kernels/fast.py'" in done.stderr
    assert files(project) == before


MISTAKES = {
    "address": (["problems", "import", "file:///nowhere/theirs.git"], "cannot read the git repository file:///nowhere"),
    "no source": (["problems", "import", "nowhere"], "'nowhere' is neither a path that exists nor the address"),
    "revision": (["problems", "import", "THEIRS", "--rev", "v9"], "has no revision 'v9'"),
    "path": (["problems", "import", "THEIRS", "--path", "problems/nope"], "there is no committed 'problems/nope' in"),
    "path outside": (["problems", "import", "THEIRS", "--path", "../x"], "leads out of the repository"),
    "no problem": (["problems", "import", "THEIRS", "--path", "kernels"], "there is no problem in 'kernels'"),
    "a file's name": (
        ["problems", "import", "THEIRS", "--path", "KernelBench/level1/19_ReLU.py", "--name", "relu"],
        "'relu.py': a KernelBench file is named like level1/19_ReLU.py",
    ),
    "existing": (["problems", "import", "THEIRS", "--name", "identity"], "problems/identity exists already"),
    "name": (["problems", "import", "THEIRS", "--name", "../amd"], "'../amd' is no name"),
    "not imported": (["problems", "update", "identity"], "no problem 'identity' is imported; imported: none"),
    "no kernel": (
        ["reference-kernels", "import", "THEIRS", "--path", "problems/amd/utils.py", "--problem", "identity"],
        "problems/amd/utils.py of THEIRS defines no custom_kernel(data)",
    ),
    "a kernel that is no text": (
        ["reference-kernels", "import", "BARE/binary.py", "--problem", "identity"],
        "binary.py: it is not text (byte 2 is not UTF-8)",
    ),
    "an empty kernel": (
        ["reference-kernels", "import", "BARE/empty.py", "--problem", "identity"],
        "BARE/empty.py: it is empty",
    ),
    "kernel of nothing": (
        ["reference-kernels", "import", "THEIRS", "--path", "kernels/fast.py", "--problem", "nope"],
        "unknown problem 'nope'",
    ),
    "kernel twice": (
        ["reference-kernels", "import", "THEIRS", "--path", "kernels", "--problem", "identity"],
        "'kernels' of THEIRS is no file",
    ),
    "unknown kernel": (["reference-kernels", "update", "x"], "no kernel 'x' is imported; imported: none"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(name: str, lab: Path, theirs: Path, cli_here: Cli) -> None:
    (lab / ".dvc").mkdir()
    call, message = MISTAKES[name]
    bare = theirs.parent / "bare"
    bare.mkdir()
    (bare / "binary.py").write_bytes(b"\x7f\xa5ELF")
    (bare / "empty.py").write_text("\n")
    before = files(lab)
    done = cli_here(*(part.replace("THEIRS", str(theirs)).replace("BARE", str(bare)) for part in call))
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("error: ") and done.stdout == ""
    assert message.replace("THEIRS", str(theirs)).replace("BARE", str(bare)) in line
    assert files(lab) == before


@pytest.mark.slow
def test_of_a_local_repository_only_what_is_committed_is_imported(project: Path, theirs: Path) -> None:
    folder = theirs / "problems/amd/copy"
    committed = (folder / "reference.py").read_text()
    (theirs / ".gitignore").write_text(".env\n")
    others.commit(theirs)
    (folder / "reference.py").write_text(f"{committed}# not committed\n")
    (folder / ".env").write_text("secret")
    (folder / "untracked.py").write_text("")
    found = importing.problem(str(theirs), "problems/amd", name="dirty")
    place = project / "problems/dirty/copy"
    assert (place / "reference.py").read_text() == committed
    assert not (place / ".env").exists() and not (place / "untracked.py").exists()
    record = project / "problems/dirty.dvc"
    record.write_text(record.read_text().replace("file://", ""))  # as an earlier version wrote it
    others.git(theirs, "commit", "--quiet", "--all", "--message", "comment")
    (folder / "reference.py").write_text(f"{committed}# again not committed\n")
    after = importing.update_problem("dirty")
    assert after.revision != found.revision and after.address == str(theirs)
    assert (place / "reference.py").read_text() == f"{committed}# not committed\n" and not (place / ".env").exists()


def test_without_dvc(lab: Path, theirs: Path, cli_here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    done = cli_here("problems", "import", str(theirs))
    assert done.returncode == 2 and "is not a DVC repository: run `dvc init`" in done.stderr
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = cli_here("problems", "import", str(theirs))
    assert done.returncode == 2 and "DVC is not installed" in done.stderr


def test_an_import_that_fails_half_way_leaves_nothing(
    project: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, run = files(project), dvc_program.run

    def fails_at_the_licence(*arguments: str) -> None:
        if "LICENSE" in arguments:
            raise SetupError("`dvc import` failed")
        run(*arguments)

    monkeypatch.setattr(dvc_program, "run", fails_at_the_licence)
    with pytest.raises(SetupError, match="`dvc import` failed"):
        importing.problem(str(theirs), "problems/amd", name="new/amd")
    assert files(project) == before and not (project / "problems/new").exists()


def test_the_reason_that_dvc_gives_is_the_message(project: Path) -> None:
    with pytest.raises(SetupError, match=r"^`dvc import-url` failed: .*dependency '/nowhere' does not exist"):
        dvc_program.run("import-url", "/nowhere", "problems/nothing")
