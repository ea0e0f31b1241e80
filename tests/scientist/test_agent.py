"""The agent with models, over real HTTP: declining, documents on request, repairs of what is missing or cannot work."""

import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from docs import cpu_examples, mi300x_examples
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import BudgetError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import ROLES, Budget, Llm
from kernel_scientist.records.sampled import EVIDENCE, Sampled, SampledLine
from kernel_scientist.scientist.context import outcomes
from kernel_scientist.scientist.llm.agent import LlmAgent
from kernel_scientist.scientist.llm.client import LlmClient
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.parsing import ReplyError
from kernel_scientist.scientist.llm.response_cache import ResponseCache
from kernel_scientist.scientist.llm.tool_calls import ToolCall, written
from kernel_scientist.scientist.proposals import ExperimentTask, InFlight, Lessons, Refutation, Selection, missing
from kernel_scientist.scientist.roles import FOCUSES, Step
from tests.scientist.model_server import ModelServer, Response, serving
from tests.trials import speedup

PLAN = {"title": "t", "description": "d", "rubric": ["r"], "uplift": [1, 2], "innovation": 3}
DESIGN = json.dumps({"avenues": [], "plans": [PLAN]})
FORMATS = "fp8 formats - FNUZ and OCP, conversion, scales and block-scaled GEMM"
SELECTION = Selection(base="k00003", reference="k00002", rationale="r")


@contextmanager
def asked(
    reply: Callable[[str, int], str | Response], folder: Path, tokens: tuple[int, int] = (1000, 200), **llm: Any
) -> Iterator[tuple[LlmAgent, Population, ModelServer]]:
    """An agent whose models answer `reply(last message, number)`; the example of fp8 GEMM on a CPU; the server."""

    def script(request: dict[str, Any], number: int) -> Response:
        answer = reply(request["messages"][-1]["content"], number)
        return answer if isinstance(answer, Response) else Response(answer, tokens=tokens)

    with serving(script) as server:
        price = {"input_usd": 1, "output_usd": 1}
        role = {"model": "openai/x", "api_base": server.address, "price": price, "max_tokens": 2000}
        settings = Llm.model_validate({**dict.fromkeys(ROLES, role), "corrections": 1, **llm})
        client = LlmClient(settings, ResponseCache(folder), LlmBudget(Budget()), "c", threading.Event())
        assignment, population = cpu_examples.fp8()
        yield LlmAgent(assignment, client), population, server


def task(population: Population, in_flight: tuple[InFlight, ...] = ()) -> ExperimentTask:
    """The task of which the example's last kernel came."""
    kernel = list(population)[-1].kernel
    assert kernel.experiment and kernel.base
    reference = kernel.reference or kernel.base
    return ExperimentTask(
        name=kernel.name, base=kernel.base, reference=reference, experiment=kernel.experiment, in_flight=in_flight
    )


@pytest.mark.parametrize(
    "reply",
    [
        "DECLINE: k00009 does the same, and is faster.",
        "**DECLINE:** k00009 does the same, and is faster.",
        "I looked at it.\n\nDECLINE: k00009 does the same, and is faster.",
    ],
)
def test_a_writer_declines_with_a_reason_in_one_call(reply: str, tmp_path: Path) -> None:
    with asked(lambda text, number: reply, tmp_path) as (agent, population, server):
        draft = agent.write(population, task(population), Lessons())
        assert draft.declined == "k00009 does the same, and is faster." and not draft.unreadable
        assert missing(draft.source) and "k00009 does the same" in missing(draft.source)
        assert len(server.requests) == 1 and len(draft.llm_calls) == 1
        assert "DECLINE:" in server.requests[0]["messages"][-1]["content"]


def test_a_kernel_counts_even_if_its_prose_speaks_of_declining(tmp_path: Path) -> None:
    reply = "DECLINE: not needed.\n```python\ndef custom_kernel(data):\n    return data[-1]\n```\nREPORT: done"
    with asked(lambda text, number: reply, tmp_path) as (agent, population, _):
        draft = agent.write(population, task(population), Lessons())
        assert not draft.declined and "custom_kernel" in draft.source and draft.report == "done"


