"""Nothing held out leaves: all bytes that a server sends are searched for held-out cases and secret seeds."""

import re
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession

from kernel_scientist import api, problems
from kernel_scientist.agents import withheld, work
from kernel_scientist.agents.campaigns import Campaigns
from kernel_scientist.agents.child import Child
from kernel_scientist.records.errors import InfrastructureError, SetupError
from tests.agents.client import over_stdio, result
from tests.agents.test_agent_campaign import CONFIRM_QUICKLY, experiment
from tests.conftest import ROOT

SIZES = {b"77777", b"2000003"}
"""The held-out sizes of `identity`."""
TELLTALE = """

def custom_kernel(data):
    x, out = data
    if 2000000 < x.numel() != 2097152:
        raise ValueError(f"held out: {x.numel()}")
    kernel.copy(x, out, x.numel())
    return out
"""
"""A kernel that tells, where its error is shown, what the held-out size was."""


@pytest.mark.slow
def test_all_bytes_that_leave_hold_no_held_out_case_and_no_secret_seed(lab: Path, prefect_api: str) -> None:
    seeds = lab / "problems" / "identity" / "seeds"
    source = (seeds / "cpp_blocked.py").read_text().partition("\n\ndef custom_kernel")[0] + TELLTALE
    for seed in seeds.glob("cpp_*.py"):
        seed.unlink()
    (seeds / "cpp_telltale.py").write_text(source)
    verdicts: list[str] = []

    async def talk(session: ClientSession) -> None:
        kernel = {"problem": "identity", "source": source}
        assert "size2097152" in str(await result(session, "problem", problem="identity"))
        verdicts.append((await result(session, "profile", **kernel))["verdict"])
        begun = await result(session, "begin_campaign", problem="identity", evaluations=1)
        here = {"campaign": begun["campaign"]}
        wrong = source.replace("int threads =", "int threads")
        await result(session, "submit", **here, **experiment("k00001", "broken"), source=wrong)
        confirmed = await result(session, "confirm", **here)
        verdicts.append(confirmed["verdict"])
        assert confirmed["why"].startswith("crashed on a case of the confirmation")
        await result(session, "history", **here)
        await result(session, "kernel", **here, kernel="k00001")

    drawn, sent = lab / "seeds.txt", lab / "sent.bytes"
    environment = {"PYTHONPATH": f"{Path(__file__).parent / 'spy'}:{ROOT}", "SEEDS_FILE": str(drawn)}
    over_stdio(lab, talk, *CONFIRM_QUICKLY, sent=sent, PREFECT_API_URL=prefect_api, **environment)
    assert verdicts == ["ok", "crashed"]
    secrets, told = {line.encode() for line in drawn.read_text().split()}, sent.read_bytes()
    assert len(secrets) > 10 and b"custom_kernel" in told
    numbers = {*re.findall(rb"\d+", told)}
    assert not secrets & numbers
    assert not SIZES & {*re.findall(rb"(?<!\d)(?<!\d\.)\d+(?!\.?\d)", told)}, "whole numbers, no parts of a float"


def test_rows_names_and_fields_about_held_out_cases_are_left_out() -> None:
    hidden = withheld.names(problems.load(ROOT / "problems" / "identity"))
    assert hidden == {"size77777", "size2000003"}
    told = {
        "reason": "wrong on size1024",
        "cases": [{"case": "size1024", "use": "tests"}, {"case": "size2000003", "use": "held_out"}],
        "held_out": {"cases": []},
        "held_out_ratio": 1.2,
    }
    left = {"reason": "wrong on size1024", "cases": [{"case": "size1024", "use": "tests"}]}
    assert withheld.without(told, hidden) == left


def test_a_reason_tells_nothing_of_what_was_found_on_held_out_cases() -> None:
    slower = "not faster than k00001 on the held-out cases: 1.01x [0.98, 1.04]"
    assert withheld.reason("ok", slower) == "not faster than k00001 on the held-out cases"
    assert withheld.reason("ok", "correct on every case") == "correct on every case"
    for verdict in ("incorrect", "infrastructure", "compiled"):
        assert "77777" not in withheld.reason(verdict, f"{verdict}: case size77777 at [3]")
    assert "77777" not in withheld.reason("ok", "right (executed: size77777); its time is predicted by a model")


def test_a_text_with_the_names_of_all_held_out_cases_comes_back_as_it_was() -> None:
    source = f"# {sorted(withheld.names(problems.load(ROOT / 'problems' / 'identity')))}\n"
    told = {"problem": "identity", "source": source, "constants": {"size77777": "1"}}
    assert work.without_held_out(told) == told


@pytest.mark.parametrize("failure", [InfrastructureError, SetupError, RuntimeError])
def test_neither_progress_nor_an_error_of_a_confirmation_tells_of_a_held_out_case(
    failure: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []
    child = Child(sent.append)

    def failing(*_: Any) -> None:
        child.tell("checking size77777")
        raise failure("size77777: 12345 is wrong")

    monkeypatch.setattr(api, "optimize", failing)
    monkeypatch.setattr(Campaigns, "_overrides", lambda *_: ())
    call = {"call": "confirm", "arguments": {"campaign": "one"}, "settings": {}}
    sent.append(child.answer(call))
    assert [*sent[0]] == ["progress"] and [*sent[1]] == ["error"]
    assert not re.search("77777|12345", str(sent))
