"""The evaluator: what kernels do wrong becomes a verdict, within its limit, and leaves nothing running."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.compilers.request import MOST_BUILDS
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.population.entry import over_base
from kernel_scientist.records import environment
from kernel_scientist.records.errors import BesideError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.workers.worker_pool import WorkerPool
from tests.conftest import ROOT, cpu_seconds, dedent

pytestmark = pytest.mark.alone
EvaluatorFor = Callable[[str], Evaluator]
LOAD = "from kernel_scientist import load\nimport os\n"
RIGHT = "d[1].copy_(d[0])\n    return d[1]\n"


def in_call(body: str, head: str = LOAD) -> str:
    return f"{head}def custom_kernel(d):\n    {body}\n    {RIGHT}"


def cpp(body: str, includes: str = "") -> str:
    lines = "".join(f"#include <{i}>\\n" for i in includes.split())
    return f"{LOAD}library = load('''{lines}extern \"C\" void f() {{ {body} }}''')\n" + in_call("library.f()", "")


MISBEHAVIOUR = {
    "hangs in python": (in_call("while True: pass"), Verdict.TIMEOUT, "its call used more than 3 s of CPU time"),
    "hangs in C++": (cpp("volatile int x = 0; for (;;) x = x + 1;"), Verdict.TIMEOUT, "its call used more than 3 s"),
    "hangs while imported": ("while True: pass\n" + in_call("pass"), Verdict.TIMEOUT, "its import used more than 5 s"),
    "waits for ever": (in_call("import threading; threading.Event().wait()"), Verdict.TIMEOUT, "it waited, using"),
    "stops itself": (in_call("os.kill(os.getpid(), 19)"), Verdict.CRASHED, "PermissionError"),
    "segfaults": (cpp("*(volatile int*)8 = 1;"), Verdict.CRASHED, "SIGSEGV"),
    "aborts": (cpp("abort();", "cstdlib"), Verdict.CRASHED, "SIGABRT"),
    "exits with code 0": (in_call("os._exit(0)"), Verdict.CRASHED, "exit status 0"),
    "raises": (in_call("raise ValueError('no good')"), Verdict.CRASHED, "ValueError in its call: no good"),
    "writes zeros": ("def custom_kernel(d):\n    return d[1].zero_()\n", Verdict.INCORRECT, "elements differ"),
    "writes nothing": ("def custom_kernel(d):\n    return d[1]\n", Verdict.INCORRECT, "elements differ"),
    "returns nothing": ("def custom_kernel(d):\n    pass\n", Verdict.INCORRECT, "it returned None, expected a"),
    "returns fp32": ("def custom_kernel(d):\n    return d[0].float()\n", Verdict.INCORRECT, "float32, expected"),
    "does not compile": (cpp("this is not C++"), Verdict.COMPILE_ERROR, "error"),
    "is not python": ("def custom_kernel(d:\n", Verdict.COMPILE_ERROR, "SyntaxError"),
    "hides a compile error": (
        f"{LOAD}try:\n    load('nonsense')\nexcept Exception:\n    pass\n" + in_call("pass", ""),
        Verdict.COMPILE_ERROR,
        "compiler error: kernel.cpp:1:1",
    ),
    "builds in its call": (
        f"{LOAD}def custom_kernel(data):\n    load('extern \"C\" void f() {{}}')\n    return data[1]\n",
        Verdict.COMPILE_ERROR,
        "load: C++ is built while the kernel's file is imported, not in a call",
    ),
    "asks for many builds": (
        f"{LOAD}for _ in range(17):\n    load('extern \"C\" void f() {{}}')\n" + in_call("pass", ""),
        Verdict.COMPILE_ERROR,
        "asks for more than 16 builds",
    ),
    "asks for a forbidden flag": (
        f"{LOAD}load('', flags=['-wrapper', 'sh'])\n" + in_call("pass", ""),
        Verdict.COMPILE_ERROR,
        "not allowed",
    ),
    "prints a gigabyte": (
        in_call("for _ in range(1024): print('x' * (1 << 20))"),
        Verdict.REJECTED,
        "printed more than 4 MiB",
    ),
    "prints a gigabyte in C++": (
        cpp("static char x[1 << 20]; for (int i = 0; i < 1024; ++i) fwrite(x, 1, sizeof x, stdout);", "cstdio"),
        Verdict.REJECTED,
        "printed more than 4 MiB",
    ),
    "forks": (in_call("os.fork()"), Verdict.REJECTED, "forbidden system call"),
    "forks in C++": (cpp("if (!fork()) for (;;);", "unistd.h"), Verdict.REJECTED, "forbidden system call"),
    "is a fork bomb": ("import os\nwhile True: os.fork()\n" + in_call("pass"), Verdict.REJECTED, "forbidden"),
    "runs a program": (in_call("os.system('true')"), Verdict.REJECTED, "forbidden system call"),
    "opens a socket": (
        in_call("import socket; socket.socket()"),
        Verdict.CRASHED,
        "PermissionError in its call: [Errno 13] Permission denied; the sandbox refuses",
    ),
    "eats memory": (in_call("x = [bytearray(1 << 26) for _ in range(1000)]"), Verdict.CRASHED, "MemoryError"),
    "eats memory in C++": (
        cpp("for (;;) memset(malloc(1 << 26), 1, 1 << 26);", "cstdlib cstring"),
        Verdict.CRASHED,
        "SIGSEGV",
    ),
    "cuts the shared memory short": (in_call("os.ftruncate(4, 0)"), Verdict.CRASHED, "PermissionError"),
    "closes the channel": (in_call("os.close(3)"), Verdict.CRASHED, "exit status"),
    "returns far too much": (
        "import torch\ndef custom_kernel(d):\n    return torch.zeros(1 << 25)\n",
        Verdict.INCORRECT,
        "returned 134217728 bytes; 67108864 at most are read",
    ),
    "talks on the channel": (in_call("os.write(3, b'x' * 100)"), Verdict.REJECTED, "broke the protocol"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_misbehaviour_is_a_verdict(name: str, evaluator_for: EvaluatorFor) -> None:
    source, verdict, words = MISBEHAVIOUR[name]
    before_s = cpu_seconds()
    evaluation = evaluate(evaluator_for("identity"), source)
    assert evaluation.verdict is verdict, evaluation
    assert words in evaluation.reason
    assert cpu_seconds() - before_s < 20
    assert evaluation.timings == ()


def test_a_traceback_begins_with_the_kernels_own_lines(evaluator_for: EvaluatorFor) -> None:
    source = "def inner(x):\n    return x.nothing()\n\n\ndef custom_kernel(d):\n    return inner(d[0])\n"
    told = evaluate(evaluator_for("identity"), source).evidence[-1]
    assert told.splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "kernel.py", line 6, in custom_kernel',
    ]
    assert "line 2, in inner" in told and "/" not in told and "AttributeError" in told
    unread = evaluate(evaluator_for("identity"), "def custom_kernel(d:\n").evidence[-1]
    assert unread.splitlines()[0] == '  File "kernel.py", line 1' and "never closed" in unread


def test_after_all_that_an_honest_kernel_passes_and_is_timed(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    evaluator.harness = evaluator.harness.model_copy(update={"drop_below": 0.0})  # a busy machine may make it look slow
    kernel = Kernel(name="honest", language="cpp", source=(ROOT / "problems/identity/seeds/cpp_blocked.py").read_text())
    evaluation = evaluator.check(kernel, evaluator.compile(kernel))
    cached = evaluation.model_copy(update={"environment": {"harness": "of another day"}, "sandbox": ("none",)})
    evaluation = evaluator.time(kernel, cached, [evaluator.reference()])
    assert evaluation.verdict is Verdict.OK, evaluation.reason
    assert (
        evaluation.environment["evaluator"] == environment.evaluator_digest()[:12] and "load" in evaluation.environment
    )
    assert [t.case for t in evaluation.timings] == [c.name for c in evaluator.profile.benchmarks]
    assert all(len(t.samples_us) == 8 and min(t.samples_us) > 0 for t in evaluation.timings)
    speedup = evaluation.speedup_over(REFERENCE)
    assert speedup is not None and speedup.interval[0] <= speedup.ratio <= speedup.interval[1]
    assert {"rlimits", "no-new-privs", "seccomp"} <= set(evaluation.sandbox)


def test_a_file_may_ask_for_as_many_builds_as_are_made(evaluator_for: EvaluatorFor) -> None:
    unit = 'extern "C" void copy(const short* x, short* out, long n) { for (long i = 0; i < n; ++i) out[i] = x[i]; }'
    source = f"{LOAD}made = [load({unit!r}) for _ in range({MOST_BUILDS})]\n"
    source += "def custom_kernel(d):\n    made[-1].copy(d[0], d[1], d[0].numel())\n    return d[1]\n"
    assert evaluate(evaluator_for("identity"), source).verdict is Verdict.OK


def test_threads_are_allowed(evaluator_for: EvaluatorFor) -> None:
    source = "import threading\n" + in_call(
        "t = threading.Thread(target=d[1].copy_, args=(d[0],)); t.start(); t.join()", ""
    )
    assert evaluate(evaluator_for("identity"), source).verdict is Verdict.OK


def test_threads_are_refused_where_the_problem_does_not_allow_them(evaluator_for: EvaluatorFor) -> None:
    source = "import threading\n" + in_call(
        "t = threading.Thread(target=d[1].copy_, args=(d[0],)); t.start(); t.join()", ""
    )
    with WorkerPool(Harness(noise_runs=0), kernel_threads=False) as pool:
        evaluator = Evaluator(evaluator_for("identity").problem, "cpu", pool.harness, pool)
        evaluation = evaluate(evaluator, source)
        assert evaluation.verdict is Verdict.CRASHED and "can't start new thread" in evaluation.reason
        assert evaluate(evaluator, in_call("pass")).verdict is Verdict.OK


LATE = """
import threading
go, x, out = threading.Semaphore(0), [], []
def late():
    while True:
        go.acquire()
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass
        out[-1].copy_(x[-1])