def test_of_several_drafts_a_kernel_is_taken_rather_than_a_declined_one(tmp_path: Path) -> None:
    kernel = "```python\ndef custom_kernel(data):\n    return data[-1]\n```"
    with asked(lambda text, number: kernel if number == 2 else "DECLINE: no", tmp_path, drafts=3) as (agent, all_, _):
        draft = agent.write(all_, task(all_), Lessons())
        assert not draft.declined and "custom_kernel" in draft.source and len(draft.llm_calls) == 3
    with asked(lambda text, number: "DECLINE: no", tmp_path / "b", drafts=2) as (agent, all_, server):
        assert agent.write(all_, task(all_), Lessons()).declined == "no"
        assert len(server.requests) == 2, "no judge is asked"


@pytest.mark.parametrize("status", [404, 500])
def test_drafts_that_are_paid_for_are_used_if_no_more_replies_come(status: int, tmp_path: Path) -> None:
    def kernel(n: int) -> str:
        return f"```python\nN = {n}\n\n\ndef custom_kernel(data):\n    return data[-1]\n```"

    for drafts, good in ((2, 2), (3, 1)):  # no judge; neither the other drafts
        folder = tmp_path / str(drafts)
        replies = {number: kernel(number) for number in range(1, good + 1)}
        with asked(
            lambda text, number, known=replies: known.get(number, Response(status=status)),
            folder,
            drafts=drafts,
            attempts=1,
        ) as (agent, population, server):
            draft = agent.write(population, task(population), Lessons())
            assert draft.source.startswith("N = 1\n") and not draft.unreadable
            assert len(draft.llm_calls) == good and len(server.requests) == good + 1


def test_a_declined_experiment_is_told_with_its_reason(tmp_path: Path) -> None:
    _, population = cpu_examples.fp8()
    failed = list(population)[-1].kernel
    declined = Trial(
        kernel=failed, evaluation=Evaluation(verdict=Verdict.DECLINED, reason="the base is 9 times slower")
    )
    rows, _ = outcomes.tried(Population((*list(population)[:-1], declined)), "k00003")
    assert [row["outcome"] for row in rows][-1] == "declined: the base is 9 times slower"


def test_the_writer_sees_what_others_write_and_the_fastest_kernel(tmp_path: Path) -> None:
    others = (
        InFlight("k00009", "k00002", "prefetch", "writing"),
        InFlight("k00005", "k00003", "own title", "writing"),
    )
    with asked(lambda text, number: "DECLINE: no", tmp_path) as (agent, population, server):
        given = task(population, others).model_copy(update={"base": "k00001", "reference": "k00002"})
        agent.write(population, given, Lessons())
        prompt = server.requests[0]["messages"][-1]["content"]
    assert "- k00009, on k00002: prefetch (writing)" in prompt and "own title" not in prompt
    assert "The fastest kernel so far is k00003 (six rows per register tile)" in prompt


def test_a_writer_is_told_of_the_kernels_that_failed_at_the_same_experiment(tmp_path: Path) -> None:
    with asked(lambda text, number: "DECLINE: no", tmp_path) as (agent, population, server):
        failed = list(population)[-1]
        agent.write(population, task(population), Lessons())
        agent.write(population, task(population).model_copy(update={"failed": (failed.kernel.name,)}), Lessons())
        first, again = (request["messages"][-1]["content"] for request in server.requests)
    told = again.partition("### It was tried before")[2]
    assert "### It was tried before" not in first
    assert f"- {failed.kernel.name} (base {failed.kernel.base})" in told and failed.evaluation.verdict.value in told


def test_a_designer_is_told_of_refutations_and_of_plans_that_wait(tmp_path: Path) -> None:
    refuted = Refutation(statement="wider", mechanism="bytes", gains=("-1 % [-2, 0] over k00003",), campaign="before")
    step = dataclasses.replace(Step.of(0, "design", 2), planned=("deeper (on k00002)",))
    with asked(lambda text, number: DESIGN, tmp_path) as (agent, population, server):
        agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2))
        agent.design(population, SELECTION, Lessons(refuted=(refuted,)), step)
        first, second = (request["messages"][-1]["content"] for request in server.requests)
    assert "Refuted in earlier campaigns" not in first and "Planned before" not in first
    assert "- wider (bytes): -1 % [-2, 0] over k00003, in campaign before" in second
    assert "do not plan these again on the same base: deeper (on k00002)." in second


