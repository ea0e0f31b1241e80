"""Links from Prefect's artifacts follow the place of MLflow's pages, on a real Prefect server."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.records import environment
from kernel_scientist.tracking import page_links, pages

OLD, NEW = "http://127.0.0.1:5000", "http://127.0.0.1:5051"


def asked(address: str, body: dict[str, Any] | None = None) -> Any:
    data, header = json.dumps(body).encode() if body else None, {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, data, header), timeout=60) as answer:
        return json.load(answer)


def test_artifacts_lead_to_the_port_that_is_served(prefect_api: str) -> None:
    run, table = pages.run("7", "a-run", OLD), pages.runs_table("7", OLD)
    report = f"[report]({run}/artifacts/report.html)"
    made = {
        "progress-page-links": {"type": "progress", "data": 40.0, "description": f"[a]({run}), [kernels]({table})"},
        "report-page-links": {
            "type": "markdown",
            "data": report,
            "description": "a page",
        },
        "leaderboard-page-links": {
            "type": "table",
            "data": "[]",
            "description": "[a](http://team:5000/#/experiments/7)",
        },
    }
    ids = {key: asked(f"{prefect_api}/artifacts/", {"key": key, **one})["id"] for key, one in made.items()}
    page_links.follow(prefect_api, NEW)
    for key, one in made.items():
        found = asked(f"{prefect_api}/artifacts/{ids[key]}")
        wanted = {name: v.replace(OLD, NEW) if isinstance(v, str) else v for name, v in one.items()}
        assert {name: found[name] for name in one} == wanted


def test_new_links_lead_where_the_pages_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(tmp_path))
    monkeypatch.delenv("KERNEL_SCIENTIST_MLFLOW_PAGES", raising=False)
    store, team = "sqlite:////lab/mlruns/mlflow.db", "http://mlflow:5000/"
    assert pages.server(store) == OLD and pages.server(team) == "http://mlflow:5000"
    environment.serve_mlflow_pages(store, NEW)
    assert pages.server(store) == NEW and pages.server("sqlite:////other.db") == OLD
    monkeypatch.setenv("KERNEL_SCIENTIST_MLFLOW_PAGES", "https://lab.example/mlflow/")
    assert pages.server(store) == pages.server(team) == "https://lab.example/mlflow"
