"""Controls: two ways of searching in pairs of campaigns at equal budget, and what is made of their results."""

import json
import math
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.campaign import campaign_process, comparing, control_summary, paired, rivals
from kernel_scientist.campaign.comparing import CampaignCurve
from kernel_scientist.campaign.control import SIDES, Control
from kernel_scientist.records.control_result import ControlProblem, ControlResult
from kernel_scientist.records.errors import NO_REPLY, SetupError
from kernel_scientist.records.evaluation import Speedup
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Budget, Params
from kernel_scientist.report import control as shown
from kernel_scientist.report.output import Table
from tests import results
from tests.conftest import ROOT, Cli, lab_environment
from tests.scientist.model_server import ModelServer, Response, serving
from tests.scientist.scripted_campaign import settings as scripted
from tests.scientist.scripted_model import ScriptedModel, block_after
from tests.trials import speedup

PROBLEMS, TRIES = 6, 4
GREEDY, BEST_OF_N, FSR = (f"search.strategy={name}" for name in ("greedy", "best_of_n", "fsr"))
DONE = "all generations are done"


def attentive(request: dict[str, Any], number: int) -> Response:
    """A model that improves on the value whose outcome its prompt states, and begins anew if there is none."""
    told = re.search(r"value (\d+) was", request["messages"][0]["content"])
    return Response(str(int(told[1]) + 1 if told else 1))


def asked(server: ModelServer, prompt: str) -> int:
    body = {"model": "scripted", "messages": [{"role": "user", "content": prompt}]}
    sent = urllib.request.Request(
        f"{server.address}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(sent, timeout=10) as reply:
        return int(json.load(reply)["choices"][0]["message"]["content"])


class Campaigns:
    """Stands for processes of campaigns and for the timing of their kernels: a value makes a kernel 1.1^value fast."""

    def __init__(self, server: ModelServer) -> None:
        self.server, self.calls, self.speeds = server, list[dict[str, str]](), dict[str, list[float]]()
        self.seeds = dict[str, str]()
        self.stop: Callable[[dict[str, str]], str] = lambda given: DONE

    def called(self, command: Sequence[str], log: Path, api: str | None) -> str:
        """Run a campaign: ask the model a few times, telling it the last outcome if the strategy does."""
        given = dict(part.split("=", 1) for flag, part in pairwise(command) if flag == "--set")
        self.calls.append(given)
        stopped = self.stop(given)
        best, told, name = 1.0, "", given["tracking.suite"] + given["problem"].rpartition("/")[2]
        luck, curve = Random(name.split("-", 2)[2]), [1.0]  # without the random part of the control's name
        for _ in range(TRIES):
            value = asked(self.server, f"# Implement\n{told}")
            speed = 1.1**value * math.exp(luck.gauss(0, 0.05))
            told = f"value {value} was {speed:.3f} times as fast" if given["search.strategy"] != "best_of_n" else ""
            best = max(best, speed)
            curve.append(best)
        self.speeds[name], self.seeds[name] = curve, given["search.seed"]
        found = results.campaign(
            campaign=name, kernels=TRIES + 1, tokens=TRIES * 1200, usd=0.5, stopped=stopped, champion="k00001"
        )
        Path(command[command.index("--metrics") + 1]).write_text(found.model_dump_json())
        return ""

    def read(self, params: Params, name: str) -> CampaignCurve:
        """Return what a campaign recorded."""
        curve = tuple(self.speeds[name])
        kernels = {f"k{n:05d}": Kernel(name=f"k{n:05d}", language="cpp", source=f"{s}") for n, s in enumerate(curve)}
        bounds = tuple((0.9 * speed, 1.1 * speed) for speed in curve)
        seed = {"seed": self.seeds[name], "incumbents": tuple(kernels), "kernels": kernels}
        return CampaignCurve(name=name, curve=curve, bounds=bounds, **seed)

    @staticmethod
    def timed(params: Params, pairs: Sequence[tuple[Kernel, Kernel]]) -> tuple[list[Speedup | None], str]:
        """Time the kernels of each pair in one run."""
        ratios = [float(one.source) / float(other.source) for one, other in pairs]
        return [speedup("second", ratio, 1.0, (0.97 * ratio, 1.03 * ratio)) for ratio in ratios], ""


@pytest.fixture
def campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campaigns]:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    for number in range(PROBLEMS):
        shutil.copytree(ROOT / "problems/identity", tmp_path / f"problems/p{number}")
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    with serving(attentive) as server:
        found = Campaigns(server)
        monkeypatch.setattr(campaign_process, "called", found.called)
        monkeypatch.setattr(comparing, "_read", found.read)
        monkeypatch.setattr(rivals, "timed", found.timed)
        yield found


