"""Addresses of pages in MLflow's web interface, and the view of a runs table that shows what decides.

MLflow keeps a shared view as a tag of the experiment and opens it by its key in the address (checked with 3.17).
"""

import json

LOCAL = "http://127.0.0.1:5000"
"""Where `kernel-scientist ui` serves a store that is a database."""
VIEW = "kernels"
"""Key of the saved view."""
COLUMNS = ("metrics.`speedup`", "metrics.`geomean_us`", "tags.`verdict`", "params.`experiment`", "params.`base`")
PREDICTED = ("metrics.`predicted_roofline_fraction`", "metrics.`predicted_geomean_us`", *COLUMNS[2:])
"""Columns of an experiment on a model target, where nothing is measured."""


def tags(by_model: bool) -> dict[str, str]:
    """Return the tag of an experiment that is its saved view."""
    columns = PREDICTED if by_model else COLUMNS
    view = {
        "searchFilter": "tags.kind = 'kernel'",
        "orderByKey": columns[0],
        "orderByAsc": False,
        "selectedColumns": ["attributes.`Duration`", *columns],
        "columnOrder": ["attributes.`Run Name`", *columns],
    }
    return {f"mlflow.sharedViewState.{VIEW}": json.dumps(view)}


def server(uri: str) -> str:
    """Return the address of the web interface of a store; for a database where `kernel-scientist ui` would serve it."""
    return uri.rstrip("/") if uri.startswith(("http://", "https://")) else LOCAL


def runs_table(experiment_id: str, address: str = LOCAL) -> str:
    """Return the address of an experiment's kernels: sorted by speedup, with verdict, experiment and base."""
    return f"{address}/#/experiments/{experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={VIEW}"


def run(experiment_id: str, run_id: str, address: str = LOCAL) -> str:
    """Return the address of a run. An empty `address` makes it relative, for texts that MLflow shows."""
    page = f"#/experiments/{experiment_id}/runs/{run_id}"
    return f"{address}/{page}" if address else page
