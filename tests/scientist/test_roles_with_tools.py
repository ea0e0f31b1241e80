"""Campaigns whose designer, writer and repairer use tools before they answer: over HTTP, with compiler and store."""

import json
import re
import types
from pathlib import Path
from typing import cast

import pytest

from kernel_scientist.campaign.bench import Bench
from kernel_scientist.campaign.role_workshop import RoleWorkshop
from kernel_scientist.profile import sampling
from kernel_scientist.profile.profiler import Profiler
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import load as load_params
from kernel_scientist.sandbox import bubblewrap
from kernel_scientist.scientist.llm.response_cache import ResponseCache
from kernel_scientist.scientist.llm.tool_calls import wanted
from kernel_scientist.scientist.llm.workbench import NO_VERDICT
from tests.conftest import Cli
from tests.scientist.model_server import ModelServer, serving
from tests.scientist.scripted_campaign import killed, settings, stored
from tests.scientist.tool_user import LOOPS, ToolUser, role_with_tools

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
@pytest.mark.parametrize("functions", [True, False], ids=["functions", "words"])
def test_writers_look_before_they_hand_in(functions: bool, lab: Path, cli: Cli, prefect_api: str) -> None:
    model = ToolUser(("good", "wrong", "loops"), functions)
    with serving(model) as server:
        arguments = settings(server, "search.generations=1")
        arguments += ["--set", f"llm.writer={role_with_tools(server, functions)}"]
        arguments += ["--set", f"llm.repairer={role_with_tools(server, functions, calls=7, looks=0)}"]
        arguments += ["--set", f"llm.designer={role_with_tools(server, functions, calls=4)}"]
        done = cli("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        requests = len(server.requests)
    parent, _, store = stored(lab)
    replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
    assert len(replies) == requests, "each reply is paid for once, and kept"
    assert json.loads(done.stdout)["usd"] == pytest.approx(sum(reply.usd for reply in replies), abs=1e-4)

    told = "\n".join(model.said)
    assert "its outputs are right" in told and "incorrect" in told, "checks of good and of wrong drafts"
    assert "SyntaxError" in told or "compile_error" in told
    assert "there is no tool 'sing'" in told and "the arguments are not JSON" in told
    assert "lines 1 to 5 of" in told and "there is no tool 'profile'" in told, "a repairer without looks"
    if isinstance(sampling.find(bubblewrap.bubblewrap_works()), Profiler):
        assert "samples of CPU time" in told and re.search(r"\d%  line \d+: \w", told), "a writer sees its hot lines"
        assert "1 of 3 measurements left" in told, "a profile is one of the looks"
    assert "all calls are used up" in told
    assert "instructions by class" in told and "geometric mean: " in told, "what is known of recorded kernels"
    assert "there is no tool 'check'; there are compile, profile, read, search" in told, "a designer builds nothing"
    assert "speed over k0000" in told and "2 of 3 measurements left" in told and NO_VERDICT in told
    assert "there is no tool 'time'" in told, "a repairer without looks"

    population = {trial.kernel.title: trial for trial in store.population(parent) if trial.kernel.experiment}
    good, wrong, loops = (
        next(t for title, t in population.items() if kind in title) for kind in ("good", "wrong", LOOPS)
    )
    assert good.evaluation.verdict.value == "ok" and good.kernel.report == "after looking"
    assert len([one for one in good.kernel.llm_calls if one.role == "writer"]) == 2
    assert wrong.evaluation.verdict.value == "incorrect", (
        "what a tool says is no verdict, and what it says was not heeded"
    )
    assert loops.evaluation.verdict.value == "absent" and "after its 12 calls" in loops.evaluation.reason
    calls = [reply for reply in replies if wanted(reply.text)[0]]
    assert {reply.role for reply in calls} == {"designer", "writer", "repairer"}
    traces = store.client.search_traces(locations=[store.experiment_id], max_results=500)
    assert len(traces) == requests
    asked = [one for trace in traces for one in trace.data.spans[0].inputs["messages"] if one["role"] == "tool"]
    assert any("its outputs are right" in one["content"] for one in asked), "a trace shows what the tools said"


def test_tools_that_build_are_refused_where_kernels_are_built_elsewhere() -> None:
    def elsewhere(role: str) -> Bench:
        params = load_params(None, [f"llm.{role}={{tools: true}}", "target=pool:gpus"])
        return cast(Bench, types.SimpleNamespace(params=params, target=types.SimpleNamespace(builder=None)))

    why = r"llm\.repairer\.tools: kernels of target pool:gpus are built where they are timed"
    with pytest.raises(SetupError, match=why):
        RoleWorkshop(elsewhere("repairer"))
    RoleWorkshop(elsewhere("designer"))


def test_a_killed_campaign_goes_on_within_a_conversation(lab: Path, cli: Cli, prefect_api: str) -> None:
    with serving(ToolUser(("good", "good", "wrong"), functions=True)) as server:
        arguments = settings(server, "search.generations=1")
        for name in ("designer", "writer", "repairer"):
            arguments += ["--set", f"llm.{name}={role_with_tools(server, True)}"]
        killed(lab, arguments, prefect_api, lambda: _has_called(server))
        done = cli("optimize", "--json", "--resume", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
        parent, children, _ = stored(lab)
        replies = ResponseCache(lab / "data/replies").paid_by(parent.campaign)
        keys, requests = [reply.request.key for reply in replies], len(server.requests)
        assert len(keys) == len(set(keys)), "nothing is paid twice"
        # the request in flight at the kill may be sent again, as its reply had not arrived
        assert requests - len(keys) in (0, 1)
        arguments += ["--set", f"llm.replay={parent.campaign}"]
        again = cli("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
        assert again.returncode == 0, again.stderr
        assert len(server.requests) == requests and json.loads(again.stdout)["usd"] == 0
    replayed, repeats, _ = stored(lab)
    assert replayed.campaign != parent.campaign
    assert [run.data.tags["digest"] for run in repeats] == [run.data.tags["digest"] for run in children]


def _has_called(server: ModelServer) -> bool:
    """Whether the results of tools were sent to a writer."""
    conversations = [request["messages"] for request in list(server.requests)]
    written = [messages for messages in conversations if messages[1]["content"].startswith("# Implement")]
    return any(one["role"] == "tool" for messages in written for one in messages)