threading.Thread(target=late, daemon=True).start()
def custom_kernel(d):
    x.append(d[0]); out.append(d[1]); go.release()
    return d[1]
"""


def test_an_output_that_is_written_after_the_call_is_wrong(evaluator_for: EvaluatorFor) -> None:
    assert evaluate(evaluator_for("identity"), "import time\n" + LATE).verdict is Verdict.INCORRECT


def test_without_ptrace_the_record_says_that_threads_ran_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with WorkerPool(Harness(noise_runs=0)) as pool:
        monkeypatch.setattr(pool.native, "_stop", lambda *_: -1)
        evaluation = evaluate(
            Evaluator(problems.load(ROOT / "problems/identity"), "cpu", pool.harness, pool), in_call("")
        )
    assert evaluation.verdict is Verdict.OK, evaluation.reason
    assert evaluation.environment["outputs"] == "read while its threads run"


def test_a_submission_may_import_what_gpu_mode_puts_beside_it(evaluator_for: EvaluatorFor) -> None:
    head = "from task import input_t, output_t\n\n\ndef custom_kernel(data: input_t) -> output_t:\n"
    assert evaluate(evaluator_for("identity"), f"{head}    return data[1].copy_(data[0])\n").verdict is Verdict.OK


def test_the_objects_that_cheats_tamper_with_are_within_their_reach(evaluator_for: EvaluatorFor) -> None:
    """A cheat that finds nothing to tamper with does honest work: tests/cheats would pass and show nothing."""
    look = "import gc\nassert {'NativeHarness', 'Worker', 'Inbox'} <= {type(o).__name__ for o in gc.get_objects()}\n"
    evaluation = evaluate(allowing(evaluator_for("identity")), look + in_call("pass"))
    assert evaluation.verdict is Verdict.OK, evaluation.reason
    assert evaluate(evaluator_for("identity"), look + in_call("pass")).reason.startswith(
        "tampering: it searches the heap"
    )


def test_a_claim_needs_two_stages(pool: WorkerPool) -> None:
    harness = pool.harness.model_copy(update={"stages": 3})
    evaluator = Evaluator(problems.load(ROOT / "problems/identity"), "cpu", harness, pool)
    source = "import time\n\n\ndef custom_kernel(d):\n    time.sleep(SECONDS)\n    return d[1].copy_(d[0])\n"
    quick, slow = (source.replace("SECONDS", s) for s in ("0", "0.002"))
    cases = evaluator.profile.benchmarks[:1]
    stages: dict[bool, int] = {}
    for ours, theirs in ((quick, slow), (slow, quick)):
        kernel, other = Kernel(name="k", language="cpp", source=ours), TimedSource(name="other", source=theirs)
        speedup = evaluator.time(kernel, evaluator.compile(kernel), [other], cases=cases).speedups[0]
        stages[speedup.faster] = speedup.stages
    assert stages == {True: 2, False: 1}


def test_a_base_is_timed_in_the_same_run_and_one_that_fails_is_left_out(pool: WorkerPool) -> None:
    evaluator = Evaluator(problems.load(ROOT / "problems/identity"), "cpu", pool.harness, pool)
    source = "def custom_kernel(d):\n    return d[1].copy_(d[0])\n"
    kernel, cases = Kernel(name="k3", language="cpp", source=source, base="k1"), evaluator.profile.benchmarks[:1]
    incumbent, ready = TimedSource(name="k2", source=source), evaluator.compile(kernel)
    for base_source, has_pair in ((source, True), (source.replace("d[0])", "d[0] * 2)"), False)):
        base = TimedSource(name="k1", source=base_source, optional=True)
        timed = evaluator.time(kernel, ready, [evaluator.reference(), base, incumbent], cases=cases)
        assert timed.verdict is Verdict.OK, timed.reason
        pair = over_base(Trial(kernel=kernel, evaluation=timed))
        assert (pair is not None) == has_pair and ("without k1" in timed.environment) != has_pair
        assert timed.baseline == "k2" and timed.test is not None and timed.test.against == "k2"
        for speedup in timed.speedups:
            for times in speedup.cases.values():
                assert times.interval is None or times.interval[0] <= times.ratio <= times.interval[1]
    with pytest.raises(BesideError, match="k1 failed while it was timed"):
        evaluator.time(kernel, ready, [base.model_copy(update={"optional": False}), incumbent], cases=cases)


def test_a_kernel_right_only_on_the_checked_sizes_is_caught_when_timed(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    kernel = Kernel(
        name="k",
        language="cpp",
        source="def custom_kernel(d):\n    return d[1].copy_(d[0]) if d[0].numel() < 300_000 else d[1]\n",
    )
    checked = evaluator.check(kernel, evaluator.compile(kernel))
    assert checked.verdict is Verdict.OK
    timed = evaluator.time(kernel, checked, [evaluator.reference()])
    assert timed.verdict is Verdict.INCORRECT and timed.timings == () and timed.speedups == ()


SPINNING = """
#include <sched.h>
#include <thread>
#include <vector>

