"""A kernel's calls are sampled by the real perf, by source line; where they are not, a sentence says why."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.profile import profiler, sampling
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Harness

EvaluatorFor = Callable[[str], Evaluator]
HOT = '''
from kernel_scientist import load

kernel = load(r"""
#include <cstdint>
#include <cstring>

extern "C" void run(const float *x, float *out, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < 20 * n; ++i)
        sum += 1.0 / (x[i % n] + 2.0 + sum * 1e-9);  // hot
    std::memcpy(out, x, n * sizeof(float));
    if (sum == 1.0) out[0] += 1;
}
""")

def custom_kernel(data):
    x, out = data
    kernel.run(x, out, x.nbytes // 4)
    return out
'''
TORCH = "def custom_kernel(data):\n    x, out = data\n    return out.copy_(x.sort()[0].sort(descending=True)[0])\n"
OTHERS = (sampling.SYSTEM, sampling.OTHER)
OK = Evaluation(verdict=Verdict.OK)


def sampled_by(evaluator: Evaluator, source: str) -> Evaluation:
    kernel = Kernel(name="k00001", language="cpp", source=source)
    return sampling.sample(evaluator, kernel, OK, evaluator.profile.benchmarks[0])


def usable(evaluator: Evaluator) -> Profiler:
    found = sampling.find(evaluator.pool.enclosure == "bubblewrap")
    if isinstance(found, str):
        pytest.skip(found)
    return found


def test_the_hot_line_has_the_largest_share(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    usable(evaluator)
    found = sampled_by(evaluator, HOT)
    (one,) = found.sampled or pytest.fail(str(found.environment))
    assert found.verdict is Verdict.OK and found.timings == () and one.case == evaluator.profile.benchmarks[0].name
    most = one.lines[0]
    assert "// hot" in most.text and most.text == HOT.split("\n")[most.line - 1].strip()
    assert most.share == max([*(line.share for line in one.lines), *(place.share for place in one.elsewhere)])
    assert one.samples >= 200 and one.own > 0.5 and sum(one.threads) == pytest.approx(1)
    listed = sum(line.share for line in one.lines) + sum(place.share for place in one.elsewhere)
    assert listed <= 1 + 1e-9 and {place.where for place in one.elsewhere} <= {*sampling.PLACES.values(), *OTHERS}


def test_what_torch_does_is_outside_of_the_kernel(evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity")
    usable(evaluator)
    found = sampled_by(evaluator, TORCH)
    (one,) = found.sampled or pytest.fail(str(found.environment))
    assert one.own == 0 and one.lines == () and "torch" in {place.where for place in one.elsewhere}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (TORCH.replace("x, out = data", "raise ValueError('no')"), "perf ended with status 1: ValueError: no"),
        (TORCH.replace("x, out = data", "import time; time.sleep(99)"), "longer than harness.counters_timeout_s"),
        ("from kernel_scientist import load\nload('int')\n" + TORCH, "the kernel's import failed this time"),
    ],
    ids=["raises", "hangs", "does not compile"],
)
def test_a_kernel_that_fails_under_perf_is_a_sentence(source: str, words: str, evaluator_for: EvaluatorFor) -> None:
    evaluator = evaluator_for("identity").with_harness(Harness(counters_timeout_s=20 if "sleep" in source else 120))
    usable(evaluator)
    found = sampled_by(evaluator, source)
    assert found.verdict is Verdict.OK and found.sampled == ()
    assert found.environment["counters"].startswith("none: ") and words in found.environment["counters"]


def test_a_system_that_forbids_it_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    absent = sampling.find(False)
    assert isinstance(absent, str) and absent.startswith("no perf: ") and "linux-perf" in absent
    monkeypatch.undo()
    level = tmp_path / "level"
    level.write_text("3\n")
    monkeypatch.setattr(sampling, "PARANOID", level)
    program = tmp_path / "perf"
    program.write_text('#!/bin/sh\necho "Error:"\necho "Access to performance monitoring is limited."\nexit 255\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    refused = sampling.find(False)
    assert isinstance(refused, str) and "\n" not in refused
    assert "perf may not sample here: Access to performance monitoring" in refused and "paranoid is 3" in refused


COUNTING = """
import os, select, sys
arguments = sys.argv[1:]
table, program = arguments[arguments.index("-o") + 1], arguments[arguments.index("--") + 1:]
with open(table, "w") as file:
    file.write({counted!r})
if "--control" in arguments:
    pipes = arguments[arguments.index("--control") + 1].removeprefix("fifo:").split(",")
    control, acknowledged = (os.open(pipe, os.O_RDWR) for pipe in pipes)
    child = os.spawnvp(os.P_NOWAIT, program[0], program)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if select.select([control], [], [], 0.1)[0]:
            os.read(control, 64)
            os.write(acknowledged, b"ack\\n\\0")
"""
"""`perf stat` of a machine with hardware counters."""


def test_hardware_counters_are_read_where_there_are_some(
    evaluator_for: EvaluatorFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = evaluator_for("identity")
    real = usable(evaluator).program
    counted = "500,,cycles:u,1,100.00,,\n1000,,instructions:u,1,100.00,,\n<not counted>,,cache-misses:u,0,0,,\n"
    counting, program = tmp_path / "counting.py", tmp_path / "perf"
    counting.write_text(COUNTING.format(counted=counted))
    program.write_text(f'#!/bin/sh\n[ "$1" = stat ] || exec {real} "$@"\nexec {sys.executable} {counting} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(profiler, "find", lambda vendor: Profiler("perf", str(program), (str(tmp_path),)))
    found = sampled_by(evaluator, HOT)
    (one,) = found.sampled or pytest.fail(str(found.environment))
    assert one.figures == {"instructions_per_cycle": 2.0} and sampling.NO_FIGURES not in one.remarks
    assert "// hot" in one.lines[0].text
