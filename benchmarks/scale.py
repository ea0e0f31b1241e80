"""A campaign of many kernels: resume, selection, one more kernel, memory. Part of `python -m benchmarks.engine`.

    python -m benchmarks.scale --kernels 10000

The kernels are made by a generator, every third one faster than the incumbent. Their runs are written into MLflow's
database in bulk, their snapshots and replies by the code that campaigns use; the kernels that are added then are
recorded in the usual way.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from benchmarks.parts import seconds
from kernel_scientist import problems
from kernel_scientist.campaign.recorder import Recorder
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.evaluation import CompileReport, Evaluation, PairedTime, Speedup, Timing, Trial
from kernel_scientist.records.kernel import REFERENCE, Author, Experiment, Kernel, LlmCall, Verdict
from kernel_scientist.records.params import Budget
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.response_cache import LlmRequest, Reply, ResponseCache
from kernel_scientist.scientist.playbook.agent import RuleBasedAgent
from kernel_scientist.scientist.prompts import Message
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.scientist.roles import Assignment, CpuInfo, Step
from kernel_scientist.search import strategies
from kernel_scientist.tracking import run_content, snapshots
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore

SIZES = (1_000, 10_000, 100_000)
ROUNDS, MORE = 10, 20
"""After the resume the campaigns record MORE kernels each, in turn, ROUNDS times: the machine's speed drifts by more
than the difference that is looked for."""


def measure() -> dict[str, Any]:
    """Return the figures of each size; each is measured in a process of its own."""
    rows: dict[str, Any] = {}
    children: dict[str, subprocess.Popen[str]] = {}
    costs: dict[str, list[list[float]]] = {str(size): [] for size in SIZES}
    for size in costs:
        command = [sys.executable, "-m", "benchmarks.scale", "--kernels", size]
        children[size] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        rows[size] = _answer(children[size])
    for _ in range(ROUNDS):
        for size, child in children.items():
            costs[size] += _answer(child, f"{MORE}\n")
    for size, child in children.items():
        child.communicate(timeout=60)
        walls, cpus = zip(*costs[size], strict=True)
        rows[size]["record_s"] = round(statistics.median(walls), 5)
        rows[size]["record_cpu_s"] = round(statistics.median(cpus), 5)
        rows[size]["record_cpu_mean_s"] = round(statistics.mean(cpus), 5)
    first = rows[str(SIZES[0])]["record_cpu_s"]
    return {**rows, "record_cpu_over_first": {n: round(row["record_cpu_s"] / first, 3) for n, row in rows.items()}}


def _answer(child: "subprocess.Popen[str]", request: str = "") -> Any:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(request)
    child.stdin.flush()
    return json.loads(child.stdout.readline())


def one_size(kernels: int, folder: Path) -> tuple[dict[str, Any], Callable[[], tuple[float, float]]]:
    """Return the figures of a campaign with this many kernels, and a function that records one more.

    The function returns its wall and its CPU time in seconds.
    """
    problem = problems.find("identity")
    store = MlflowStore(f"sqlite:///{folder}/mlflow.db", "scale")
    run = store.start("scale", {}, problem)
    source = generated(problem)
    began = time.perf_counter()
    _fill(store, run, problem, source, kernels, ResponseCache(folder / "replies"))
    filled_s = time.perf_counter() - began
    before_mb = _memory_mb()

    began = time.perf_counter()
    store = MlflowStore(f"sqlite:///{folder}/mlflow.db", "scale")
    store.reopen(run)
    population, loose = store.read_population(run)
    replies = ResponseCache(folder / "replies")
    LlmBudget.of(replies, Budget(), run.campaign)
    resume_s = time.perf_counter() - began
    assert len(population) == kernels

    selections = {name: _milliseconds(select) for name, select in _selections(problem, population)}
    recorder = Recorder(store, run, problem, replies, population, loose)
    figures = {
        "resume_s": round(resume_s, 2),
        "selection_ms": selections,
        "memory_mb": round(_memory_mb()),
        "memory_before_mb": round(before_mb),
        "filled_s": round(filled_s, 1),
    }

    def record() -> tuple[float, float]:
        trial = next(source)
        wall, cpu = time.perf_counter(), time.process_time()
        recorder.record([trial], lambda: 0.0)
        return time.perf_counter() - wall, time.process_time() - cpu

    return figures, record


def generated(problem: Problem) -> Iterator[Trial]:
    """Yield kernels without end: seeds first, then experiments on the incumbent or on one of the latest kernels."""
    rng, text = random.Random(0), problem.seeds("cpp")[-1].read_text()
    incumbent, ratio, number = "", 1.0, 0
    while True:
        number += 1
        name, base = f"k{number:05d}", incumbent
        if number > 3 and rng.random() < 0.5:
            base = f"k{rng.randint(max(1, number - 50), number - 1):05d}"
        wins, fails = number == 1 or rng.random() < 1 / 3, number > 3 and rng.random() < 0.2
        ratio *= 1.00001 if wins else 1.0
        yield _trial(problem, name, base, f"{text}\nVARIANT = {number}\n", ratio, incumbent, wins, fails and not wins)
        incumbent = name if wins else incumbent


def _trial(
    problem: Problem, name: str, base: str, source: str, ratio: float, incumbent: str, wins: bool, fails: bool
) -> Trial:
    number = int(name[1:])
    experiment = Experiment(
        title=f"idea {number}", description="why " * 50, rubric=("do",), uplift=(0, 9), innovation=5
    )
    call = LlmCall(
        role="writer",
        call_key=f"write/{name}-0/0",
        model="scripted",
        key=f"{number:064d}",
        prompt="p",
        input_tokens=9000,
        output_tokens=900,
        usd=0.01,
        seconds=2.0,
    )
    kernel = Kernel(
        name=name,
        language="cpp",
        source=source,
        base=base or None,
        reference=base or None,
        experiment=experiment if base else None,
        generation=(number - 1) // 3,
        llm_calls=(call,) if base else (),
        authors={"writer": Author(model="scripted")} if base else {},
        report="what was done " * 10,
    )
    report = CompileReport(ok=True, compiler="g++", instructions={"zmm": 40, "fma": 9}, code_bytes=2000)
    if fails:
        return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.INCORRECT, reason="wrong", compile=report))
    us, cases = 100.0 / ratio, [case.name for case in problem.profile("cpu").benchmarks]

    def over(name: str, times: float, low: float) -> Speedup:
        interval = low, times * 1.1
        paired = {case: PairedTime(time_us=us, against_us=us * times, interval=interval) for case in cases}
        return Speedup(against=name, ratio=times, interval=interval, cases=paired)

    timings = tuple(
        Timing(case=case, time_us=us, interval_us=(us, us), floor_us=1.0, samples_us=(us,) * 24) for case in cases
    )
    speedups = [over(REFERENCE, ratio, 0.9), *([over(base, 1.0, 0.9)] if base not in ("", incumbent) else [])]
    speedups += [over(incumbent, 1.01, 1.001) if wins else over(incumbent, 0.98, 0.9)] if incumbent else []
    evaluation = Evaluation(
        verdict=Verdict.OK,
        compile=report,
        timings=timings,
        speedups=tuple(speedups),
        baseline=incumbent or REFERENCE,
    )
    return Trial(kernel=kernel, evaluation=evaluation)


def _fill(
    store: MlflowStore,
    run: CampaignRun,
    problem: Problem,
    source: Iterator[Trial],
    kernels: int,
    replies: ResponseCache,
) -> None:
    """Write kernels as a campaign would have: snapshots of all but the last few hundred, runs, replies."""
    population, names = Population(), list[str]()
    loose = snapshots.KERNELS - 1
    for number in range(1, kernels + 1):
        trial = next(source)
        if number > kernels - loose:
            store.log(run, trial, population, problem)
            population.add(trial)
            continue
        population.add(trial)
        names.append(trial.kernel.name)
        if len(names) == snapshots.KERNELS or number == kernels - loose:
            store.log_snapshot(run, population, names)
            _runs(store, run, [population.get(name) for name in names])
            names = []
    for number in range(kernels):
        message = Message(role="user", content=f"{number}" * 300)
        request = LlmRequest(model="scripted", parameters={}, messages=(message,))
        reply = {"role": "writer", "call_key": f"write/k{number:05d}-{number}/0", "campaign": run.campaign}
        replies.add(Reply(request=request, text="x" * 2000, usd=0.01, input_tokens=9000, **reply))  # type: ignore[arg-type]
    replies.mark_traced(range(1, kernels + 1))


def _runs(store: MlflowStore, run: CampaignRun, trials: list[Trial]) -> None:
    """Write runs and their tags into MLflow's database at once; through its client it takes 20 ms each."""
    from mlflow.store.tracking.dbmodels.models import SqlRun, SqlTag

    ids, now = [uuid.uuid4().hex for _ in trials], int(time.time() * 1000) - 3_600_000
    common = {"experiment_id": int(store.experiment_id), "status": "FINISHED", "lifecycle_stage": "active"}
    common |= {"start_time": now, "end_time": now, "source_type": "LOCAL"}
    common |= {"artifact_uri": "", "name": "", "user_id": ""}
    backend: Any = store.client._tracking_client.store
    with backend.ManagedSessionMaker() as session:
        session.bulk_insert_mappings(SqlRun, [{"run_uuid": i, **common} for i in ids])
        tags = [run_content.tags(run.run_id, run.campaign, trial, "") for trial in trials]
        rows = [{"run_uuid": i, "key": k, "value": v} for i, t in zip(ids, tags, strict=True) for k, v in t.items()]
        session.bulk_insert_mappings(SqlTag, rows)


