"""Makes the pictures of the documentation: `make screenshots` runs a campaign and writes docs/img/*.png again."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser import SMALL, Browser, Served, chromium, served
from tests.conftest import ROOT, new_lab

CAMPAIGN = (*SMALL, "problem=rmsnorm", "search.generations=2", "search.experiments=3")
FOLDER = ROOT / "docs" / "img"
SETTLE_MS = 4000
"""How long charts may take to be drawn after the page shows its text."""


def take(campaign: Served, folder: Path) -> None:
    """Write the pictures of one campaign's pages."""
    run, first = campaign.summary["mlflow"]["run"], campaign.summary["champion"]
    kernel = _run_of(campaign, first)
    experiment = f"{campaign.mlflow}/#/experiments/{campaign.experiment}"
    flow = f"{campaign.prefect}/runs/flow-run/{campaign.flow_run}"
    report = campaign.report.resolve().as_uri()
    pages = {
        "report": (report, "Champion"),
        "mlflow-runs": (campaign.runs_table, first),
        "mlflow-kernel": (f"{experiment}/runs/{kernel}", "Outcome."),
        "mlflow-report": (f"{experiment}/runs/{run}/artifacts/report.html", "report.html"),
        "mlflow-compare": (_comparison(campaign), "Parallel Coordinates Plot"),
        "prefect-run": (flow, "Completed"),
        "prefect-artifacts": (
            f"{campaign.prefect}/artifacts/key/leaderboard-rmsnorm-cpu",
            campaign.summary["campaign"],
        ),
    }
    with sync_playwright() as playwright:
        browser = Browser(playwright, width=1300, height=850)
        for name, (address, text) in pages.items():
            _take(browser, address, text, folder / f"{name}.png")
        browser.close()
        for name, options in {
            "report-dark": {"scheme": "dark"},
            "report-phone": {"width": 390, "scheme": "dark"},
        }.items():
            browser = Browser(playwright, **{"width": 1300, "height": 850, **options})
            _take(browser, report, "Champion", folder / f"{name}.png")
            browser.close()


def _take(browser: Browser, address: str, text: str, file: Path) -> None:
    browser.open(address, text)
    browser.page.wait_for_timeout(SETTLE_MS)
    browser.page.screenshot(path=file)
    print(f"{file.name:24} {file.stat().st_size // 1024} KiB")


def _run_of(campaign: Served, kernel: str) -> str:
    return _kernels(campaign)[kernel]


def _kernels(campaign: Served) -> dict[str, str]:
    """Return the run ids of the campaign's kernels by name, fastest first."""
    from mlflow import MlflowClient

    client = MlflowClient(campaign.summary["mlflow"]["uri"])
    where, order = "tags.kind = 'kernel'", ["metrics.speedup DESC"]
    runs = client.search_runs([campaign.experiment], filter_string=where, order_by=order)
    return {run.data.tags["kernel"]: run.info.run_id for run in runs}


def _comparison(campaign: Served) -> str:
    runs = ",".join(f'"{run}"' for run in _kernels(campaign).values())
    return f'{campaign.mlflow}/#/compare-runs?runs=[{runs}]&experiments=["{campaign.experiment}"]'


if __name__ == "__main__":
    if chromium() is None:
        sys.exit("screenshots need Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as place, served(new_lab(Path(place) / "lab"), *CAMPAIGN) as found:
        take(found, FOLDER)
