"""Campaigns through the real flow, server, store and compiler: every kernel is recorded exactly once."""

import contextlib
import json
import math
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import Cli, dedent, lab_environment, without_progress
from tests.trials import undescribed

QUICK = ["problem=identity", "search.generations=2", "search.experiments=2", "harness.blocks=4", "validate.processes=1"]
QUICK += ["validate.blocks=3", "harness.warmup_calls=1", "harness.call_timeout_s=2", "harness.import_timeout_s=5"]
SETTINGS = [x for s in QUICK for x in ("--set", s)]

BAD_SEEDS = {
    "cpp_hangs.py": "def custom_kernel(d):\n    while True: pass\n",
    "cpp_segfaults.py": "import ctypes\ndef custom_kernel(d):\n    ctypes.string_at(8)\n",
    "cpp_wrong.py": "def custom_kernel(d):\n    return d[1].zero_()\n",
    "cpp_uncompiled.py": "from kernel_scientist import load\nload('x')\ndef custom_kernel(d): ...\n",
    "cpp_prints.py": "def custom_kernel(d):\n    for _ in range(1024): print('x' * 2**20)\n    return d[0]\n",
    "cpp_forks.py": "import os\ndef custom_kernel(d):\n    os.fork()\n    return d[1].copy_(d[0])\n",
}
VERDICTS = {"hangs": "timeout", "segfaults": "crashed", "wrong": "incorrect", "uncompiled": "compile_error"}
VERDICTS |= {"prints": "rejected", "forks": "rejected"}


def runs(lab: Path, problem: str = "identity") -> tuple[Any, list[Any], MlflowStore]:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", f"{problem}-cpu")
    parent = store.latest()
    assert parent is not None
    return parent, store._children(parent.run_id), store