def _selections(problem: Problem, population: Population) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each way to select a base; for the model's selection, all that happens before the call."""
    from kernel_scientist.scientist.context import facts, problem_facts
    from kernel_scientist.scientist.prompts import render

    profile = problem.profile("cpu")
    assignment = Assignment(problem, profile, "cpp", "cpu", CpuInfo.of_this_machine())
    agent = RuleBasedAgent(assignment)

    def prompt() -> object:
        common = {"problem": problem_facts.problem(problem, profile), "language": "cpp", "target": "cpu"}
        others = {"in_flight": (), "designing": (), "findings": (), "by_model": False}
        return render("selector", **facts.selection(assignment, population), **others, **common)

    yield "model's prompt", prompt
    yield "playbook", lambda: agent.select(population, Lessons(), Step.of(0, "select", 1))
    for name in ("tree", "islands", "fsr", "best_of_n", "greedy"):
        yield name, lambda name=name: strategies.select(name, agent, population, Lessons(), Step.of(0, "select", 1))


def _milliseconds(work: Callable[[], object]) -> float:
    return round(1000 * statistics.median(seconds(work) for _ in range(5)), 2)


def _memory_mb() -> float:
    return psutil.Process().memory_info().rss / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", type=int, default=1000)
    with tempfile.TemporaryDirectory() as where:
        figures, record = one_size(parser.parse_args().kernels, Path(where))
        print(json.dumps(figures), flush=True)
        for line in sys.stdin:
            print(json.dumps([record() for _ in range(int(line))]), flush=True)
