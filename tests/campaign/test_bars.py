"""Bars: others' kernels are timed beside the champion, reported, and never a base of experiments."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernel_scientist.campaign import bars, results, single
from kernel_scientist.campaign.targets.local import Local
from kernel_scientist.gpu.model import references
from kernel_scientist.hardware import peaks
from kernel_scientist.hardware.addresses import CPU
from kernel_scientist.hardware.gpus import MI300X
from kernel_scientist.problems import load
from kernel_scientist.records.evaluation import Bar, Confirmation, Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.results import ValidationResult
from kernel_scientist.report import tables
from tests.campaign.test_campaign import SETTINGS
from tests.conftest import ROOT, Cli

pytestmark = pytest.mark.slow

COPIES = "def custom_kernel(data):\n    return data[1].copy_(data[0])\n"
THEIRS = {
    "theirs": COPIES,
    "wrong": "def custom_kernel(data):\n    return data[1].zero_()\n",
    "uncompiled": "from kernel_scientist import load\nload('x')\ndef custom_kernel(data): ...\n",
    "of_triton": "import triton\n@triton.jit\ndef copy(x): ...\ndef custom_kernel(data): ...\n",
}


def put_bars(lab: Path) -> None:
    folder = lab / "reference-kernels/identity/bars"
    folder.mkdir(parents=True)
    for name, source in THEIRS.items():
        (folder / f"{name}.py").write_text(source)


def test_a_campaign_ends_with_the_champion_beside_the_bars(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    put_bars(lab)
    settings = [*SETTINGS, "--set", "search.generations=1", "--set", "search.experiments=1"]
    done = cli_here("optimize", "--json", *settings, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["champion"] and summary["kernels"] == 3, "no bar is a kernel of the campaign"
    found = {one["kernel"]: one for one in summary["bars"]}
    verdicts = {name: one["verdict"] for name, one in found.items()}
    expected = {"theirs": "ok", "wrong": "incorrect", "uncompiled": "compile_error", "of_triton": "not evaluated"}
    assert verdicts == expected
    theirs = found["theirs"]
    assert theirs["ratio"] == pytest.approx(theirs["us"] / theirs["champion_us"], rel=1e-9) and theirs["held_out_us"]
    assert all(one["us"] is None and one["reason"] for name, one in found.items() if name != "theirs")
    card = json.loads(next((lab / "champions/identity/cpp-cpu").glob("card.json")).read_text())
    assert card["bars"] == summary["bars"]

    printed = cli_here("report", "--set", "problem=identity", "--out", "reports/report.html").stdout
    page = (lab / "reports/report.html").read_text()
    for text in (printed, page):
        assert "bar wrong has no time: incorrect" in text and "bar of_triton has no time" in text
    assert re.search(r"^bar +theirs +[\d.]+", printed, re.MULTILINE)
    assert re.search(r'<td>bar</td><td>theirs</td><td class="n">[\d.]+</td>', page)
    metrics = lab / "reports/validate.json"
    more = ("--problem", "identity", "--set", "validate.processes=1", "--set", "validate.blocks=3")
    cli_here("validate", *more, "--metrics", str(metrics))
    confirmed = tables.confirmed_table(ValidationResult.model_validate_json(metrics.read_text()), summary["champion"])
    roles = [(one["role"], one["kernel"]) for one in confirmed.rows]
    assert ("bar", "theirs") in roles and roles[-1][0] == "champion"


def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    put_bars(tmp_path)
    problem = load(ROOT / "problems/identity")
    evaluator: Any = SimpleNamespace(profile=problem.profile("cpu"), machine=None, stopped=None)
    steps = SimpleNamespace(compile=lambda *_: Evaluation(verdict=Verdict.OK))
    params: Any = SimpleNamespace(language="cpp", validate_=SimpleNamespace(torch_compile=False))
    target = Local(params, problem, CPU, evaluator)
    return SimpleNamespace(problem=problem, target=target, params=params, steps=steps)


def test_a_bar_has_a_name_of_its_own_and_is_not_the_champion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = context(tmp_path, monkeypatch)
    names = [bar.name for bar, _ in bars.checked(here, ("reference", "theirs"))]
    assert names == ["of_triton", "theirs-bar", "uncompiled", "wrong"]
    assert "theirs" not in [bar.name for bar, _ in bars.checked(here, (), COPIES)]


def test_a_bar_that_breaks_the_timing_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[list[str]]()

    def confirm(_c: object, _k: object, others: list[Any], *_: object) -> Confirmation:
        calls.append([other.name for other in others])
        broken = Evaluation(verdict=Verdict.INFRASTRUCTURE, reason="theirs crashed")
        return Confirmation(
            confirmed=len(others) == 1,
            reason="seen",
            evaluation=broken if len(others) > 1 else Evaluation(verdict=Verdict.OK),
        )

    monkeypatch.setattr(single, "confirm", confirm)
    kernel = Kernel(name="k00001", language="cpp", source="x = 1")
    others = [SimpleNamespace(name="reference")]
    done = single.confirm_beside_bars(context(tmp_path, monkeypatch), kernel, others, None)  # type: ignore[arg-type]
    assert done.confirmed and calls == [["reference", "theirs", "uncompiled", "wrong"], ["reference"]]
    theirs = next(bar for bar in done.bars if bar.name == "theirs")
    assert theirs.verdict is Verdict.INFRASTRUCTURE and "the timing beside it failed: theirs crashed" in theirs.reason


def test_predicted_times_have_a_table_of_their_own() -> None:
    predicted = Bar(name="theirs", verdict=Verdict.OK, predicted_us=12.5)
    failed = Bar(name="wrong", verdict=Verdict.INCORRECT, reason="row 3 differs")
    champion = Evaluation(verdict=Verdict.OK, by_model=True)
    made = Confirmation(confirmed=False, reason="predicted", evaluation=champion, bars=(predicted, failed))
    rows = results.bars(made)
    found = tables.bar_table(rows)
    assert found is not None and found.cells[0]["predicted_us"] == "12.5" and "predicted" in found.title
    assert list(tables.bar_failures(rows)) == ["bar wrong has no time: incorrect: row 3 differs"]
    assert tables.bar_table(rows[1:]) is None


REFUSES = """
import torch

