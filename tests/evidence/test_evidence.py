"""Evidence of a kernel: what `export --evidence` writes, `verify` confirms, and forgeries it finds."""

import copy
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import kernel_scientist as ks
from kernel_scientist.campaign import results, single
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.evidence import VerificationResult
from kernel_scientist.records.kernel import Experiment, Kernel
from kernel_scientist.records.params import load
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import Cli, new_lab
from tests.evidence.forgeries import EVALUATION, SAMPLES, Files, of_another_evaluator, packed, unpacked
from tests.evidence.forgery_table import FORGERIES
from tests.trials import undescribed

pytestmark = pytest.mark.slow
SETTINGS = [
    *("problem=identity", "target=cpu", "language=cpp", "harness.stages=1", "harness.blocks=4", "harness.row_us=100"),
    *("harness.drop_after=0", "validate.processes=1", "validate.blocks=4"),
]
CAMPAIGN = "identity-cpu-20260102-000000-abcd"


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[Path]:
    """A laboratory whose store has a campaign of a seed and a kernel that was made of it and confirmed."""
    lab = new_lab(tmp_path_factory.mktemp("evidence") / "lab")
    (lab / "mlruns").mkdir()
    shutil.copy(empty_store, lab / "mlruns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
        patch.delenv("PREFECT_API_URL", raising=False)
        params = load(None, SETTINGS)
        store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
        with evaluation_context(params) as context:
            run = store.start(CAMPAIGN, params.model_dump(by_alias=True), context.problem)
            first, second = _kernels(context)
            population = Population()
            for kernel, rivals in ((first, []), (second, [first])):
                others = [context.target.reference(), *map(TimedSource.of, rivals)]
                trial = Trial(kernel=kernel, evaluation=single.evaluated(context, kernel, others))
                store.log(run, trial, population, context.problem)
                population.add(trial)
            others = [context.target.reference(), TimedSource.of(first)]
            found = single.confirm(context, second, others, first.name)
            found = found.model_copy(update={"baseline": first.name})
            told = results.of_confirmation(context, second, found)
        store.log_confirmation(run, found, told, promoted=False, reason="a test")
        store.finish(run, second.name)
        assert undescribed(store, run) == set()
        yield lab


def _kernels(context: EvaluationContext) -> tuple[Kernel, Kernel]:
    """A seed, and a kernel that was made of it. Its source has another constant, so no seed has it."""
    naive, blocked = (file.read_text() for file in context.problem.seeds("cpp"))
    experiment = Experiment(title="block", description="Faster.", rubric=("do it",), uplift=(0, 50), innovation=10)
    first = Kernel(name="k00001", language="cpp", source=naive)
    made = {"base": "k00001", "reference": "k00001", "generation": 1, "experiment": experiment}
    return first, Kernel.model_validate(
        {"name": "k00002", "language": "cpp", "source": f"{blocked}\n# k00002\n", **made}
    )


@pytest.fixture(scope="module")
def archive(laboratory: Path) -> Path:
    written = ks.export_evidence("k00002", overrides=SETTINGS)
    assert Path(written.file) == laboratory / "reports" / f"{CAMPAIGN}-k00002.evidence.zip"
    return Path(written.file)


@pytest.fixture(scope="module")
def honest(archive: Path) -> Files:
    return unpacked(archive)


def test_an_honest_archive_agrees_and_says_what_it_cannot_show(archive: Path, honest: Files) -> None:
    result = ks.verify(archive)
    assert result.differences == () and result.agrees
    assert result.checked > 500 and (result.campaign, result.kernel) == (CAMPAIGN, "k00002")
    rates = f"the rates of {honest[SAMPLES]['bound']['name']}"
    unchecked = {one.what for one in result.unchecked}
    assert unchecked == {
        *("the verdict", "the clock readings", "the secret inputs", "machine, versions and load"),
        *("the compile report", "campaign, MLflow run and date", "the layers of the sandbox", "margins"),
        *("the seconds of each step", "experiments and their predicted gains", "other parameters of the campaign"),
        *("verdicts and generations of ancestors", "what the confirmation compares with", rates),
        "settings of the confirmation",
    }
    assert all(one.why for one in result.unchecked)
    assert {"sources/k00001.py", "sources/k00002.py", SAMPLES, "confirmation_evidence.json"} <= honest.keys()


def test_a_kernel_that_was_not_confirmed_has_evidence_without_a_confirmation(laboratory: Path, tmp_path: Path) -> None:
    written = ks.export_evidence("k00001", CAMPAIGN, tmp_path / "seed.zip", SETTINGS)
    result = ks.verify(written.file)
    assert result.agrees and "a confirmation" in {one.what for one in result.unchecked}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found(name: str, honest: Files, laboratory: Path, tmp_path: Path) -> None:
    forged = copy.deepcopy(honest)
    what, forge = FORGERIES[name]
    forge(forged)
    assert forged != honest, "it must change something"
    result = ks.verify(packed(forged, tmp_path / "forged.zip"))
    assert told(result)
    found = [one.what for one in result.differences]
    assert what in found or any(": " in what and one.startswith(what) for one in found), found


def told(result: VerificationResult) -> bool:
    """Whether a difference was found, and each says what is stated and what it should be."""
    return bool(result.differences) and all(one.what and one.stated and one.recomputed for one in result.differences)


def test_a_difference_says_that_another_version_of_the_evaluator_computed_it(
    honest: Files, laboratory: Path, tmp_path: Path
) -> None:
    other = of_another_evaluator(honest)
    assert ks.verify(packed(other, tmp_path / "same.zip")).agrees
    other[EVALUATION]["timings"][0]["time_us"] /= 2
    (different,) = ks.verify(packed(other, tmp_path / "forged.zip")).differences
    assert different.recomputed.endswith("(another version of the evaluator computed what is stated)")


def test_a_changed_file_does_not_have_its_digest(honest: Files, tmp_path: Path) -> None:
    forged = copy.deepcopy(honest)
    forged["sources/k00001.py"] += "\n"
    found = ks.verify(packed(forged, tmp_path / "forged.zip", with_digests=False)).differences
    assert "bundle.json: files: sources/k00001.py" in {one.what for one in found}


def test_without_the_problem_the_figures_are_checked_all_the_same(
    honest: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "problems").mkdir()
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    result = ks.verify(packed(honest, tmp_path / "same.zip"))
    assert result.agrees and "problem identity" in {one.what for one in result.unchecked}
    forged = copy.deepcopy(honest)
    forged[EVALUATION]["timings"][0]["time_us"] /= 2
    different = ks.verify(packed(forged, tmp_path / "forged.zip")).differences
    assert [one.what for one in different] == ["evaluation.json: timings[size131072]: time_us"]


def test_what_was_not_recorded_is_no_evidence(laboratory: Path) -> None:
    with pytest.raises(SetupError, match="has no kernel k00009"):
        ks.export_evidence("k00009", overrides=SETTINGS)


def test_exit_codes_of_verify(archive: Path, honest: Files, tmp_path: Path, cli_here: Cli) -> None:
    assert cli_here("verify", str(archive)).returncode == 0
    forged = copy.deepcopy(honest)
    forged[EVALUATION]["timings"][0]["time_us"] = 0.001
    different = cli_here("verify", str(packed(forged, tmp_path / "forged.zip")), "--json")
    assert different.returncode == 1
    assert json.loads(different.stdout)["differences"][0]["stated"] == "0.001"
    (tmp_path / "text.zip").write_text("no archive")
    damaged = [tmp_path / f"{name}.zip" for name in ("deflated", "name", "lzma")]
    content = bytearray(archive.read_bytes())
    start = 30 + int.from_bytes(content[26:28], "little")  # of the first file's compressed bytes
    content[start : start + 8] = b"\xff" * 8
    damaged[0].write_bytes(content)
    with zipfile.ZipFile(damaged[1], "w") as zipped:
        zipped.writestr("\u00e4\u00e4", "")
    damaged[1].write_bytes(damaged[1].read_bytes().replace("\u00e4\u00e4".encode(), b"\xff" * 4))
    with zipfile.ZipFile(damaged[2], "w", zipfile.ZIP_LZMA) as zipped:
        zipped.writestr("bundle.json", "{}")
    for wrong in (tmp_path / "text.zip", tmp_path / "absent.zip", *damaged):
        refused = cli_here("verify", str(wrong))
        assert refused.returncode == 2 and str(wrong) in refused.stderr and len(refused.stderr.splitlines()) == 1
