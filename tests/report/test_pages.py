"""The pages that people open, in a real Chromium: they load, complain about nothing, and show what decides."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import SMALL, Browser, Served, chromium, served
from tests.conftest import new_lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="needs Chromium: apt-get install chromium"),
    pytest.mark.alone,  # a campaign that is timed waits for the device when others are
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    pytest.importorskip("playwright")
    with served(new_lab(tmp_path_factory.mktemp("pages") / "lab"), *SMALL) as found:
        yield found


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = Browser(playwright, **getattr(request, "param", {}))
        yield opened
        opened.close()
        assert not opened.errors


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
