"""Find a campaign in the MLflow store by its id alone, whatever its problem, language and target."""

from dataclasses import dataclass
from typing import Any

from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import environment
from kernel_scientist.tracking import access, failures, local_store
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.run_content import CAMPAIGN, KIND, with_tags
from kernel_scientist.tracking.subject import PROBLEM

PACE = 21
"""Latest kernels from whose records the present pace follows."""


@dataclass(frozen=True)
class StoredCampaign:
    """A campaign as the store holds it, as much of it as its status needs."""

    store: MlflowStore
    run: CampaignRun
    state: str
    """MLflow's word: RUNNING, FINISHED, KILLED, FAILED."""
    population: Population
    final: Final | None
    pace: tuple[tuple[int, float], ...]
    """Numbers of kernels, and the campaign's seconds when they were recorded: the latest `PACE`."""


def find(uri: str, campaign: str | None, problem: str = "") -> StoredCampaign | None:
    """Return a campaign, by default the one that was started last (of a problem, if given); None if there is none.

    Raises SetupError when the store cannot be used.
    """
    from mlflow import MlflowClient

    address = environment.tracking_uri(uri)
    access.require_reachable(address)
    file = local_store.database(address)
    wanted = {CAMPAIGN: campaign} if campaign else {PROBLEM: problem}
    where = with_tags({KIND: "campaign"} | {tag: value for tag, value in wanted.items() if value})
    if where is None or (file is not None and not file.exists()):
        return None
    with failures.told(address):
        client: Any = MlflowClient(tracking_uri=address)
        experiments = {one.experiment_id: str(one.name) for one in client.search_experiments()}
        newest = ["attributes.start_time DESC"]
        runs = client.search_runs(list(experiments), filter_string=where, max_results=1, order_by=newest)
    if not runs:
        return None
    store = access.open_store(uri, experiments[runs[0].info.experiment_id])
    run = store.latest(runs[0].data.tags[CAMPAIGN])
    assert run is not None  # it was found a moment ago
    history = store.client.get_metric_history(run.run_id, "elapsed_s")
    pace = sorted((point.step, point.value) for point in history)[-PACE:]
    state = str(store.client.get_run(run.run_id).info.status)
    population = store.population(run)
    return StoredCampaign(store, run, state, population, store.final(run, population), tuple(pace))