def control(
    first: Sequence[str], second: Sequence[str], problems: int = PROBLEMS, repeats: int = 3, name: str = "one"
) -> Control:
    places = [f"p{number}" for number in range(problems)]
    return Control.of(name, places, first, second, repeats, ("budget.kernels=5", "budget.tokens=6000"))


def outcome(found: Control) -> ControlResult:
    found.begin()
    return found.result([found.run(one) for one in found.runs()])


def test_a_side_whose_model_is_told_the_outcomes_wins(campaigns: Campaigns) -> None:
    found = outcome(control([GREEDY], [BEST_OF_N]))
    assert "the first is better on problems like these (6 problems" in found.conclusion
    assert found.ratio is not None and found.interval is not None and found.freedom == PROBLEMS - 1
    assert 1.1 < found.interval[0] < found.ratio < found.interval[1] < 1.5
    assert found.over_problems.p == pytest.approx(2 / 2**6, abs=1e-4) and found.over_pairs.count == 18
    assert found.common_kernels == TRIES + 1 and found.common_tokens == 4800 and found.times == "measured"
    assert [one.tokens for one in found.used] == [18 * 4800] * 2 and found.used[0].usd == 9.0
    told = "\n".join(str(part) for part in shown.shown(found))
    assert "Student's t with 5 degrees of freedom" in told and "5 kernels, 6000 tokens, 5 USD" in told
    titles = [part.title for part in shown.shown(found) if isinstance(part, Table)]
    assert titles == ["problems", "pairs, at each campaign's end", "used by all campaigns of a side"]
    other = outcome(control([BEST_OF_N], [GREEDY], name="exchanged"))
    assert other.ratio is not None and other.ratio < 1 and "the second is better" in other.conclusion


def test_two_sides_that_are_told_the_same_are_not_told_apart(campaigns: Campaigns) -> None:
    found = outcome(control([GREEDY], [FSR]))
    assert "no significant difference (6 problems" in found.conclusion
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]


def test_few_problems_say_that_they_cannot_reach_five_percent(campaigns: Campaigns) -> None:
    one = outcome(control([GREEDY], [BEST_OF_N], problems=1, repeats=2))
    assert one.conclusion.startswith("no conclusion: 2 pairs of 1 problem cannot reach 5 %, which takes 6")
    assert one.ratio and one.ratio > 1 and one.interval is None and "needs two" in one.interval_why
    told = "\n".join(str(part) for part in shown.shown(one))
    assert "over 1 problem: p cannot be below 1, so it cannot reach 5 %" in told
    two = outcome(control([GREEDY], [BEST_OF_N], problems=2, name="two"))
    assert "the first is better on these problems (6 pairs of 2 problems" in two.conclusion
    assert "nothing is said of other problems" in two.conclusion and two.freedom == 1


def test_pairs_run_in_both_orders_with_budgets_seeds_and_stores_of_their_own(campaigns: Campaigns) -> None:
    outcome(control([GREEDY], [BEST_OF_N], problems=2, repeats=2))
    order = [(c["search.seed"], c["problem"].rpartition("/")[2], c["search.strategy"]) for c in campaigns.calls]
    assert order == [
        *(("1", "p0", "greedy"), ("1", "p0", "best_of_n"), ("1", "p1", "best_of_n"), ("1", "p1", "greedy")),
        *(("2", "p0", "best_of_n"), ("2", "p0", "greedy"), ("2", "p1", "greedy"), ("2", "p1", "best_of_n")),
    ]
    assert len({call["llm.replies"] for call in campaigns.calls}) == 8
    for call in campaigns.calls:
        assert call["budget.kernels"] == "5" and call["budget.tokens"] == "6000" and call["search.from"] == "seeds"
    tags = {(call["tracking.suite"], call["problem"]) for call in campaigns.calls}
    assert len(tags) == 8