def test_a_designer_reads_documents_that_it_names_once(tmp_path: Path) -> None:
    replies = {1: json.dumps({"read": [FORMATS]}), 2: DESIGN}
    with asked(lambda text, number: replies[number], tmp_path) as (agent, population, server):
        design = agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2))
        assert len(design.plans) == 1 and len(design.llm_calls) == len(server.requests) == 2
        first, second = (request["messages"] for request in server.requests)
        assert f"- {FORMATS}" in first[-1]["content"] and "exponent bias" not in first[-1]["content"]
        assert len(second) == len(first) and "exponent bias" in second[-1]["content"]
        assert "## Further documents" not in second[-1]["content"], "it is asked with them in the place of others"
        again = agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2))
        assert again.plans == design.plans and len(server.requests) == 2, "both replies are cached"


def test_a_designer_who_only_reads_is_corrected_and_then_unreadable(tmp_path: Path) -> None:
    with asked(lambda text, number: json.dumps({"read": [FORMATS]}), tmp_path) as (agent, population, server):
        with pytest.raises(ReplyError, match="further document"):
            agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2))
        assert len(server.requests) == 3


def test_a_document_that_does_not_exist_is_a_correction(tmp_path: Path) -> None:
    replies = {1: json.dumps({"read": ["Secrets"]}), 2: DESIGN}
    with asked(lambda text, number: replies[number], tmp_path) as (agent, population, server):
        assert agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2)).plans
        assert "no further document 'Secrets'" in server.requests[1]["messages"][-1]["content"]


def test_the_budget_ends_a_design_that_wants_to_read(tmp_path: Path) -> None:
    replies = {1: json.dumps({"read": [FORMATS]}), 2: DESIGN}
    with asked(lambda text, number: replies[number], tmp_path, tokens=(9000, 100)) as (agent, population, server):
        agent.client.budget = LlmBudget(Budget(usd=0.012))
        with pytest.raises(BudgetError):
            agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2))
        assert len(server.requests) == 1


def test_designers_at_the_same_time_get_different_prompts(tmp_path: Path) -> None:
    with asked(lambda text, number: DESIGN, tmp_path) as (agent, population, server):
        for generation, focus in enumerate(FOCUSES[:2], start=2):
            step = dataclasses.replace(Step.of(0, "design", generation), focus=focus)
            agent.design(population, SELECTION, Lessons(), step)
        first, second = (request["messages"][-1]["content"] for request in server.requests)
    assert f"Yours is **{FOCUSES[0]}**" in first and f"Yours is **{FOCUSES[1]}**" in second


def test_a_repairer_of_a_missing_kernel_gets_the_base_and_may_send_a_diff_of_it(tmp_path: Path) -> None:
    change = "```diff\n@@\n-TUNABLES = {\n+# new\n+TUNABLES = {\n```\nREPORT: written"
    with asked(lambda text, number: "no" if number <= 2 else change, tmp_path) as (agent, population, server):
        given = task(population)
        draft = agent.write(population, given, Lessons())
        assert draft.unreadable and "the writer sent no kernel" in missing(draft.source)
        failed = list(population)[-1].kernel.model_copy(update={"source": draft.source})
        evaluation = Evaluation(verdict=Verdict.ABSENT, reason=missing(draft.source))
        repaired = agent.repair(population, given, Trial(kernel=failed, evaluation=evaluation), Lessons())
        prompt = server.requests[-1]["messages"][1]["content"]
    base = population.get("k00003").kernel.source
    assert repaired is not None and repaired.source == base.replace("TUNABLES = {", "# new\nTUNABLES = {", 1)
    assert base.strip() in prompt and "raise SyntaxError" not in prompt and "A.1" not in prompt


def test_a_repairer_says_that_an_experiment_cannot_work_and_leaves_the_kernel(tmp_path: Path) -> None:
    with asked(lambda text, number: "DECLINE: there is no such instruction", tmp_path) as (agent, population, _):
        failed = list(population)[-1]
        draft = agent.repair(population, task(population), failed, Lessons())
    assert draft is not None and draft.source == failed.kernel.source
    assert draft.declined == draft.critique == "there is no such instruction"


def test_an_echoed_example_is_no_reply(tmp_path: Path) -> None:
    """A model that only repeats the prompt's example has chosen, planned and judged nothing."""

    def echo(text: str, number: int) -> str:
        return text.rpartition("```json\n")[2].partition("```")[0] or "nothing"

    with asked(echo, tmp_path, corrections=0) as (agent, population, server):
        with pytest.raises(ReplyError, match="is not a kernel with verdict ok"):
            agent.select(population, Lessons(), Step.of(0, "select", 2))
        with pytest.raises(ReplyError, match="wrong fields"):
            agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2))
        with pytest.raises(ReplyError, match="there are no kernels"):
            agent.summarise(population, Lessons(), Step.of(0, "distil", 2))
        assert len(server.requests) == 3


