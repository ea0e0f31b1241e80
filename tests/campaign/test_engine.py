"""The engine: real campaigns on a scripted endpoint; the evaluator does nothing."""

import dataclasses
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect import artifacts, flow
from prefect.settings import PREFECT_API_URL, temporary_settings
from typing_extensions import override

from benchmarks import endpoint
from benchmarks.engine import fixed, settings
from flows.progress import Progress
from kernel_scientist.campaign.beginning import Beginning, Start
from kernel_scientist.campaign.build_timing_lock import BuildTimingLock
from kernel_scientist.campaign.campaign import Campaign
from kernel_scientist.campaign.engine import Engine, Pipeline
from kernel_scientist.campaign.evaluation_context import evaluation_context
from kernel_scientist.campaign.ledger import Job, Ledger
from kernel_scientist.campaign.plan import Plan
from kernel_scientist.campaign.steps import Steps
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import patience
from kernel_scientist.records.errors import InfrastructureError, StoppedError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Experiment
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox import device_queue
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.proposals import Design, Draft, Selection, own_ideas
from tests.trials import trial


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with endpoint.serving(0.02) as address:
        yield address


class Watcher:
    """Notes what is in progress."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.most = 0
        self.recorded: list[Trial] = []

    def step(self, kernel: str, activity: str | None) -> None:
        if activity is None:
            self.active.discard(kernel)
        else:
            self.active.add(kernel)
        self.most = max(self.most, len(self.active))

    def done(self, trial: Trial) -> None:
        self.recorded.append(trial)


class Run(Steps):
    """A campaign whose timings are counted."""

    def __init__(self, folder: Path, address: str, calls: int, **search: Any) -> None:
        designer = search.pop("designer", "")
        values = settings(address, calls, search.pop("strategy", "scientist"), designer)
        values["search"] |= search
        values["llm"] |= {"replies": str(folder / "replies"), "corrections": 0}
        values["tracking"] = {"uri": f"sqlite:///{folder}/mlruns/mlflow.db"}
        self.params, self.watcher, self.timing = Params.model_validate(values), Watcher(), 0
        self.broken: set[int] = set()
        """Numbers of the timings that fail."""
        self._lock = threading.Lock()

    def __call__(self, resume: bool = False, stop_after: int = 10**6) -> Campaign:
        with evaluation_context(self.params) as context:
            target = fixed(context.target, 0.0)

            def check_stop() -> None:
                if len(self.watcher.recorded) >= stop_after:
                    raise StoppedError("enough")

            campaign = Campaign(dataclasses.replace(context, target=target, steps=self), resume)
            Engine(campaign, self.watcher.step, self.watcher.done, check_stop).run()
            campaign.finish()
            return campaign

    def time(self, *given: Any, **_named: Any) -> Any:
        measure: Callable[[], Evaluation] = given[2]
        assert self._lock.acquire(blocking=False), "two timings at once"
        self.timing += 1
        try:
            if self.timing in self.broken:
                raise InfrastructureError("the device is gone")
            return measure()
        finally:
            self._lock.release()


def names(campaign: Campaign) -> list[str]:
    return [entry.name for entry in campaign.population.entries()]


@pytest.mark.slow
def test_one_call_in_flight_means_one_kernel_at_a_time(tmp_path: Path, address: str) -> None:
    run = Run(tmp_path, address, 1, generations=2)
    campaign = run()
    assert run.watcher.most == 1 and names(campaign) == [f"k{n:05d}" for n in range(1, 9)]
    assert [t.kernel.name for t in run.watcher.recorded] == names(campaign)
    generations = [campaign.population.entry(name).generation for name in names(campaign)]
    assert generations == [0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("designer", ["", "writer"])
def test_eight_calls_in_flight_make_each_kernel_once(tmp_path: Path, address: str, designer: str) -> None:
    run = Run(tmp_path, address, 8, generations=10, designer=designer, strategy="scientist" if not designer else "tree")
    campaign = run()
    assert names(campaign) == [f"k{n:05d}" for n in range(1, 33)]
    assert 3 < run.watcher.most < 16 and not run.watcher.active
    titles = [t.kernel.experiment.title for t in campaign.population if t.kernel.experiment]
    assert len(set(titles)) == 30
    paid = {row.role: row.calls for row in campaign.replies.spending(campaign.name)}
    assert paid["writer"] == 30 and paid.get("designer", 0) == (0 if designer else 10)
    assert paid.get("selector", 0) <= 10  # the same table gives the same selection, which is paid for once
    recorded = campaign.store.population(campaign.run)
    assert tuple(recorded) == tuple(campaign.population)
    history = campaign.store.client.get_metric_history(campaign.run.run_id, "kernels")
    assert sorted(m.step for m in history) == list(range(1, 33))


@pytest.mark.slow
def test_no_two_designers_or_selectors_are_asked_the_same(tmp_path: Path, address: str) -> None:
    campaign = Run(tmp_path, address, 8, generations=8)()
    replies = [r for r in campaign.replies.paid_by(campaign.name) if r.role in ("selector", "designer")]
    prompts = [r.request.messages[1].content for r in replies]
    assert len(prompts) > 8 and len(set(prompts)) == len(prompts)


@pytest.mark.slow
def test_what_a_writer_declines_is_recorded_and_neither_built_nor_repaired(tmp_path: Path, address: str) -> None:
    class Declines(Run):
        def write(self, campaign: Campaign, job: Job) -> Draft:
            return Draft(source="", report="", declined="the base was overtaken")

    campaign = Declines(tmp_path, address, 2, generations=2)()
    for population in (campaign.population, campaign.store.population(campaign.run)):
        assert {verdict: n for verdict, n in population.verdicts().items() if n} == {"ok": 2, "declined": 6}
    declined = next(t for t in campaign.population if t.kernel.experiment)
    assert declined.evaluation.reason == "the base was overtaken" and not declined.kernel.attempts


def test_an_experiment_that_was_overtaken_is_dropped_before_a_writer_is_paid() -> None:
    population = Population([trial("k00001", 1.0)])
    ledger = Ledger(population)
    params = Params()
    plan = Plan(params, Beginning((), Start()), population, ledger, LlmBudget(params.budget))
    selection = Selection(base="k00001", reference="k00001", rationale="")
    plans = tuple(
        Experiment(title=f"up to {most} %", description="", rubric=("do it",), uplift=(0, most), innovation=1)
        for most in (20, 300)
    )
    modest, bold = plan.jobs(selection, Design(avenues=(), plans=plans), 1)
    (own,) = plan.jobs(selection, own_ideas(1, 1), 1)
    assert [plan.up_to_date(job) for job in (modest, bold, own)] == [modest, bold, own]
    population.add(trial("k00009", 2.0, {"k00001": (1.9, 2.1)}, base="k00001"))
    assert modest.title == "up to 20 %" and plan.up_to_date(modest) is None and modest.name not in ledger.jobs
    assert plan.up_to_date(bold) == bold
    moved = plan.up_to_date(own)
    assert moved is not None and moved.base == "k00009" and ledger.jobs[own.name] == moved


@pytest.mark.slow
def test_a_stopped_campaign_is_completed_and_nothing_is_paid_twice(tmp_path: Path, address: str) -> None:
    for designer in ("", "writer"):
        folder = tmp_path / (designer or "model")
        with pytest.raises(StoppedError):
            Run(folder, address, 8, generations=8, designer=designer)(stop_after=7)
        campaign = Run(folder, address, 8, generations=8, designer=designer)(resume=True)
        assert names(campaign) == [f"k{n:05d}" for n in range(1, 27)]
        replies = campaign.replies.paid_by(campaign.name)
        assert len({r.call_key.partition("-")[2] or r.call_key for r in replies}) == len(replies)
        for number in range(1, 9):
            assert len(campaign.population.experiments(number)) == 3


@pytest.mark.slow
def test_hypotheses_go_on_with_what_was_planned_before_a_stop(tmp_path: Path, address: str) -> None:
    given: dict[str, Any] = {"generations": 8, "strategy": "hypotheses"}
    with pytest.raises(StoppedError):
        Run(tmp_path, address, 8, **given)(stop_after=9)
    campaign = Run(tmp_path, address, 8, **given)(resume=True)
    assert names(campaign) == [f"k{n:05d}" for n in range(1, 27)]
    replies = campaign.replies.paid_by(campaign.name)
    assert len({r.call_key.partition("-")[2] or r.call_key for r in replies}) == len(replies)
    plans = {one.name: one for one in campaign.designs.hypotheses()}
    for trial_ in campaign.population:
        if experiment := trial_.kernel.experiment:
            assert experiment.title == plans[experiment.hypothesis].experiment.title
    assert all(len(one.tests) <= 1 for one in plans.values())  # none failed, so none is tried twice
    designed = [r for r in replies if r.role == "designer"]
    assert len(plans) == 5 * len(designed)


def test_a_broken_device_is_a_verdict_and_the_campaign_continues(tmp_path: Path, address: str) -> None:
    run = Run(tmp_path, address, 4, generations=2)
    run.broken = {4, 5}
    verdicts = run().population.verdicts()
    assert verdicts["infrastructure"] == 2 and verdicts["ok"] == 6


def test_the_device_is_idle_while_all_models_think_and_nothing_waits_for_it(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_queue, "FOLDER", tmp_path / "locks")  # other programs may wait for this host's device

    class Watches(Run):
        """Only the first kernel is written at once: the writers of the others wait until the device is seen idle."""

        seen, written, idle = threading.Event(), itertools.count(1), dict[str, bool]()

        def write(self, campaign: Campaign, job: Job) -> Draft:
            if next(self.written) > 1:
                self.seen.wait(60)
            return super().write(campaign, job)

        def time(self, *given: Any, **named: Any) -> Any:
            context, kernel = given[:2]
            idle, end = context.target.evaluator.is_idle(), time.monotonic() + 60
            while kernel.experiment and not self.seen.is_set() and not idle and time.monotonic() < end:
                time.sleep(0.01)
                idle = context.target.evaluator.is_idle()
            self.idle[kernel.name] = idle
            if kernel.experiment:
                self.seen.set()
            return super().time(*given, **named)

    run = Watches(tmp_path, address, 2, generations=1)
    assert len(run().population) == 5
    assert list(run.idle.values()) == [False, False, True, False, False], "seeds; both models think; one thinks; none"


def test_budgets_bound_what_is_begun(tmp_path: Path, address: str) -> None:
    run = Run(tmp_path, address, 8, generations=10)
    run.params = run.params.model_copy(update={"budget": run.params.budget.model_copy(update={"kernels": 9})})
    campaign = run()
    assert len(campaign.population) == 9 and "budget.kernels" in str(campaign.plan.over())


def test_neither_servers_that_do_not_answer_nor_a_full_disk_keep_a_campaign_from_its_end(
    tmp_path: Path, address: str, prefect_api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Run(tmp_path, address, 4, generations=1)()

    def fail(*_: object, **__: object) -> None:
        raise httpx.ConnectError("connection refused")

    page = tmp_path / "reports" / f"{campaign.name}.html"
    page.parent.mkdir()
    page.symlink_to("/dev/full")

    class Room(logging.Handler):
        """Makes room once it is said that room is waited for."""

        @override
        def emit(self, record: logging.LogRecord) -> None:
            page.unlink(missing_ok=True)
            patience.progress.removeHandler(self)

    patience.progress.addHandler(Room())
    campaign.context.stopped.clear()  # a page is published before the context is closed

    @flow(name="shows")
    def shows() -> None:
        progress = Progress(campaign)
        for name in ("update_progress_artifact", "create_table_artifact", "create_link_artifact"):
            monkeypatch.setattr(artifacts, name, fail)
        for recorded in campaign.population:
            progress.done(recorded)
        progress.leaderboard()
        monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
        progress.publish(None)

    with temporary_settings({PREFECT_API_URL: prefect_api}):
        shows()
    assert page.is_file() and not page.is_symlink()
    assert "report.html" in {file.path for file in campaign.store.client.list_artifacts(campaign.run.run_id)}
    monkeypatch.setattr(campaign.store, "finish", fail)
    campaign.finish("KILLED")


def test_a_pipeline_hands_results_and_errors_to_the_thread_that_asks() -> None:
    seen: list[int] = []

    def fail() -> int:
        raise ValueError("wrong")

    with Pipeline({"a": 2, "b": 1}) as pipeline:
        for number in range(5):
            pipeline.submit("a", lambda number=number: number, seen.append)
        while pipeline.busy:
            pipeline.handle(1.0)
        pipeline.submit("b", fail, seen.append)
        with pytest.raises(ValueError, match="wrong"):
            while pipeline.busy:
                pipeline.handle(1.0)
        pipeline.handle(0.01)
    assert sorted(seen) == list(range(5))


@pytest.mark.parametrize("width", [1, 2])
def test_work_within_other_work_goes_behind_what_waits(width: int) -> None:
    done, begun, go_on = list[str](), threading.Semaphore(0), threading.Event()

    def verdict(name: str) -> None:
        begun.release()
        go_on.wait(60)
        done.append(name)

    with Pipeline({"model": 2, "device": width}) as pipeline:
        for number in range(width):
            pipeline.submit("device", partial(verdict, f"running {number}"), lambda _: None)
            assert begun.acquire(timeout=10)
        for number in range(2):
            look = partial(pipeline.await_turn, "device", partial(done.append, f"look {number}"))
            pipeline.submit("model", look, lambda _: None)
        deadline = time.monotonic() + 60
        while pipeline._stages["device"]._work_queue.qsize() < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert pipeline.is_awaited
        for number in range(3):
            pipeline.submit("device", partial(verdict, f"verdict {number}"), lambda _: None)
        go_on.set()
        while pipeline.busy:
            pipeline.handle(1.0)
        assert not pipeline.is_awaited
    assert len(done) == width + 5
    before = done[: min(done.index("look 0"), done.index("look 1"))]
    assert len(before) >= width + 3 - (width - 1), "beside a look only what has begun may go on"


def test_work_that_others_wait_for_ends_with_the_pipeline() -> None:
    held, errors = threading.Event(), list[BaseException]()

    def ask(pipeline: Pipeline) -> None:
        try:
            pipeline.await_turn("device", lambda: None)
        except StoppedError as error:
            errors.append(error)

    def release(pipeline: Pipeline) -> None:
        deadline = time.monotonic() + 60
        while not pipeline._closed and time.monotonic() < deadline:
            time.sleep(0.001)
        held.set()

    with Pipeline({"device": 1}) as pipeline:
        pipeline.submit("device", lambda: held.wait(60), lambda _: None)
        asking = threading.Thread(target=ask, args=(pipeline,))
        asking.start()
        while not pipeline.is_awaited:
            time.sleep(0.001)
        threading.Thread(target=release, args=(pipeline,)).start()
    asking.join(60)
    assert errors and "was stopped" in str(errors[0])


def test_a_cpu_timing_waits_for_builds_and_holds_off_new_ones() -> None:
    quiet, events = BuildTimingLock(), list[str]()
    first_build, second_build = threading.Event(), threading.Event()

    def build(name: str, go_on: threading.Event) -> None:
        with quiet.building():
            events.append(f"{name} begins")
            go_on.wait(10)
            events.append(f"{name} ends")

    def time() -> None:
        with quiet.timing():
            events.append("timing")

    threads = [threading.Thread(target=build, args=("first", first_build)), threading.Thread(target=time)]
    threads.append(threading.Thread(target=build, args=("second", second_build)))
    for number, thread in enumerate(threads):
        thread.start()
        while (number == 0 and not events) or (number == 1 and not quiet._waiting):
            pass
    first_build.set()
    second_build.set()
    for thread in threads:
        thread.join(10)
    assert events == ["first begins", "first ends", "timing", "second begins", "second ends"]
    free = BuildTimingLock(active=False)
    with free.building(), free.timing(), free.timing():
        pass
