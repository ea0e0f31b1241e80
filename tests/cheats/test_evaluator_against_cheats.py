"""The evaluator against the corpus: every cheat ends as it should, no honest kernel is accused.

Afterwards nothing is left: no process, no temporary file, no shared memory, no locked device.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import device_lock
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.cheats import corpus
from tests.conftest import ROOT

pytestmark = pytest.mark.alone
FIXTURES = corpus.load()
SOURCES = {fixture.name: fixture.source for fixture in FIXTURES}
GAIN = 1.15
"""How much faster than honest work a neutralised cheat may look by chance, in one stage on one case."""


@pytest.fixture(scope="module")
def shop() -> Iterator[WorkerPool]:
    before = traces()
    limits = Harness(
        call_timeout_s=3, import_timeout_s=6, stages=1, pairs=0, noise_runs=0, output_mib=4, memory_mib=1024
    )
    with WorkerPool(limits) as pool:
        yield pool
    deadline = time.monotonic() + 60
    while (left := traces() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, f"left behind by {len(FIXTURES)} hostile and honest kernels: {sorted(left)}"
    with device_lock.device("cpu", 60):  # other programs may time kernels on this machine
        pass


def traces() -> set[str]:
    """What kernels could leave on this machine."""
    files = [p for folder in ("/tmp", "/var/tmp", "/dev/shm") for p in Path(folder).glob("*")]
    ours = {str(p) for p in files if p.name.startswith(("kernel-scientist-", "kernel-cheat", "torch", "sem.", "psm"))}
    left = {p for p in ours if not p.endswith(".lock") and not held(p)}
    return left | {f"process {pid}" for pid in descendants(os.getpid())}


def held(path: str) -> bool:
    """Whether it is the folder of a process that lives: another test's, or one that is listed as a process anyway."""
    owner = re.search(r"/kernel-scientist-(\d+)-", path)
    return owner is not None and Path(f"/proc/{owner[1]}").exists()


def descendants(pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = stat.read_text().split(" (", 1)
        except OSError:
            continue
        children.setdefault(int(rest.rsplit(") ", 1)[1].split()[1]), []).append(int(number))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        fresh = set(children.get(waiting.pop(), [])) - found
        found |= fresh
        waiting += fresh
    return found


def evaluated(evaluator: Evaluator, source: str, others: list[TimedSource], cases: Sequence[int]) -> Evaluation:
    """Evaluate a kernel, timed on few cases."""
    kernel = Kernel(name="k", language="cpp", source=source)
    checked = evaluator.check(kernel, evaluator.compile(kernel))
    timed = [evaluator.profile.benchmarks[case] for case in cases]
    return evaluator.time(kernel, checked, [evaluator.reference(), *others], cases=timed)


FIRST = {fixture.family: fixture.name for fixture in reversed(FIXTURES) if fixture.cheat}
"""One cheat of each family; the others are for `make adversarial`."""


def param(fixture: corpus.Fixture) -> object:
    every_day = fixture.cheat is None or FIRST[fixture.family] == fixture.name
    return pytest.param(fixture, id=fixture.name, marks=() if every_day else pytest.mark.adversarial)


@pytest.mark.parametrize("fixture", [param(fixture) for fixture in FIXTURES])
def test_a_kernel_ends_as_it_should(fixture: corpus.Fixture, shop: WorkerPool) -> None:
    evaluator = Evaluator(problems.load(ROOT / "problems" / fixture.problem), "cpu", shop.harness, shop)
    honest = corpus.HONEST_WORK[fixture.problem] if not fixture.gains else ()
    others = [TimedSource(name=name, source=SOURCES[name]) for name in honest]
    evaluation = evaluated(evaluator, fixture.source, others, fixture.cases)
    assert evaluation.verdict in fixture.expect, (fixture.cheat, evaluation)
    for _ in range(3):  # a real gain comes again
        if evaluation.verdict is Verdict.OK and others and gained(evaluation):
            evaluation = evaluated(evaluator, fixture.source, others, fixture.cases)
    assert not (evaluation.verdict is Verdict.OK and others and gained(evaluation)), (
        fixture.cheat,
        evaluation.speedups,
    )
    if fixture.label:
        assert any(fixture.label in label for label in evaluation.labels), (fixture.cheat, evaluation.labels)


def gained(evaluation: Evaluation) -> bool:
    """Whether a kernel looks faster than all honest work of its kind."""
    return all(speedup.interval[0] > GAIN for speedup in evaluation.speedups[1:])