GOOD = "N = 1\n\n\ndef custom_kernel(data):\n    return data[-1]\n"


class Passing:
    """Finds every kernel right, and each in turn faster by a percent more."""

    pairs = True
    profiler = "perf"

    def __init__(self) -> None:
        self.looks = 0
        self.profiled: list[str] = []

    def profile(self, kernel: Kernel, checked: Evaluation, case: str) -> Evaluation:
        self.profiled.append(case)
        if len(self.profiled) > 1:
            return checked.model_copy(update={"environment": {"counters": "none: perf took no sample in the calls"}})
        line = SampledLine(line=5, text="return data[-1]", share=0.875)
        found = Sampled(case=case, samples=900, threads=(1.0,), own=0.9, lines=(line,))
        return checked.model_copy(update={"sampled": (found,)})

    def look(self, kernel: Kernel, checked: Evaluation, base: Kernel) -> Evaluation:
        self.looks += 1
        ratio = 1 + self.looks / 100
        found = speedup(base.name, ratio, 10.0, (ratio - 0.005, ratio + 0.005))
        return checked.model_copy(update={"speedups": (found,), "environment": {"others_percent": "40"}})

    def compile(self, kernel: Kernel) -> Evaluation:
        return Evaluation(verdict=Verdict.OK)

    def check(self, kernel: Kernel) -> Evaluation:
        return Evaluation(verdict=Verdict.OK)


@contextmanager
def with_tools(turns: list[Response], folder: Path, **llm: Any) -> Iterator[tuple[LlmAgent, Population, ModelServer]]:
    """An agent whose writer has tools; the model's replies in order."""
    with asked(lambda _, number: turns[min(number, len(turns)) - 1], folder, **llm) as (agent, population, server):
        writer = agent.settings.writer.model_copy(update={"tools": True, "functions": True})
        agent.client.llm = agent.settings.model_copy(update={"writer": writer})
        yield LlmAgent(agent.assignment, agent.client, Passing()), population, server


def said(request: dict[str, Any]) -> str:
    """What tools said in a conversation."""
    return "\n".join(one["content"] for one in request["messages"] if one["role"] == "tool")


def calling(tool: str, /, finish: str = "tool_calls", cut: int | None = None, **arguments: str) -> Response:
    function = {"name": tool, "arguments": json.dumps(arguments)[:cut]}
    call = {"index": 0, "id": f"c-{tool}", "type": "function", "function": function}
    return Response("", finish=finish, beside=({"tool_calls": [call]},))


def test_a_kernel_that_cannot_be_handed_in_is_answered_as_a_call(tmp_path: Path) -> None:
    _, population = cpu_examples.fp8()
    base = population.get(task(population).base).kernel.source
    turns = [calling("submit", source=base, report="r"), calling("submit", source=GOOD, report="done")]
    with with_tools(turns, tmp_path) as (agent, all_, server):
        draft = agent.write(all_, task(all_), Lessons())
        assert draft.source == GOOD and draft.report == "done" and len(draft.llm_calls) == 2
        last = server.requests[1]["messages"][-1]
        assert last["role"] == "tool" and "the file is the base" in last["content"]
        assert server.requests[1]["messages"][-2]["tool_calls"][0]["id"] == last["tool_call_id"]


def test_a_call_that_was_cut_off_is_asked_for_again_with_more_tokens(tmp_path: Path) -> None:
    cut = calling("check", finish="length", cut=20, source=GOOD)
    with with_tools([cut, calling("submit", source=GOOD, report="r")], tmp_path) as (agent, all_, server):
        assert agent.write(all_, task(all_), Lessons()).source == GOOD
        assert [request["max_tokens"] for request in server.requests] == [2000, 4000]
        assert len(server.requests[1]["messages"]) == len(server.requests[0]["messages"])


@pytest.mark.parametrize(
    "last",
    [Response("I am done."), Response("context is full", status=400), calling("read", name="k00001")],
    ids=["no kernel", "a refusal", "for ever"],
)
def test_what_passed_its_check_counts_if_nothing_is_handed_in(last: Response, tmp_path: Path) -> None:
    with with_tools([calling("check", source=GOOD), last], tmp_path) as (agent, all_, _):
        draft = agent.write(all_, task(all_), Lessons())
        assert draft.source == GOOD and not draft.unreadable
        assert draft.report.startswith("not handed in: what passed its check last (")


