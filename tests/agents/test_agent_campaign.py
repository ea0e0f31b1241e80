"""A campaign whose eight kernels a client of the official SDK writes, from its beginning to its confirmation."""

import re
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession

from kernel_scientist.agents import history
from kernel_scientist.agents.campaigns import AgentCampaign, Campaigns
from kernel_scientist.agents.work import Settings
from kernel_scientist.records.errors import InfrastructureError
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.agents.client import over_stdio, refusal, result
from tests.trials import undescribed

CONFIRM_QUICKLY = ("--set", "validate.processes=1", "--set", "validate.blocks=2", "--set", "tracking.register=false")
EDITS = (
    ('"VEC": 16', '"VEC": 8'),
    ('"VEC": 16', '"VEC": 32'),
    ('"CHUNK": 16384', '"CHUNK": 65536'),
    ('"UNROLL": 1', '"UNROLL": 2'),
    ('"UNROLL": 1', '"UNROLL": 4'),
    ('"PREFETCH": 0', '"PREFETCH": 4'),
    ("kernel.copy(x, out, x.numel())", "kernel.copy(x, out, x.numel() // 2)"),
    ("int threads =", "int threads"),
)
"""Of the blocked seed; the last but one is incorrect, the last one does not compile."""


def experiment(base: str, title: str) -> dict[str, Any]:
    return {"base": base, "title": title, "hypothesis": f"{title}: fewer instructions", "expected_percent": [0, 5.5]}


def test_a_campaign_that_fails_to_begin_is_closed(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: AgentCampaign) -> None:
        raise InfrastructureError("the device is busy")

    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(lab))
    monkeypatch.setattr(AgentCampaign, "first_kernels", failing)
    campaigns = Campaigns()
    with pytest.raises(InfrastructureError, match="busy"):
        campaigns.begin(Settings(), "identity", 1)
    assert campaigns._open is None
    assert history.find(Settings(), "").state == "KILLED"


@pytest.mark.slow
def test_eight_kernels_by_a_client_are_a_campaign_like_any_other(lab: Path, prefect_api: str) -> None:
    source, told = (lab / "problems" / "identity" / "seeds" / "cpp_blocked.py").read_text(), dict[str, Any]()

    async def talk(session: ClientSession) -> None:
        begun = await result(session, "begin_campaign", problem="identity", evaluations=8)
        campaign, firsts = begun["campaign"], [row["kernel"] for row in begun["kernels"]]
        assert firsts == ["k00001", "k00002"] and begun["evaluations_left"] == 8
        here, base = {"campaign": campaign}, firsts[0]
        sentences = {
            "no kernel 'k00077'; its latest are k00001, k00002": {"source": source + "\nX = 1\n", "base": "k00077"},
            "repeats a kernel that this campaign has tried": {"source": source, "base": base},
            "is in cpp, the kernel in triton": {"source": "@triton.jit\ndef custom_kernel(data): ...", "base": base},
        }
        for sentence, wrong in sentences.items():
            assert sentence in await refusal(session, "submit", **here, **(experiment(base, "wrong") | wrong))
        for number, (before, after) in enumerate(EDITS):
            done = await result(
                session, "submit", **here, **experiment(base, f"edit {number}"), source=source.replace(before, after)
            )
            assert done["kernel"] == f"k{number + 3:05d}" and done["evaluations_left"] == 7 - number
            assert done["base"] == base
            base = done["kernel"] if done["verdict"] == "ok" else base
        spent = await refusal(session, "submit", **here, **experiment(base, "more"), source=source + "\nX = 1\n")
        assert "the budget of campaign" in spent
        shown = await result(session, "history", **here)
        assert [row["kernel"] for row in shown["kernels"]] == [f"k{n:05d}" for n in range(1, 11)]
        assert [row["verdict"] for row in shown["kernels"]][-2:] == ["incorrect", "compile_error"]
        one = await result(session, "kernel", **here, kernel="k00003")
        assert one["source"] == source.replace(*EDITS[0]) and one["hypothesis"] == "edit 0: fewer instructions"
        told["confirmed"] = await result(session, "confirm", **here)
        told["history"] = await result(session, "history")
        other = await result(session, "begin_campaign", problem="identity", evaluations=1)
        sides = {"first": [campaign], "second": [other["campaign"]]}
        compared = await result(session, "compare", **sides, recorded=True)
        assert [pair["first"]["campaign"] for pair in compared["pairs"]] == [campaign]

    over_stdio(lab, talk, *CONFIRM_QUICKLY, PREFECT_API_URL=prefect_api)
    confirmed, shown = told["confirmed"], told["history"]
    assert confirmed["verdict"] == "ok" and re.fullmatch(r"k000\d\d", confirmed["champion"]) and confirmed["why"]
    assert shown["state"] == "finished" and shown["strategy"] == "agent"
    assert shown["confirmation"].items() <= confirmed.items()
    assert (lab / "champions" / "identity" / "campaigns" / confirmed["campaign"] / "kernel.py").exists()

    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    run = store.latest(confirmed["campaign"])
    assert run is not None and undescribed(store, run) == set()
    population = store.population(run)
    assert [population.get(f"k{n:05d}").kernel.base for n in (3, 4, 10)] == ["k00001", "k00003", "k00008"]
    assert population.get("k00004").kernel.authors["writer"].model == "a-client 1"
