"""The pages of a campaign that people open, in a real Chromium, and the chain that Prefect's show: select, design,
write, compile, time, record; what is tried again.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import SMALL, Browser, Served, chromium, served
from tests.conftest import new_lab
from tests.flows.service import ask
from tests.scientist.model_server import Response, serving
from tests.scientist.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow
OUTAGE = 4
"""Requests at the beginning that the endpoint does not answer."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A campaign with a model in every role, whose endpoint is away at first."""
    model = ScriptedModel(("good",))

    def script(request: dict[str, Any], number: int) -> Response:
        return Response("away", status=503) if number <= OUTAGE else model(request, number)

    price = "price: {input_usd: 1, output_usd: 1}"
    with serving(script) as server:
        role = f"{{model: openai/scripted, api_base: '{server.address}', {price}, max_tokens: 4000}}"
        roles = [f"llm.{name}={role}" for name in ("selector", "designer", "writer", "repairer")]
        settings = (*SMALL, *roles, "llm.first_delay_s=0.1", "llm.concurrency=1")
        with served(new_lab(tmp_path_factory.mktemp("chain") / "lab"), *settings) as found:
            yield found


@pytest.fixture(scope="module")
def runs(campaign: Served) -> list[dict[str, Any]]:
    """The campaign's task runs in the order in which they began."""
    where = {"flow_runs": {"id": {"any_": [campaign.flow_run]}}, "sort": "EXPECTED_START_TIME_ASC"}
    found = ask(f"{campaign.prefect}/api", "POST", "task_runs/filter", where)
    return sorted(found, key=lambda run: run["start_time"])


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    pytest.importorskip("playwright")
    if chromium() is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = Browser(playwright, **getattr(request, "param", {}))
        yield opened
        opened.close()
        assert not opened.errors


def test_every_step_is_a_task_with_a_name_that_says_what_is_done(runs: list[dict[str, Any]]) -> None:
    names = [run["name"] for run in runs]
    assert all(run["state_type"] == "COMPLETED" for run in runs), [(r["name"], r["state_name"]) for r in runs]
    for name in ("select a base for generation 1", "compile and check k00003", "time k00003", "record k00003"):
        assert name in names, names
    assert any(name.startswith("design 1 on k0000") for name in names)
    assert any(name.startswith("write k00003: plan ") for name in names)
    assert any(name.endswith(", set 1") and name.startswith("confirm k") for name in names)


def test_the_graph_leads_from_the_selection_to_the_time(campaign: Served, runs: list[dict[str, Any]]) -> None:
    graph = ask(f"{campaign.prefect}/api", "GET", f"flow_runs/{campaign.flow_run}/graph-v2")
    nodes = {node["id"]: node for _, node in graph["nodes"]}
    (last,) = [node for node in nodes.values() if node["label"] == "record k00003"]
    path = [last["label"]]
    while last["parents"]:
        last = nodes[last["parents"][0]["id"]]
        path.append(last["label"])
    words = [word for label in reversed(path) if (word := label.split()[0]) != "wait"]  # for others on this machine
    assert words == ["select", "design", "write", "compile", "time", "record"]


def test_a_provider_that_is_away_shows_as_a_retry_and_the_campaign_ends_whole(
    campaign: Served, runs: list[dict[str, Any]]
) -> None:
    assert campaign.summary["verdicts"]["ok"] == campaign.summary["kernels"] == 4 and campaign.summary["champion"]
    (retried,) = [run for run in runs if run["run_count"] > 1]
    assert retried["name"] == "select a base for generation 1"
    states = ask(f"{campaign.prefect}/api", "GET", "task_run_states/", task_run_id=retried["id"])
    assert "Retrying" in [state["name"] for state in states]


def test_the_page_of_the_flow_run_shows_the_chain(campaign: Served, browser: Browser) -> None:
    browser.open(f"{campaign.prefect}/runs/flow-run/{campaign.flow_run}", "Completed")
    browser.page.get_by_text("Task Runs", exact=True).first.click()
    for text in ("select a base for generation 1", "design 1 on", "write k00003", "compile and check k00003"):
        browser.page.get_by_text(text).first.wait_for()
    browser.page.get_by_text("time k00003").first.wait_for()


def file_address(path: Path) -> str:
    return path.resolve().as_uri()


@pytest.mark.parametrize("browser", [{"width": 390, "scheme": "dark"}], indirect=True)
def test_the_report_on_a_phone(campaign: Served, browser: Browser) -> None:
    champion = campaign.summary["champion"]
    text = browser.open(file_address(campaign.report), f"{champion} ")
    assert re.search(rf"{champion} (computes identity at|is the champion of identity)", text)
    for heading in ("Family tree", "What failed and why", "Accuracy of the hypotheses", "Findings", "Environment"):
        assert heading in text
    page = browser.page
    assert page.evaluate("document.documentElement.scrollWidth") == 390, "the page does not scroll sideways"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)", "dark"
    assert page.locator("svg").count() >= 2
    card = page.locator(f"#{champion}")
    assert not card.is_visible()
    page.goto(f"{file_address(campaign.report)}#{champion}")
    card.wait_for(state="visible")
    assert "speedup over the reference" in card.inner_text(), "a link opens its kernel, without JavaScript of ours"


def test_mlflow_s_table_of_runs(campaign: Served, browser: Browser) -> None:
    text = browser.open(campaign.runs_table, "speedup", "geomean_us", "verdict", "experiment", "base", "k00002")
    assert f"{campaign.summary['kernels']} matching runs" in text, "the kernels, without the campaign's own run"


def test_a_kernel_s_run_and_the_report_in_mlflow(campaign: Served, browser: Browser) -> None:
    browser.open(campaign.runs_table, "k00003")
    browser.page.get_by_role("link", name="k00003").first.click()
    for text in ("Hypothesis.", "Outcome."):
        browser.page.get_by_text(text).first.wait_for()
    with browser.page.expect_popup() as opened:
        browser.page.get_by_role("link", name="campaign, with its Prefect run").first.click()
    link = opened.value.get_by_role("link", name="Prefect run").first
    link.wait_for()
    assert link.get_attribute("href") == f"{campaign.prefect}/runs/flow-run/{campaign.flow_run}"
    with browser.page.expect_popup() as opened:
        browser.page.get_by_role("link", name=re.compile("^k0000[12]$")).first.click()
    opened.value.get_by_text("Seed.").first.wait_for()
    run = f"{campaign.mlflow}/#/experiments/{campaign.experiment}/runs/{campaign.summary['mlflow']['run']}"
    browser.open(f"{run}/artifacts/report.html", "report.html")
    browser.page.frame_locator("iframe").get_by_text("Family tree").first.wait_for()


def test_the_flow_run_in_prefect(campaign: Served, browser: Browser) -> None:
    address = f"{campaign.prefect}/runs/flow-run/{campaign.flow_run}"
    browser.open(address, "Completed", "k00001 from seed")
    artifacts = f"{campaign.prefect}/artifacts/key"
    browser.open(f"{artifacts}/leaderboard-identity-cpu", campaign.summary["campaign"])
    browser.open(f"{artifacts}/report-identity-cpu", "the campaign's page")