def test_a_control_that_was_killed_goes_on(campaigns: Campaigns) -> None:
    def stop(given: dict[str, str]) -> str:
        if len(campaigns.calls) == 5:
            raise KeyboardInterrupt
        return DONE

    campaigns.stop = stop
    with pytest.raises(KeyboardInterrupt):
        outcome(control([GREEDY], [BEST_OF_N], problems=2, repeats=2))
    found = outcome(control([GREEDY], [BEST_OF_N], problems=2, repeats=2))
    tags = [(call["tracking.suite"], call["problem"]) for call in campaigns.calls]
    assert len(tags) == 9 and tags[4] == tags[5] and len(set(tags)) == 8 and found.over_pairs.count == 4
    more = outcome(control([GREEDY], [BEST_OF_N], problems=2, repeats=3))
    assert len(campaigns.calls) == 13 and more.over_pairs.count == 6


def test_the_incumbents_are_timed_once(campaigns: Campaigns, monkeypatch: pytest.MonkeyPatch) -> None:
    found = control([GREEDY], [BEST_OF_N], problems=2, repeats=2)
    first = outcome(found)
    monkeypatch.setattr(rivals, "timed", lambda params, pairs: pytest.fail("timed again"))
    assert outcome(found) == first


def test_a_campaign_without_a_result_leaves_out_its_pair_and_is_tried_again(campaigns: Campaigns) -> None:
    campaigns.stop = lambda given: f"llm.writer: {NO_REPLY}" if given["tracking.suite"].endswith("first-2") else DONE
    found = outcome(control([GREEDY], [BEST_OF_N], problems=2, repeats=2))
    assert [(one.pairs, one.missing) for one in found.problems] == [(1, 1), (1, 1)]
    without = [one for one in found.campaigns if not one.campaign]
    assert len(without) == 2 and all(NO_REPLY in one.stopped and one.seed == 2 for one in without)
    titles = [part.title for part in shown.shown(found) if isinstance(part, Table)]
    assert titles[-1] == "campaigns without a result"
    campaigns.stop = lambda given: DONE
    assert outcome(control([GREEDY], [BEST_OF_N], problems=2, repeats=2)).over_pairs.count == 4
    assert len(campaigns.calls) == 8 + 2


def test_pairs_that_were_not_timed_in_one_run_give_no_ratio(
    campaigns: Campaigns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rivals, "timed", lambda params, pairs: ([], "there is no device here"))
    found = outcome(control([GREEDY], [BEST_OF_N], problems=1))
    assert found.ratio is None and found.problems[0].reason == "there is no device here"
    assert found.conclusion == "no conclusion: no problem has a ratio"
    assert any("there is no device here" in str(part.rows) for part in shown.shown(found) if isinstance(part, Table))


