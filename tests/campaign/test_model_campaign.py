"""A campaign for a GPU that is not here: the real flow, compiler, machine, store. Predicted is never measured."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.population.entry import score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Evaluation, Prediction, Trial
from kernel_scientist.records.kernel import Experiment, Kernel, Verdict
from kernel_scientist.report import tables
from kernel_scientist.scientist.context import outcomes
from kernel_scientist.search.prescreen import Prescreen
from kernel_scientist.tracking import run_content
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT, Cli, without_progress
from tests.scientist.model_server import Response, serving
from tests.trials import undescribed

needs_hip = pytest.mark.skipif(isinstance(hip.find(), str), reason=str(hip.find()))
MODEL = [x for s in ("language=triton", "target=model:mi300x") for x in ("--set", s)]
MEASURED = ("time_us", "geomean_us", "speedup", "log2_speedup", "roofline_fraction", "measured_uplift", "best_speedup")


def predicted(us: float, floor_us: float = 1.0) -> Prediction:
    return Prediction(case="a", machine="MI300X", time_us=us, floor_us=floor_us, limited_by="hbm")


@pytest.mark.slow
def test_a_whole_campaign_on_a_model(lab: Path, cli_here: Cli, tmp_path: Path, prefect_api: str) -> None:
    more = ["problem=identity", "search.generations=1", "search.experiments=2"]
    arguments = [*MODEL, *(x for s in more for x in ("--set", s))]
    done = cli_here("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kernels"] == 4 and found["verdicts"]["ok"] == 4 and found["champion"]
    assert not found["confirmed"] and found["speedup"] is None and "nothing was measured" in found["why"]
    assert found["predicted"]["machine"] == "MI300X" and found["predicted"]["calibration"] == "published"
    assert 0 < found["predicted"]["roofline_fraction"] <= 1 and "predicted, not measured" in found["predicted"]["by"]

    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-model-mi300x")
    parent = store.latest()
    assert parent is not None
    assert undescribed(store, parent) == set()
    names = [trial.kernel.name for trial in store.population(parent)]
    children: list[Any] = [store.client.get_run(run_id) for run_id in store.run_ids(parent, names).values()]
    for run in children:
        assert run.data.tags["score"] == "predicted" and run.data.tags["calibration"].startswith("published: ")
        assert run.data.metrics["predicted_geomean_us"] > 0 and run.data.metrics["gpu/vgpr"] > 0
        assert not [m for m in run.data.metrics if m.split("/")[0] in MEASURED]
        assert store.client.list_artifacts(run.info.run_id, "assembly")
    campaign = store.client.get_run(parent.run_id).data.metrics
    assert campaign["predicted_best_roofline_fraction"] > 0 and not [m for m in campaign if m in MEASURED]
    population = store.population(parent)
    best = population.best()
    assert best is not None and best.kernel.name == found["champion"]
    assert score(best) == max(score(t) for t in population) and best.evaluation.coverage.startswith("executed: all")

    page = tmp_path / "page.html"
    done = cli_here("report", "--out", str(page), *MODEL, "--set", "problem=identity")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "of the roofline, predicted" in text and "nothing was measured" in text and "measured speed" not in text

    champion = (lab / "champions/identity/triton-model-mi300x/kernel.py").read_text()
    assert champion.startswith("#!POPCORN leaderboard amd-identity\n#!POPCORN gpu MI300\n")
    compile(champion, "kernel.py", "exec")
    assert "kernel_scientist" not in champion, "a leaderboard has nothing of ours"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("language=triton", "target=model:mi999"), "unknown machine 'mi999'; known: mi300x"),
        (("language=cpp", "target=model:mi300x"), "predicts GPU kernels (triton, hip), not cpp"),
        (("language=hip", "target=model:h100"), "HIP kernels are compiled for AMD's GPUs"),
        (("language=hip", "target=cpu"), "use target=model:mi300x"),
        (("language=triton", "target=models"), "parameter 'target'"),
    ],
)
def test_a_target_that_cannot_be_is_a_mistake(settings: tuple[str, ...], words: str, cli_here: Cli) -> None:
    done = cli_here("optimize", *(x for s in settings for x in ("--set", s)))
    assert done.returncode == 2 and words in done.stderr and len(without_progress(done.stderr)) == 1, done.stderr


def test_compile_is_the_contracts_json(cli: Cli, cli_here: Cli, lab: Path, tmp_path: Path) -> None:
    seed = str(lab / "problems/identity/seeds/triton_naive.py")
    done = cli("compile", seed, "--arch", "gfx942", "--no-lines", "--json", "--asm", str(tmp_path / "asm"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    keys = {"kernel", "grid", "num_warps", "vgpr", "agpr", "sgpr", "spills", "lds_bytes", "scratch_bytes"}
    keys |= {"occupancy", "limited_by", "mfma", "code_bytes"}
    assert found["launches"] and all(keys <= set(launch) for launch in found["launches"])
    assert {tuple(launch["grid"]) for launch in found["launches"]} > {(1, 1, 1)}
    assert found["problem"] == "identity" and "amdgcn" in Path(found["assembly"][0]).read_text()
    cpp = cli_here("compile", str(lab / "problems/identity/seeds/cpp_naive.py"))
    assert cpp.returncode == 2 and "is a C++ kernel for the CPU" in cpp.stderr
    for arguments, words in (
        (("--arch", "gfx90a"), "unknown architecture 'gfx90a'"),
        (("--arch", "gfx942", "--machine", "h100"), "H100 is sm_90, not gfx942"),
        (("--problem", "nothing"), "unknown problem 'nothing'"),
    ):
        done = cli_here("compile", seed, *arguments)
        assert done.returncode == 2 and words in done.stderr, done.stderr


@pytest.mark.parametrize("language", ["triton", pytest.param("hip", marks=needs_hip)])
def test_compile_says_which_lines_take_the_time(language: str, cli_here: Cli) -> None:
    seed = ROOT / f"problems/identity/seeds/{language}_naive.py"
    done = cli_here("compile", str(seed), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (shown,) = [one for one in found["predicted"] if one["lines"]]
    texts = seed.read_text().splitlines()
    assert all(line["text"] == texts[line["line"] - 1].strip() for line in shown["lines"])
    assert sum(line["share"] for line in shown["lines"]) > 0.9 and shown["lines"][0]["cycles"] > 0
    assert shown["case"] in {case for launch in found["launches"] for case in launch["cases"]}


@needs_hip
def test_compile_says_why_it_has_no_lines(cli_here: Cli, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    source = (ROOT / "problems/identity/seeds/hip_naive.py").read_text()
    kernel.write_text(source.replace("out[i] = x[i];", "out[i] = x[i + size];"))
    done = cli_here("compile", str(kernel), "--problem", "identity")
    assert done.returncode == 0, done.stderr
    assert "no profile by source line: " in done.stdout and "out-of-bounds read" in done.stdout, done.stdout


@needs_hip
def test_a_wait_that_inline_assembly_lacks_is_a_finding(cli_here: Cli, tmp_path: Path) -> None:
    source = (ROOT / "problems/identity/seeds/hip_naive.py").read_text()
    load = """asm volatile("global_load_ushort %0, %1, off" : "=v"(value) : "v"(x + i));"""
    kernel = tmp_path / "kernel.py"
    for wait in ("", """asm volatile("s_waitcnt vmcnt(0)");"""):
        instead = f"if (i < size) {{\n unsigned value;\n {load}\n {wait}\n out[i] = value;\n }}"
        kernel.write_text(source.replace("if (i < size) out[i] = x[i];", instead))
        done = cli_here("compile", str(kernel), "--problem", "identity", "--no-lines", "--json")
        assert done.returncode == 0, done.stderr
        assert not json.loads(done.stdout)["predicted"], "nothing was executed"
        said = [one for one in json.loads(done.stdout)["findings"] if "is missing" in one]
        assert len(said) == (0 if wait else 1)
        place = next(n for n, line in enumerate(kernel.read_text().splitlines(), 1) if "out[i] = value" in line)
        first = next(n for n, line in enumerate(source.splitlines(), 1) if "DEVICE = " in line)
        assert wait or (f"[1]:{place - first + 1}, " in said[0] and "`s_waitcnt vmcnt(0)` is missing" in said[0])


def test_a_submission_of_no_problem_is_compiled_kernel_by_kernel(cli_here: Cli) -> None:
    done = cli_here("compile", str(ROOT / "tests/gpu/capture/submissions/of_no_problem.py"), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["problem"] is None and found["predicted"] == []
    assert [launch["kernel"] for launch in found["launches"]] == ["mm", "norm"], "gelu is a helper"
    assert (
        found["launches"][0]["mfma"] and found["launches"][0]["num_warps"] == 8 and found["launches"][0]["grid"] is None
    )
    assert len(found["missed"]) == 2 and "eps 0.5" in found["missed"][1]


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=8, unique=True), st.integers(1, 4))
def test_the_best_by_prediction_always_go_on(times: list[float], most: int) -> None:
    screen = Prescreen(most, Population())
    plan = Experiment(title="t", description="d", rubric=(), uplift=(0, 1), innovation=1)
    through: list[float] = []
    for number, us in enumerate(times):
        kernel = Kernel(name=f"k{number}", language="triton", source="", experiment=plan, generation=1)
        so_far = Evaluation(verdict=Verdict.OK, predictions=(predicted(us),), by_model=True)
        held = screen.skipped(kernel, so_far)
        through += [us] if held is None else []
        assert held is None or score(Trial(kernel=kernel, evaluation=held)) == 0
        assert held is None or (held.verdict is Verdict.COMPILED and "not executed" in held.reason)
    assert set(sorted(times)[:most]) <= set(through)


def test_a_kernel_that_proves_wrong_keeps_nobody_back() -> None:
    plan = Experiment(title="t", description="d", rubric=(), uplift=(0, 1), innovation=1)
    quick, right = (Kernel(name=n, language="triton", source=n, experiment=plan, generation=1) for n in "ab")
    fast, slow = (Evaluation(verdict=Verdict.OK, predictions=(predicted(us),), by_model=True) for us in (1.0, 2.0))
    screen = Prescreen(1, Population())
    assert screen.skipped(quick, fast) is None
    assert screen.skipped(right, slow) is not None
    screen.forget(quick)
    assert screen.skipped(right, slow) is None
    resumed = Prescreen(1, Population((Trial(kernel=quick, evaluation=fast),)))
    assert resumed.skipped(right, slow) is not None


def test_a_kernel_that_was_not_executed_is_no_loss() -> None:
    plan = Experiment(title="t", description="d", rubric=(), uplift=(0, 1), innovation=1)
    base = Trial(
        kernel=Kernel(name="k1", language="triton", source="a"),
        evaluation=Evaluation(verdict=Verdict.OK, predictions=(predicted(4.0),), by_model=True),
    )
    held = Trial(
        kernel=Kernel(name="k2", language="triton", source="b", base="k1", experiment=plan),
        evaluation=Evaluation(
            verdict=Verdict.COMPILED, predictions=(predicted(8.0),), by_model=True, skipped=True, reason="no"
        ),
    )
    population = Population((base, held))
    assert population.predicted_gain(held) is None and population.best() == base and score(base) == 0.25
    assert run_content.predicted(base, population)["predicted_geomean_us"] == pytest.approx(4)
    assert run_content.predicted(held, population)["unverified_predicted_geomean_us"] == pytest.approx(8)
    assert not [name for name in run_content.predicted(held, population) if name.startswith("predicted")]
    assert tables.kernel_row(held)["us"] == "8 unverified" and tables.kernel_row(base)["us"] == "4"
    assert outcomes.outcome(population, held) == "compiled, no"


@needs_hip
def test_a_hip_kernel_is_executed_and_predicted(cli_here: Cli, lab: Path) -> None:
    seed, target = (
        str(lab / "problems/identity/seeds/hip_naive.py"),
        ("--problem", "identity", "--target", "model:mi300x"),
    )
    done = cli_here("evaluate", seed, *target, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["verdict"] == "ok", found
    assert found["coverage"].startswith("executed: all programs of ") and "values compared on" in found["coverage"]
    assert found["compile"]["objects"] and found["geomean_us"] is None
    cases = {one["case"]: one for one in found["predicted"]["cases"]}
    assert set(cases) == {one["case"] for one in found["compile"]["launches"]} and not found["compile"]["missed"]
    assert all(one["time_us"] > one["floor_us"] and one["limited_by"] for one in cases.values())
    assert "by a model of MI300X" in found["reason"]
    wrong, broken = lab / "wrong.py", lab / "broken.py"
    wrong.write_text(Path(seed).read_text().replace("out[i] = x[i]", "out[i] = x[i] ^ (i == 77)"))
    done = cli_here("evaluate", str(wrong), *target, "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["verdict"] == "incorrect"
    broken.write_text(Path(seed).read_text().replace("__global__", "__global__ nonsense"))
    assert cli_here("evaluate", str(broken), *target).returncode == 1


@needs_hip
def test_a_campaign_whose_kernels_are_not_predicted_says_so(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    model = "{model: openai/never-asked, price: {input_usd: 1, output_usd: 1}}"
    roles = [f"llm.{role}={model}" for role in ("selector", "designer", "writer")]
    given = ("language=hip", "target=model:mi300x", "problem=identity", "harness.executed_s=0", *roles)
    settings = [x for s in given for x in ("--set", s)]
    with serving(lambda body, number: Response()) as server:
        asked = {"OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "unused"}
        done = cli_here("optimize", "--json", *settings, PREFECT_API_URL=prefect_api, **asked)
    assert not server.requests
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["champion"] is None and found["verdicts"]["ok"] == found["kernels"] == 1
    assert found["why"].startswith("No kernel was timed; some are right.")
    assert found["why"] in (lab / f"reports/{found['campaign']}.html").read_text()
