"""The use cases as functions: they return records, and the commands print those."""

import json
import re
from pathlib import Path

import pytest

import kernel_scientist as ks
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.results import EvaluationResult
from tests.conftest import ROOT, Cli

QUICK = ("harness.stages=1", "harness.noise_runs=0", "harness.blocks=4")
SEED = "problems/identity/seeds/cpp_blocked.py"


@pytest.fixture
def inside(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The laboratory as the working directory of this process."""
    monkeypatch.chdir(lab)
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    return lab


def test_evaluate_returns_the_record_whose_json_the_command_prints(inside: Path, cli_here: Cli) -> None:
    result = ks.evaluate(SEED, problem="identity", target="cpu", overrides=QUICK)
    assert isinstance(result, EvaluationResult) and result.verdict is Verdict.OK, result.reason
    assert result.speedup is not None and result.speedup.against == "reference" and str(result.speedup)
    assert [case.case for case in result.cases] == [pair.case for pair in result.speedup.cases]
    settings = [part for one in QUICK for part in ("--set", one)]
    printed = json.loads(cli_here("evaluate", SEED, "--problem", "identity", *settings, "--json").stdout)
    assert list(printed) == list(EvaluationResult.model_fields) and EvaluationResult.model_validate(printed)
    assert EvaluationResult.model_validate_json(result.model_dump_json()) == result


def test_a_profile_says_where_the_time_goes_or_why_that_is_not_known(inside: Path, cli_here: Cli) -> None:
    result = ks.profile_kernel(SEED, problem="identity", target="cpu", case="size524288")
    assert result.verdict is Verdict.OK and not result.cases, result.reason
    shown = cli_here("profile", SEED, "--problem", "identity", "--case", "size524288")
    assert shown.returncode == 0, shown.stderr
    if result.sampled:
        assert [one.case for one in result.sampled] == ["size524288"] and result.sampled[0].samples
        assert "case size524288: " in shown.stdout and "in the kernel's own code: " in shown.stdout
    else:
        assert result.environment["counters"].startswith("none: ") and "profiler: none: " in shown.stdout
    with pytest.raises(SetupError, match="problem identity has no timed case 'x'; it has size"):
        ks.profile_kernel(SEED, problem="identity", target="cpu", case="x")


def test_a_kernel_s_fault_is_a_verdict_and_a_wrong_call_an_error(inside: Path) -> None:
    (inside / "wrong.py").write_text("def custom_kernel(data):\n    return data[1]\n")
    result = ks.evaluate(inside / "wrong.py", problem="identity", target="cpu", overrides=QUICK)
    assert result.verdict is Verdict.INCORRECT and result.speedup is None and not result.cases
    with pytest.raises(SetupError, match="unknown problem 'nothing'"):
        ks.evaluate(SEED, problem="nothing")
    with pytest.raises(SetupError, match=r"cannot read kernel absent\.py"):
        ks.validate("absent.py", problem="identity")
    with pytest.raises(SetupError, match="there is no champion of identity"):
        ks.validate(problem="identity")


def test_the_readme_s_example_runs(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    (inside / "my_kernel.py").write_text((inside / SEED).read_text())
    exec(compile(example.replace("rmsnorm", "identity"), "README.md", "exec"), {})
    assert re.match(r"ok (\d[\d.,]*x|not resolved) \[\d", capsys.readouterr().out)


@pytest.mark.slow
def test_the_notebook_runs(inside: Path) -> None:
    names: dict[str, object] = {}
    cells = json.loads((ROOT / "docs/library.ipynb").read_text())["cells"]
    for number, cell in enumerate(one for one in cells if one["cell_type"] == "code"):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert isinstance(names["result"], EvaluationResult) and names["result"].speedup


def test_names_of_the_package_are_those_of_the_api() -> None:
    for name in ks.__all__:
        assert callable(getattr(ks, name))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(ks, "nothing")  # noqa: B009