def test_what_passed_its_check_counts_if_the_budget_ends(tmp_path: Path) -> None:
    with with_tools([calling("check", source=GOOD)], tmp_path) as (agent, all_, server):
        agent.client.budget = LlmBudget(Budget(tokens=20_000))
        draft = agent.write(all_, task(all_), Lessons())
        assert draft.source == GOOD and "budget" in draft.report and 1 <= len(draft.llm_calls) == len(server.requests)


def test_a_draft_is_timed_beside_the_base_and_a_resumed_conversation_is_the_same(tmp_path: Path) -> None:
    turns = [calling("time", source=GOOD), calling("time", source=GOOD), calling("time", source=f"{GOOD}# 2\n")]
    turns += [calling("time", source=GOOD), Response(status=400)]
    handed_in = calling("submit", report="what was checked last")
    with with_tools(turns, tmp_path) as (agent, all_, server):
        assert agent.write(all_, task(all_), Lessons()).report.startswith("not handed in")
        assert isinstance(agent.workshop, Passing) and agent.workshop.looks == 3
        last = said(server.requests[-1])
        assert "speed over k00003" in last and "1.01x [1.005, 1.015] over all timed cases" in last
        assert "c: 1.03x [1.025, 1.035], 10 us, base 10.3 us" in last and "not the verdict" in last
        assert "measured on a busy machine: other processes used 40 %" in last
        assert "2 of 3 measurements left" in last and "all 3 measurements are used up" in last
        sent = server.requests[-1]["messages"]
        assert "share 3 measurements, each of which is one of the" in sent[1]["content"]
    with with_tools([handed_in], tmp_path) as (agent, all_, server):
        resumed = agent.write(all_, task(all_), Lessons())
        assert resumed.source == GOOD and resumed.report == "what was checked last"
        assert [request["messages"] for request in server.requests] == [sent], "nothing is paid twice"
        assert isinstance(agent.workshop, Passing) and agent.workshop.looks == 0, "nothing is measured twice"


def test_a_draft_is_profiled_and_a_resumed_conversation_is_the_same(tmp_path: Path) -> None:
    case = cpu_examples.fp8()[0].profile.benchmarks[0].name
    turns = [calling("profile", source=GOOD), calling("profile", source=GOOD, case="elsewhere")]
    turns += [calling("profile", source=GOOD, case=case), calling("time", source=GOOD)]
    turns += [calling("profile", source=GOOD), Response(status=400)]
    with with_tools(turns, tmp_path) as (agent, all_, server):
        assert agent.write(all_, task(all_), Lessons()).report.startswith("not handed in")
        times = all_.get(task(all_).base).evaluation.times_us
        assert isinstance(agent.workshop, Passing)
        assert agent.workshop.profiled == [max(times, key=lambda name: times[name]), case] and agent.workshop.looks == 1
        last = said(server.requests[-1])
        assert "900 samples of CPU time" in last and " 88%  line 5: return data[-1]" in last and EVIDENCE in last
        assert "there is no timed case 'elsewhere'; there are " in last
        assert "it was not profiled: perf took no sample" in last
        assert "2 of 3 measurements left" in last and "all 3 measurements are used up" in last, "shared with `time`"
        sent = server.requests[-1]["messages"]
        described = {one["function"]["name"]: one["function"]["description"] for one in server.requests[-1]["tools"]}
        assert "by source line" in described["profile"] and "one of the measurements" in described["profile"]
    with with_tools([calling("submit", report="r")], tmp_path) as (agent, all_, server):
        assert agent.write(all_, task(all_), Lessons()).source == GOOD
        assert [request["messages"] for request in server.requests] == [sent], "nothing is paid twice"
        assert isinstance(agent.workshop, Passing) and agent.workshop.profiled == [], "nothing is measured twice"


@pytest.mark.parametrize(("profiler", "words"), [("", ""), ("ncu", "count by ncu, on one case")])
def test_the_tool_that_profiles_is_what_the_machine_can_do(profiler: str, words: str, tmp_path: Path) -> None:
    with with_tools([Response("DECLINE: no")], tmp_path) as (agent, all_, server):
        assert isinstance(agent.workshop, Passing)
        agent.workshop.profiler = profiler
        agent.write(all_, task(all_), Lessons())
        tools = {one["function"]["name"]: one["function"]["description"] for one in server.requests[-1]["tools"]}
        assert words in tools.get("profile", "") and ("profile" in tools) == bool(profiler)