def ref_kernel(data):
    if torch.compiler.is_compiling():
        raise RuntimeError("torch then runs the function without compiling it")
    return data[1].copy_(data[0])
"""


def test_the_reference_compiled_by_torch_is_timed_beside_the_champion(lab: Path, cli_here: Cli) -> None:
    settings = ("validate.torch_compile=true", "validate.processes=1", "validate.blocks=3")
    more = ("--problem", "identity", "--json", *(part for one in settings for part in ("--set", one)))
    seed = str(lab / "problems/identity/seeds/cpp_blocked.py")
    row = json.loads(cli_here("validate", seed, *more).stdout)["bars"][0]
    assert row["kernel"] == "torch.compile" and row["verdict"] == "ok" and row["held_out_us"], row
    assert row["ratio"] == pytest.approx(row["us"] / row["champion_us"], rel=1e-9)
    reference = lab / "problems/identity/reference.py"
    reference.write_text(reference.read_text() + REFUSES)
    row = json.loads(cli_here("validate", seed, *more).stdout)["bars"][0]
    assert row["us"] is None and "compiles no part" in row["reason"], row


def test_the_reference_is_predicted_beside_a_predicted_champion() -> None:
    softmax = load(ROOT / "problems/softmax")
    case = softmax.profile("full").benchmarks[-1]
    eager, compiled = references.predicted(softmax, [case], MI300X)
    floor_us = peaks.roofline_us(softmax.work(case), MI300X)
    assert eager.predicted_us and compiled.predicted_us and "predicted" in eager.reason
    assert floor_us < compiled.predicted_us < 1.5 * floor_us + 10, "one kernel that reads and writes once"
    assert eager.predicted_us > 2 * compiled.predicted_us, "a conversion to float and one back, each a kernel"
    assert references.predicted(softmax, [case], MI300X) == [eager, compiled], "not by chance"
    found, _ = references.predicted(
        load(ROOT / "problems/moe"), [load(ROOT / "problems/moe").profile("cpu").tests[0]], MI300X
    )
    assert found.predicted_us is None and "nonzero" in found.reason