PRICED = "llm.writer={model: openai/x, api_base: 'http://localhost:1/v1'}"
MISTAKES: dict[str, tuple[list[str], list[str], int, str]] = {
    "equal sides": ([GREEDY], [GREEDY], 1, "the two sides have the same parameters"),
    "no sides": ([], [], 1, "the two sides have the same parameters"),
    "another budget": ([GREEDY, "budget.kernels=9"], [FSR], 1, "differ in budget.kernels .9 and 5.*equal budget"),
    "more generations": ([GREEDY], [FSR, "search.generations=9"], 1, "differ in search.generations"),
    "another judge": ([GREEDY], [FSR, "harness.margin=0.2"], 1, "differ in harness.margin: they may differ in"),
    "another language": ([GREEDY], ["language=triton"], 1, "differ in language"),
    "an unknown key": ([GREEDY], ["search.stategy=fsr"], 1, "unknown parameter 'search.stategy'"),
    "a wrong value": ([GREEDY], ["search.strategy=best"], 1, "parameter 'search.strategy'"),
    "no repeat": ([GREEDY], [FSR], 0, "at least one repeat, and --repeats is 0"),
    "a seed": ([GREEDY], [FSR, "search.seed=3"], 1, "a control sets search.seed itself"),
    "an agent": ([GREEDY], ["search.strategy=agent"], 1, "its tokens are unknown"),
    "no limit of tokens": ([], [PRICED, "budget.tokens=null"], 1, "differ in budget.tokens"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_sides_that_cannot_be_compared_are_refused(name: str, campaigns: Campaigns) -> None:
    first, second, repeats, said = MISTAKES[name]
    with pytest.raises(SetupError, match=said):
        control(first, second, repeats=repeats)
    assert not campaigns.calls


def test_a_control_of_models_needs_a_limit_of_tokens(campaigns: Campaigns) -> None:
    with pytest.raises(SetupError, match=r"llm.writer is a model: limit both sides' tokens by --set budget.tokens=N"):
        Control.of("one", ["p0"], [PRICED], [], 1, [])
    Control.of("one", ["p0"], [PRICED], [], 1, ["budget.tokens=100000"])


def test_a_name_stands_for_one_pair_of_sides(campaigns: Campaigns) -> None:
    control([GREEDY], [BEST_OF_N]).begin()
    control([GREEDY], [BEST_OF_N], problems=1, repeats=9)
    with pytest.raises(SetupError, match="control one was begun with other parameters: give this one another --name"):
        control([GREEDY], [FSR])
    with pytest.raises(SetupError, match=r"that of a folder in reports/controls, which 'x/\.\./y' cannot be"):
        control([GREEDY], [FSR], name="x/../y")


LOGS = st.lists(st.lists(st.floats(-2, 2), min_size=1, max_size=2), min_size=1, max_size=7)


def of(logs: Sequence[Sequence[float]]) -> ControlResult:
    """The result of a control whose pairs have these logarithms of ratios."""
    found = [_problem(number, own) for number, own in enumerate(logs)]
    return control_summary.summary("one", ((), ()), 1, Budget(), found, ())


def _problem(number: int, logs: Sequence[float]) -> ControlProblem:
    curves = [
        [CampaignCurve(name=f"{side}{n}", seed=str(n), curve=(1.0,), incumbents=("k",)) for n in range(len(logs))]
        for side in SIDES
    ]
    times = [speedup("second", math.exp(log), 1.0, (0.9 * math.exp(log), 1.1 * math.exp(log))) for log in logs]
    return control_summary.of_problem(f"p{number}", len(logs), "", comparing.compare(*curves, times, "", True))


@settings(max_examples=25)
@given(LOGS, st.randoms(use_true_random=False))
def test_the_order_of_problems_means_nothing_and_an_exchange_of_sides_inverts(
    logs: list[list[float]], rng: Random
) -> None:
    shuffled = [list(own) for own in logs]
    rng.shuffle(shuffled)
    one, same, other = of(logs), of(shuffled), of([[-log for log in own] for own in logs])
    assert one.ratio and other.ratio and same.ratio
    assert same.ratio == pytest.approx(one.ratio) and other.ratio == pytest.approx(1 / one.ratio, rel=1e-4)
    assert (one.over_problems.p is None) == (len(logs) < paired.LEAST_UNITS)
    means = [sum(own) for own in logs]
    assert paired.two_sided("x", [-mean for mean in means]).p == paired.two_sided("x", means).p
    assert (one.interval is None) == (len(logs) == 1)
    if one.interval and other.interval and same.interval:
        assert one.interval[0] <= one.ratio * 1.001 and one.ratio <= one.interval[1] * 1.001
        assert other.interval[0] == pytest.approx(1 / one.interval[1], rel=1e-3)
        assert same.interval == pytest.approx(one.interval, rel=1e-6)


def test_the_interval_over_problems_holds_as_often_as_it_says() -> None:
    rng, holds, tells = Random(4), 0, 0
    for _ in range(400):
        effects = [rng.gauss(0.2, 0.3) for _ in range(5)]  # problems differ more than repeats do
        logs = [[rng.gauss(effect, 0.05) for _ in range(4)] for effect in effects]
        _, interval = paired.over_problems([sum(own) / len(own) for own in logs])
        assert interval is not None
        holds += interval[0] <= math.exp(0.2) <= interval[1]
        tells += not interval[0] <= 1 <= interval[1]
    assert 0.92 <= holds / 400 <= 0.98 and tells > 0


def test_the_test_over_problems_finds_nothing_where_there_is_nothing() -> None:
    rng, wrong = Random(5), 0
    for _ in range(200):
        p = paired.two_sided("problem", [rng.gauss(0, 0.3) for _ in range(7)]).p
        wrong += p is not None and p <= 0.05
    assert wrong <= 0.08 * 200


class Halving(ScriptedModel):
    """Halves twice the work of the kernel that it is shown: only who sees what came of the last try gets far."""

    def write(self, prompt: str) -> str:
        """Change the base that the prompt shows."""
        number, kind = self._plan(prompt)
        source = block_after(prompt, "## The base: ")
        passes = int(re.findall(r"PASSES = (\d+)", source)[0])
        source = source.replace(f"PASSES = {passes}", f"PASSES = {max(1, passes // 4)}")
        source = source.replace('SOURCE = r"""\n', f'SOURCE = r"""\nstatic const int plan_{number} = {number};\n', 1)
        return self._reply(source, f"carried out plan {number}", kind)


SEED = '''"""Copies a vector many times over."""

from kernel_scientist import load

SOURCE = r"""
#include <cstdint>

constexpr int PASSES = 16;

extern "C" void copy(const uint16_t* x, uint16_t* out, int64_t size) {
    volatile uint16_t* to = out;
    for (int pass = 0; pass < PASSES; ++pass)
        for (int64_t i = 0; i < size; ++i) to[i] = x[i];
}
"""
kernel = load(SOURCE)


def custom_kernel(data):
    x, out = data
    kernel.copy(x, out, x.numel())
    return out
'''


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_control_is_killed_goes_on_and_finds_the_side_that_learns(lab: Path, cli: Cli, prefect_api: str) -> None:
    seeds = lab / "problems/identity/seeds"
    for file in seeds.glob("cpp_*.py"):
        file.unlink()
    (seeds / "cpp_slow.py").write_text(SEED)
    task = lab / "problems/identity/task.yml"
    task.write_text(task.read_text().replace("cpp_naive.py", "cpp_slow.py"))
    with serving(Halving(("good",))) as server:
        more = ("search.generations=2", "search.experiments=1", "budget.tokens=1000000", "harness.blocks=6")
        values = [part for part in scripted(server, *more)[1::2] if not part.startswith("problem=")]
        given = [part for value in values for part in ("--set", value)]
        command = ["control", "problems/identity", "--name", "one", "--repeats", "1", "--json"]
        command += ["--first", GREEDY, "--second", BEST_OF_N, *given]
        process = subprocess.Popen(
            [sys.executable, "-m", "kernel_scientist", *command],
            cwd=lab,
            env=lab_environment(lab, PREFECT_API_URL=prefect_api),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while not list(lab.glob("reports/controls/one/*/first-1/result.json")):
            assert process.poll() is None
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        asked_before = len(server.requests)
        done = cli(*command, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        assert asked_before < len(server.requests)
    result = ControlResult.model_validate_json(done.stdout)
    assert result.ratio is not None and result.ratio > 1.5, result.conclusion
    (problem,) = result.problems
    assert problem.comparison and problem.comparison.interval and problem.comparison.interval[0] > 1
    assert [one.kernels for one in result.campaigns] == [3, 3] and all(one.tokens for one in result.campaigns)
    assert set(problem.comparison.differ_in) == {"search.strategy"}
    assert result.conclusion.startswith("no conclusion: 1 pair of 1 problem cannot reach 5 %")
