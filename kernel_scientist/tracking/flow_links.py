"""Links from campaigns in MLflow to their Prefect runs. They follow the server that shows those runs.

A campaign without a configured server has one of its own, which ends with it. Its pages are served later, by
`kernel-scientist ui`, at any port.
"""

from collections.abc import Callable, Collection
from typing import Any

from kernel_scientist.tracking import pages

TAG = "prefect_run"
"""Tag of a campaign: the address of its Prefect run."""
NOTE = "mlflow.note.content"
"""Tag of a run: the description on its page."""
MOST = 200
"""Campaigns whose links are followed: the latest."""


def write(client: Any, experiment_id: str, run_id: str, address: str) -> None:
    """Note a campaign's Prefect run, in a tag and in the description of its page."""
    client.set_tag(run_id, TAG, address)
    page = pages.run(experiment_id, run_id, address="")
    client.set_tag(run_id, NOTE, pages.campaign_description(page, address))


def follow(client: Any, server: str, known: Callable[[Collection[str]], Collection[str]]) -> None:
    """Let the latest campaigns' links lead to the Prefect server whose pages are at `server`, if it has their runs.

    `known`: returns which of these flow runs, by id, it has.
    """
    experiments = [one.experiment_id for one in client.search_experiments()]
    newest = ["attributes.start_time DESC"]
    campaigns = client.search_runs(experiments, "tags.kind = 'campaign'", max_results=MOST, order_by=newest)
    addresses = [(run.info, run.data.tags.get(TAG, "")) for run in campaigns]
    astray = [(info, at.rpartition("/")[2]) for info, at in addresses if at and not at.startswith(f"{server}/")]
    here = known([flow_run for _, flow_run in astray]) if astray else ()
    for info, flow_run in astray:
        if flow_run in here:
            write(client, info.experiment_id, info.run_id, f"{server}/runs/flow-run/{flow_run}")
