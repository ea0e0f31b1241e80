"""Access to the MLflow store that the parameters name, and to the campaigns recorded there.

A campaign waits for a store that does not answer; what is waited for, since when and until when is said.
"""

import contextlib
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kernel_scientist import problems
from kernel_scientist.hardware import addresses
from kernel_scientist.population.final import Final
from kernel_scientist.population.lineage import Population
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.params import Params
from kernel_scientist.records.patience import WAIT_S, Patience
from kernel_scientist.records.results import BarResult
from kernel_scientist.records.suite_result import SuiteResult
from kernel_scientist.tracking import failures, local_store
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from kernel_scientist.tracking.subject import Subject

T = TypeVar("T")
SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "file", "databricks", "databricks-uc", "uc")
"""Beginnings of the addresses that MLflow knows, besides http and https."""
DELAYS_S = (1.0, 2.0, 5.0, 15.0)
"""Delays between two attempts, in seconds; the last one is repeated."""


@dataclass(frozen=True)
class RecordedCampaign:
    """A campaign read back from the MLflow store."""

    store: MlflowStore
    run: CampaignRun
    population: Population
    final: Final | None
    """None: the campaign had no final, because no kernel had a better ratio or time than the incumbent."""
    problem: str
    target: str
    published: tuple[PublishedTime, ...]
    """Times that others published for the problem's cases."""
    bars: tuple[BarResult, ...]
    """What stands beside the champion."""

    def champion(self) -> Trial | None:
        """Return the winner of the final; without a final, the incumbent."""
        return self.population.get(self.final.champion) if self.final else self.population.best()


def read_campaign(params: Params, campaign: str | None) -> RecordedCampaign:
    """Return a campaign, by default the latest. Raises SetupError when there is none."""
    target = addresses.resolve(params.target, params.language)
    problem = problems.find(params.problem, target.device, params.compat)
    uri = environment.tracking_uri(params.tracking.uri)
    file = local_store.database(uri)
    if file is not None and not file.exists():
        raise SetupError(
            f"there is no MLflow store {file} yet, it is not part of a clone: run `kernel-scientist optimize`, or name "
            "another store by MLFLOW_TRACKING_URI"
        )
    store = open_store(params.tracking.uri, params.tracking.experiment or f"{problem.name}-{target.name}")
    subject = Subject(problem.name, params.language, target.name)
    run = store.latest(campaign, subject=subject) or store.latest(campaign, subject=subject.in_any_language)
    if run is None:
        raise SetupError(
            (campaign and store.elsewhere(campaign))
            or f"no campaign {campaign or 'of ' + problem.name} on {target.name} in {store.uri}: run "
            "`kernel-scientist optimize`, or name its problem with --set problem=NAME"
        )
    if not subject.in_any_language.is_of(run):
        raise SetupError(subject.other(run))
    population, bars = store.population(run), store.bars(run)
    final = store.final(run, population)
    return RecordedCampaign(store, run, population, final, problem.name, target.name, problem.published, bars)


def open_store(uri: str, experiment: str) -> MlflowStore:
    """Open an experiment of a store, by default (an empty `uri`) of the one in `mlruns/`."""
    address = environment.tracking_uri(uri)
    require_reachable(address)
    store = MlflowStore(address, experiment)
    with contextlib.suppress(SetupError):  # a store that is read-only is left as it is
        local_store.require_writable(address)
        store.close_dead()
    return store


def suite_store(params: Params) -> MlflowStore:
    """Open the MLflow experiment `suites`."""
    return open_store(params.tracking.uri, "suites")


def log_suite(params: Params, result: SuiteResult) -> str:
    """Write the result of a suite as a run of the MLflow experiment `suites`; return the run's id."""
    store = suite_store(params)
    run = store.client.create_run(store.experiment_id, run_name=result.suite, tags={"suite": result.suite})
    shares = {f"fast_{p}": value for p, value in result.over_eager.fast_p.items()}
    shares |= {f"fast_{p}_over_torch_compile": value for p, value in result.over_compiled.fast_p.items()}
    figures = {"problems": result.problems, "refused": result.refused, "usd": result.usd, **shares}
    for name, value in figures.items():
        store.client.log_metric(run.info.run_id, name, float(value))
    store.client.log_dict(run.info.run_id, result.model_dump(mode="json"), "suite.json")
    store.client.set_terminated(run.info.run_id)
    return str(run.info.run_id)


def insist(act: Callable[[], T], store: str, stopped: threading.Event, wait_s: float = WAIT_S) -> T:
    """Return what `act` returns, which may be called again; wait while the store at an address does not answer.

    Raises as `Patience.insist`.
    """

    def reason(error: Exception) -> str | None:
        return failures.reason(error, store) if failures.may_pass(error) else None

    what, again = f"the MLflow store {store}", "the MLflow store answers again"
    return Patience(what, again, f"{what} did not take records", reason, DELAYS_S, wait_s).insist(act, stopped)


def require_usable(uri: str) -> None:
    """Check quickly that a store can be written to. Raises SetupError with the reason."""
    require_reachable(uri)
    local_store.require_writable(uri)


def require_reachable(uri: str) -> None:
    """Check quickly that a store's server answers. Raises SetupError with the reason."""
    if uri.startswith(("http://", "https://")):
        if reason := no_answer(f"{uri.rstrip('/')}/health"):
            raise SetupError(
                f"no MLflow server answers at {uri} ({reason}); start one, or unset MLFLOW_TRACKING_URI and "
                "tracking.uri to use mlruns/"
            )
    elif uri.partition("://")[0].partition("+")[0] not in SCHEMES or "://" not in uri:
        raise SetupError(
            f"MLflow store {uri!r}: expected sqlite:///PATH, a database (postgresql, mysql, mssql) or an http address; "
            "correct MLFLOW_TRACKING_URI or tracking.uri"
        )


def no_answer(address: str) -> str | None:
    """Return why no web server answers at an address; None if one does, whatever its status code."""
    try:
        with urllib.request.urlopen(address, timeout=5):
            return None
    except urllib.error.HTTPError:
        return None
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