def test_who_has_no_looks_has_no_tool_that_times(tmp_path: Path) -> None:
    with with_tools([calling("time", source=GOOD), Response("DECLINE: no")], tmp_path) as (agent, all_, server):
        assert isinstance(agent.workshop, Passing)
        agent.workshop.pairs = False
        agent.write(all_, task(all_), Lessons())
        assert "there is no tool 'time'; there are compile, check, read" in said(server.requests[-1])
        assert "No tool times a kernel" in server.requests[-1]["messages"][1]["content"]


def test_on_a_model_target_times_are_predicted(tmp_path: Path) -> None:
    class Predicting(Passing):
        def check(self, kernel: Kernel) -> Evaluation:
            return known

    assignment, population = mi300x_examples.triton()
    given = task(population)
    known = population.get(given.base).evaluation
    turns = [calling("time", source=GOOD), calling("profile", source=GOOD), calling("profile", source=GOOD, case="x")]
    turns += [calling("submit", report="r"), calling("compile", kernel=given.base)]
    turns += [calling("profile", kernel=given.base), Response(DESIGN)]
    with with_tools(turns, tmp_path) as (agent, _, server):
        designer = agent.client.llm.designer.model_copy(update={"tools": True, "functions": True})
        agent.client.llm = agent.client.llm.model_copy(update={"designer": designer})
        agent = LlmAgent(assignment, agent.client, Predicting())
        assert agent.write(population, given, Lessons()).source == GOOD
        written_by, number = said(server.requests[-1]), len(server.requests)
        assert agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2)).plans
        designed_by = said(server.requests[-1])
    assert "predicted 1 times as fast as the base" in written_by and "not the verdict" in written_by
    assert "measurements" not in written_by and "there is no timed case 'x'" in written_by and number == 4
    longest = max(known.predictions, key=lambda one: one.time_us)
    assert f"{longest.case}: predicted" in written_by and f"limited by {longest.limited_by} (" in written_by
    assert f"In case {longest.case}, by the performance model:" in designed_by and "registers per lane" in designed_by


@pytest.mark.parametrize("functions", [True, False], ids=["functions", "words"])
def test_a_designer_looks_kernels_and_documents_up(functions: bool, tmp_path: Path) -> None:
    calls = [("read", {"name": FORMATS}), ("compile", {"kernel": "k00003"}), ("profile", {"kernel": "k00003"})]
    calls += [("search", {"words": "exponent bias"}), ("profile", {"kernel": "k00099"}), ("submit", {})]
    written_out = "\n".join(written(ToolCall(name, json.dumps(arguments))) for name, arguments in calls)
    turns = [*(calling(name, **arguments) for name, arguments in calls)] if functions else [Response(written_out)]
    turns += [Response(DESIGN)]
    with asked(lambda _, number: turns[min(number, len(turns)) - 1], tmp_path) as (agent, population, server):
        designer = agent.settings.designer.model_copy(
            update={"tools": True, "calls": 6, "functions": functions, "structured": True}
        )
        agent.client.llm = agent.settings.model_copy(update={"designer": designer})
        agent = LlmAgent(agent.assignment, agent.client)
        assert len(agent.design(population, SELECTION, Lessons(), Step.of(0, "design", 2)).plans) == 1
        first, last = server.requests[0], server.requests[-1]
        told = "\n".join(one["content"] for one in last["messages"][2:])
    assert ("tools" in first) == functions and "response_format" not in first
    assert "you may call tools, at most 6 times" in first["messages"][1]["content"]
    assert "## Further documents" not in first["messages"][1]["content"], "a tool reads them"
    assert "exponent bias" in told and f"From `{FORMATS}`" in told
    assert "nothing is known of its machine code" in told and "geometric mean: " in told and "floor" in told
    assert "there is no kernel 'k00099'" in told and "there is no tool 'submit'" in told


def test_the_base_is_no_draft_of_its_own(tmp_path: Path) -> None:
    _, population = cpu_examples.fp8()
    base = population.get(task(population).base).kernel.source
    with with_tools([calling("check", source=base), Response("I am done.")], tmp_path) as (agent, all_, _):
        assert agent.write(all_, task(all_), Lessons()).unreadable