def test_bad_kernels_get_their_verdict_and_the_campaign_continues(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    for name, source in BAD_SEEDS.items():
        (lab / "problems/identity/seeds" / name).write_text(source)
    done = cli_here("optimize", "--json", *SETTINGS, "--set", "search.generations=1", PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    parent, children, store = runs(lab)
    assert undescribed(store, parent) == set()
    by_report = {r.data.tags["report"]: r for r in children}
    for name, verdict in VERDICTS.items():
        run = by_report[f"seed cpp_{name}.py"]
        assert run.data.tags["verdict"] == verdict, run.data.tags["reason"]
        assert "speedup" not in run.data.metrics
    assert result["kernels"] == len(children) == 2 + len(BAD_SEEDS) + 2
    assert result["verdicts"]["ok"] == 4 and result["champion"]
    assert sorted(r.data.tags["kernel"] for r in children) == [f"k{n:05d}" for n in range(1, len(children) + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("moment", [3])
def test_a_killed_campaign_is_resumed_without_loss_or_duplicates(
    moment: int, lab: Path, cli_here: Cli, prefect_api: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", "optimize", *SETTINGS],
        cwd=lab,
        env=lab_environment(lab, PREFECT_API_URL=prefect_api),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    logged: list[str] = []
    while len(logged) < moment and (line := process.stderr.readline()):
        if line.startswith("k0"):
            logged.append(line.split()[0])
    time.sleep(0.4)  # into the next kernel's work
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, before, store = runs(lab)
    before_kill = {
        r.data.tags["kernel"]: (r.info.run_id, r.data.tags["digest"]) for r in before if r.info.status == "FINISHED"
    }
    assert set(logged) <= set(before_kill)

    done = cli_here("optimize", "--resume", "--json", *SETTINGS, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    parent, after, _ = runs(lab)
    names = sorted(r.data.tags["kernel"] for r in after)
    assert result["campaign"] == parent.campaign and parent.run_id == store.latest().run_id  # type: ignore[union-attr]
    assert result["kernels"] == len(after) == 6 and names == [f"k{n:05d}" for n in range(1, 7)]
    assert all(r.info.status == "FINISHED" for r in after)
    now = {r.data.tags["kernel"]: (r.info.run_id, r.data.tags["digest"]) for r in after}
    assert all(now[name] == before_kill[name] for name in before_kill)
    assert len({digest for _, digest in now.values()}) == 6


def test_budgets_are_hard(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    done = cli_here("optimize", "--json", *SETTINGS, "--set", "budget.kernels=1", PREFECT_API_URL=prefect_api)
    result = json.loads(done.stdout)
    assert result["kernels"] == 1 and "budget.kernels" in result["stopped"], done.stderr
    assert f"optimize --campaign {result['campaign']} --set budget.kernels=2 " in result["resume"]
    assert len(runs(lab)[1]) == 1
    done = cli_here("optimize", "--json", *SETTINGS, "--set", "budget.minutes=0.00001", PREFECT_API_URL=prefect_api)
    result = json.loads(done.stdout)
    assert done.returncode == 1 and result["kernels"] == 0 and result["champion"] is None
    assert "budget.minutes" in result["stopped"]


def test_a_script_may_always_resume(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    """Killed before the first kernel, `--resume` begins; a dead campaign does not run for ever."""
    arguments = ("optimize", "--resume", *SETTINGS, "--set", "budget.kernels=1")
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_scientist", *arguments],
        cwd=lab,
        env=lab_environment(lab, PREFECT_API_URL=prefect_api),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while not (line := process.stderr.readline()).startswith("there is no campaign to resume"):
        assert line, "it ended"
    while not runs_of_campaigns(lab):
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (dead,) = runs_of_campaigns(lab)
    assert dead.info.status == "RUNNING"
    cli_here("report", "--set", "problem=identity", "--out", str(lab / "report.html"))
    assert [run.info.status for run in runs_of_campaigns(lab)] == ["KILLED"]
    done = cli_here(*arguments, "--json", PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["campaign"] == dead.data.tags["campaign"]
    assert [run.info.status for run in runs_of_campaigns(lab)] == ["FINISHED"]
    done = cli_here("optimize", "--campaign", "another", *SETTINGS, PREFECT_API_URL=prefect_api)
    (error,) = without_progress(done.stderr)
    assert done.returncode == 2 and error.startswith("error: no campaign 'another'"), done.stderr


def runs_of_campaigns(lab: Path) -> list[Any]:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    return store.client.search_runs([store.experiment_id], filter_string="tags.kind = 'campaign'")


def test_a_clone_has_no_store_to_report_from(lab: Path, cli_here: Cli) -> None:
    shutil.rmtree(lab / "mlruns")
    for command in ("report", "export"):
        done = cli_here(command, "--set", "problem=identity")
        (error,) = without_progress(done.stderr)
        assert done.returncode == 2 and "there is no MLflow store" in error and "not part of a clone" in error
    assert not (lab / "mlruns").exists()


@pytest.mark.slow
def test_a_laboratory_is_moved(lab: Path, cli_here: Cli, prefect_api: str, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    first = cli_here("optimize", "--json", *SETTINGS, "--set", "budget.kernels=2", PREFECT_API_URL=prefect_api)
    lab.rename(moved)
    lab.symlink_to("/nonexistent")  # nothing may be written where it was
    here: dict[str, str] = {"KERNEL_SCIENTIST_ROOT": str(moved), "PREFECT_API_URL": prefect_api}
    with contextlib.chdir(moved):
        commands = (
            ["optimize", "--resume", "--json", *SETTINGS],
            ["export", "--out", "data/training.jsonl"],
            ["report"],
        )
        for command in commands:
            problem = () if command[0] == "optimize" else ("--set", "problem=identity")
            done = subprocess.run(
                [sys.executable, "-m", "kernel_scientist", *command, *problem],
                env=lab_environment(moved, **here),
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            if command[0] == "optimize":
                result = json.loads(done.stdout)
                assert result["campaign"] == json.loads(first.stdout)["campaign"] and result["kernels"] == 6
    assert len((moved / "data/training.jsonl").read_text().splitlines()) == 4  # no seeds
    assert (moved / f"reports/{json.loads(first.stdout)['campaign']}.html").exists()


def test_the_json_of_evaluate(cli: Cli, cli_here: Cli, lab: Path, prefect_api: str) -> None:
    seeds = lab / "problems/identity/seeds"
    # on a busy machine a timing may look hopeless after a few blocks, and its interval stays unknown
    whole = ("--set", "harness.blocks=6", "--set", "harness.drop_after=0")
    arguments = ("--problem", "identity", "--json", *whole)
    done = cli(
        "evaluate",
        str(seeds / "cpp_blocked.py"),
        "--against",
        str(seeds / "cpp_naive.py"),
        *arguments,
        PREFECT_API_URL=prefect_api,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    keys = {"verdict", "reason", "geomean_us", "cases", "speedup", "labels", "evidence", "sandbox", "predicted"}
    assert keys <= set(result) and result["verdict"] == "ok" and result["predicted"] is None
    figures = {"case", "time_us", "interval_us", "floor_us", "against_us", "ratio_interval"}
    assert all(set(c) == figures for c in result["cases"])
    quotients = [math.log(c["against_us"] / c["time_us"]) for c in result["cases"]]
    assert result["speedup"]["ratio"] == pytest.approx(math.exp(statistics.mean(quotients)), rel=1e-9)
    low, high = result["speedup"]["interval"]
    assert result["speedup"]["against"] == "cpp_naive (against)" and low <= result["speedup"]["ratio"] <= high

    (lab / "wrong.py").write_text("def custom_kernel(d):\n    return d[1]\n")
    done = cli_here("evaluate", "wrong.py", *arguments, PREFECT_API_URL=prefect_api)
    assert done.returncode == 1 and json.loads(done.stdout)["verdict"] == "incorrect"


@pytest.mark.slow
def test_validation_confirms_only_a_faster_kernel(cli_here: Cli, lab: Path, prefect_api: str) -> None:
    slow = lab / "slow.py"
    slow.write_text("import time\ndef custom_kernel(d):\n    time.sleep(0.01)\n    return d[1].copy_(d[0])\n")
    quick = lab / "quick.py"
    quick.write_text("def custom_kernel(d):\n    return d[1].copy_(d[0])\n")
    arguments = ("--json", "--set", "validate.processes=2", "--set", "validate.blocks=3", "--problem", "identity")
    won = cli_here("validate", str(quick), "--against", str(slow), *arguments, PREFECT_API_URL=prefect_api)
    lost = cli_here("validate", str(slow), "--against", str(quick), *arguments, PREFECT_API_URL=prefect_api)
    assert won.returncode == 0 and json.loads(won.stdout)["confirmed"] is True, won.stderr
    result = json.loads(won.stdout)
    assert {s["against"] for s in result["speedups"]} == {"reference", "slow"}
    assert {s["against"] for s in result["held_out"]["speedups"]} == {"reference", "slow"}
    assert lost.returncode == 1 and json.loads(lost.stdout)["confirmed"] is False
    assert "not faster than quick on the public cases" in json.loads(lost.stdout)["why"]


def test_kernels_of_equal_file_names_are_distinguished(cli_here: Cli, lab: Path, prefect_api: str) -> None:
    slow, quick = (lab / folder / "reference.py" for folder in ("slow", "quick"))
    for file, line in ((slow, "time.sleep(0.01)"), (quick, "pass")):
        file.parent.mkdir()
        file.write_text(f"import time\ndef custom_kernel(d):\n    {line}\n    return d[1].copy_(d[0])\n")
    arguments = ("--json", "--problem", "identity", "--set", "validate.processes=2", "--set", "validate.blocks=3")
    alone = json.loads(cli_here("evaluate", str(slow), *arguments, PREFECT_API_URL=prefect_api).stdout)
    assert alone["geomean_us"] > 9000 and alone["speedup"]["ratio"] < 0.5
    lost = cli_here("validate", str(slow), "--against", str(quick), *arguments, PREFECT_API_URL=prefect_api)
    result = json.loads(lost.stdout)
    assert not result["confirmed"] and "not faster than reference (against)" in result["why"]
    assert result["kernel"] == "reference (kernel)" and len(result["speedups"]) == 2


def test_only_infrastructure_errors_are_retried_and_a_task_that_hangs_is_one(prefect_api: str, lab: Path) -> None:
    program = dedent(
        """
        import time
        from prefect import flow, task
        from kernel_scientist.records.errors import InfrastructureError
        from tasks.chain import Chain
        from tasks.retries import infrastructure_only
        calls = {"busy": 0, "wrong": 0}
        def hang(seconds):
            time.sleep(seconds)
        def attempt(kind, error):
            @task(name=kind, retries=2, retry_delay_seconds=0, retry_condition_fn=infrastructure_only)
            def work():
                calls[kind] += 1
                raise error
            return work
        @flow
        def run():
            for kind, error in (("busy", InfrastructureError("busy")), ("wrong", ValueError("wrong"))):
                attempt(kind, error)(return_state=True)
            try:
                Chain().run(task(timeout_seconds=0.2)(hang), "it", seconds=2)
            except InfrastructureError as error:
                calls["hangs"] = "took too long" in str(error)
        run()
        print(calls)
        """
    )
    env = lab_environment(lab, PREFECT_API_URL=prefect_api)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "{'busy': 3, 'wrong': 1, 'hangs': True}", done.stderr


def test_a_verdict_that_the_machine_may_have_caused_is_not_cached(prefect_api: str, lab: Path) -> None:
    program = dedent(
        """
        from prefect import flow
        from kernel_scientist.records.evaluation import Evaluation
        from kernel_scientist.records.kernel import Kernel, Verdict
        from types import SimpleNamespace
        from tasks import compilation
        from tasks.chain import Chain
        calls = []
        def build(context, kernel, *_):
            calls.append(kernel.name)
            verdict = Verdict.OK if calls.count(kernel.name) > 1 else Verdict(kernel.name)
            return Evaluation(verdict=verdict, reason="it fails the first time")
        compilation.steps.compile_kernel = build
        compilation.cache_key = lambda context, kernel, step: kernel.name
        import threading
        nowhere = SimpleNamespace(stopped=threading.Event())
        @flow
        def run():
            for name in ("crashed", "timeout", "infrastructure", "incorrect", "ok"):
                kernel = Kernel(name=name, language="triton", source="")
                found = [Chain().build(nowhere, kernel).verdict.value for _ in range(3)]
                print(name, calls.count(name), *found)
        run()
        """
    )
    env = lab_environment(lab, PREFECT_API_URL=prefect_api)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "crashed 2 crashed ok ok",
        "timeout 2 timeout ok ok",
        "infrastructure 2 infrastructure ok ok",
        "incorrect 1 incorrect incorrect incorrect",
        "ok 1 ok ok ok",
    ], done.stderr