extern "C" void f() {
    int inherited = -1;
    std::thread([&] { inherited = sched_getscheduler(0); }).join();
    if (sched_getscheduler(0) != SCHED_RR || inherited != SCHED_RR) return;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
        threads.emplace_back([] { for (volatile int x = 0;; x = x + 1) {} });
    threads[0].join();
}
"""
"""It spins on every core, and more, once it and the threads that it starts have real-time priority."""


def test_a_kernel_with_real_time_priority_on_every_core_is_ended(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    source = f"{LOAD}library = load({SPINNING!r})\n" + in_call("library.f()", "")
    kernel = Kernel(name="k", language="cpp", source=source)
    checked = evaluator.check(kernel, evaluator.compile(kernel))
    assert checked.verdict is Verdict.OK
    timed = evaluator.time(kernel, checked, [evaluator.reference()])
    if evaluator.driver.pool.precedence:
        assert timed.verdict is Verdict.TIMEOUT and "used more than 3 s of CPU time" in timed.reason
    else:
        assert timed.verdict is Verdict.OK  # an ordinary user may not raise a priority
    assert timed.environment["worker_priority"] == ("real_time" if evaluator.driver.pool.precedence else "normal")


def test_a_kernel_that_remembers_its_first_answer_is_caught(evaluator_for: EvaluatorFor) -> None:
    source = dedent(
        """
        answer = {}
        def custom_kernel(d):
            n = d[0].numel()
            if n not in answer:
                answer[n] = d[0].clone()
            return d[1].copy_(answer[n])
        """
    )
    assert evaluate(evaluator_for("identity"), source).verdict is Verdict.INCORRECT


def test_a_patched_clock_of_pythons_changes_nothing(evaluator_for: EvaluatorFor) -> None:
    source = dedent(
        """
        import time
        real, state = time.perf_counter_ns, [0]
        def slow_clock():
            state[0] += 1000
            return state[0]
        time.perf_counter_ns = slow_clock
        def custom_kernel(d):
            time.sleep(0.02)
            return d[1].copy_(d[0])
        """
    )
    evaluator = allowing(evaluator_for("identity"))
    kernel = Kernel(name="k", language="cpp", source=source)
    timed = evaluator.time(kernel, evaluator.check(kernel, evaluator.compile(kernel)), [evaluator.reference()])
    assert timed.verdict is Verdict.OK, timed
    assert min(t.time_us for t in timed.timings) >= 20_000


def test_workers_see_no_secret_of_ours(evaluator_for: EvaluatorFor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with WorkerPool(Harness()) as shop:
        source = in_call("assert 'sk-secret' not in open('/proc/self/environ').read() + str(dict(os.environ))")
        assert (
            evaluate(Evaluator(evaluator_for("identity").problem, "cpu", shop.harness, shop), source).verdict
            is Verdict.OK
        )


def test_workers_die_with_a_killed_evaluator() -> None:
    program = dedent(
        """
        import os, signal
        from kernel_scientist.records import environment; environment.prepare()
        from kernel_scientist import problems
        from kernel_scientist.evaluation.evaluator import Evaluator
        from kernel_scientist.workers.worker_pool import WorkerPool
        from kernel_scientist.records.params import Harness
        from pathlib import Path
        shop = WorkerPool(Harness())
        with shop.worker() as worker:
            print(shop._process.pid, worker.process.number, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    pids = [int(p) for p in done.stdout.split()]
    assert len(pids) == 2, done
    deadline = time.monotonic() + 60
    while any(_alive(p) for p in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(p) for p in pids)


def test_builds_are_cached_by_what_they_depend_on(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    first = Kernel(name="a", language="cpp", source=cpp("volatile int unique = 4711;"))
    one, two = evaluator.compile(first), evaluator.compile(first)
    assert one.compile and two.compile and not one.compile.cached and two.compile.cached
    other = Kernel(name="b", language="cpp", source=first.source.replace("''')", "''', flags=['-O1'])"))
    assert other.source != first.source
    assert (report := evaluator.compile(other).compile) and not report.cached


def allowing(evaluator: Evaluator) -> Evaluator:
    """Return the same evaluator where tampering is no verdict."""
    return evaluator.with_harness(evaluator.harness.model_copy(update={"tampering": "allow"}))


def evaluate(evaluator: Evaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k", language="cpp", source=source)
    return evaluator.check(kernel, evaluator.compile(kernel))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
