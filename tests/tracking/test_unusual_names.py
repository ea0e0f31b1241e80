"""Cases with any names, from task.yml to MLflow: none is lost, none takes another's place."""

from pathlib import Path

import pytest
import yaml

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.gpu.isa import assembly
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems import frozen
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import CompileReport, Evaluation, Trial
from kernel_scientist.records.gpu import CodeObject
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.tracking import artifacts
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.workers.worker_pool import WorkerPool

REFERENCE = """
import torch

def generate_input(n: int, mode: str, seed: int):
    gen = torch.Generator().manual_seed(seed)
    return torch.rand(n, generator=gen), torch.zeros(n)


def ref_kernel(data):
    return data[1].copy_(2 * data[0])


def check_implementation(data, output):
    return torch.equal(output, 2 * data[0]), "elements differ"
"""
KERNEL = "def custom_kernel(data):\n    return data[1].copy_(2 * data[0])\n"
LONG = "größer " * 40
MODES = ("a,b", "a:b", "a/b", "a_b", "../b", "größe", "A", "a", "", LONG, f"{LONG}!")
"""Texts that were one name once, or no name that a file or a metric may have."""


def loaded(folder: Path, benchmarks: list[dict[str, object]], tests: list[dict[str, object]] | None = None) -> Problem:
    folder.mkdir(exist_ok=True)
    (folder / "reference.py").write_text(REFERENCE)
    cases = {"description": "Names.", "tests": tests or benchmarks, "benchmarks": benchmarks}
    (folder / "task.yml").write_text(yaml.safe_dump(cases, allow_unicode=True))
    (folder / "lab.yml").write_text(yaml.safe_dump({"writes": [1], "profiles": {"cpu": {}}}))
    return problems.load(folder)


@pytest.mark.alone
def test_every_case_is_timed_and_recorded(tmp_path: Path, pool: WorkerPool) -> None:
    listed: list[dict[str, object]] = [{"n": 64, "mode": mode} for mode in MODES]
    listed += [{"n": 64, "mode": "a", "seed": 7}, {"n": 64, "mode": "a", "seed": 7}]
    problem = loaded(tmp_path / "größe, 1:2 it's", listed)
    evaluator = Evaluator(problem, "cpu", pool.harness, pool)
    kernel = Kernel(name="k00001", language="cpp", source=KERNEL)
    found = evaluator.check(kernel, evaluator.compile(kernel))
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    found = evaluator.time(kernel, found, [evaluator.reference()])
    assert found.verdict is Verdict.OK, (found.reason, found.evidence)
    names = [timing.case for timing in found.timings]
    assert len(names) == len(set(names)) == len(listed)

    store = MlflowStore(f"sqlite:///{tmp_path}/mlruns/mlflow.db", "names, of: größe/1")
    campaign = store.start(f"{problem.slug}-cpu", {"problem": problem.name}, problem)
    store.log(campaign, Trial(kernel=kernel, evaluation=found), Population(), problem)
    (run,) = store._children(campaign.run_id)
    assert {key for key in run.data.metrics if key.startswith("time_us/")} == {f"time_us/{name}" for name in names}
    assert store.population(store.latest(f"{problem.slug}-cpu")).get("k00001").evaluation.timings == found.timings
    assert store.latest("it's") is None and store.latest("""it's "not" one""") is None
    model = f"{problem.slug}-cpp-cpu"
    assert store.register(campaign, kernel, model, True) == store.register(campaign, kernel, model, True)

    assert len(set(frozen.freeze(problem, "full", tmp_path / "cases"))) == len(listed)
    assert frozen.verify(problem, "full", tmp_path / "cases") == len(listed)


def test_cases_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"would both be named mode1-n2: change one of them"):
        loaded(tmp_path / "one", [{"mode": "1-n2"}, {"mode": 1, "n": 2}])
    with pytest.raises(SetupError, match=r"would both be named mode2-n1"):
        loaded(tmp_path / "other", [{"n": 1, "mode": 2}], [{"n": 1, "mode": "2"}])


def test_problems_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    (tmp_path / "problems/a").mkdir(parents=True)
    loaded(tmp_path / "problems/a/b", [{"n": 1, "mode": "x"}])
    with pytest.raises(SetupError, match="problems a-b and a/b would have one name in stores, a-b: rename one of them"):
        loaded(tmp_path / "problems/a-b", [{"n": 1, "mode": "x"}])


def test_code_of_any_name_is_a_file(tmp_path: Path) -> None:
    """A template's name in C++ is longer than a file's may be."""
    codes = [
        CodeObject(kernel=name, arch="gfx942", digest=assembly.put(name), num_warps=4, vgpr=8)
        for name in ("void f<a/b>(größe)", "f" * 300, "f" * 301)
    ]
    report = CompileReport(ok=True, compiler="hipcc", objects=tuple(codes))
    kernel = Kernel(name="k00001", language="hip", source=KERNEL, llm_calls=())
    evaluation = Evaluation(verdict=Verdict.OK, compile=report)
    artifacts.write(tmp_path, Trial(kernel=kernel, evaluation=evaluation), Population())
    assert sorted(file.read_text() for file in (tmp_path / "assembly").iterdir()) == sorted(c.kernel for c in codes)
