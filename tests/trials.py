"""Recorded kernels for tests."""

import re

from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup, Timing, Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.tracking.campaign_run import CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT

REFERENCE_US = 100.0
"""The reference's time in every run."""


def speedup(against: str, ratio: float, time_us: float, interval: tuple[float, float]) -> Speedup:
    times = PairedTime(time_us=time_us, against_us=time_us * ratio, interval=interval)
    return Speedup(against=against, ratio=ratio, interval=interval, cases={"c": times})


def trial(
    name: str,
    ratio: float | None,
    over: dict[str, tuple[float, float]] | None = None,
    base: str | None = None,
) -> Trial:
    """A kernel with this speedup over the reference; `over` gives the intervals over other kernels."""
    kernel = Kernel(name=name, language="cpp", source=f"# {name}", base=base, reference=base)
    if ratio is None:
        return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.INCORRECT, reason="wrong"))
    us = REFERENCE_US / ratio
    speedups = [speedup(REFERENCE, ratio, us, (ratio * 0.9, ratio * 1.1))]
    speedups += [speedup(k, (a + b) / 2, us, (a, b)) for k, (a, b) in (over or {}).items()]
    timing = Timing(case="c", time_us=us, interval_us=(0.9 * us, 1.1 * us))
    return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.OK, timings=(timing,), speedups=tuple(speedups)))


def undescribed(store: MlflowStore, campaign: CampaignRun) -> set[str]:
    """What a campaign's runs hold that docs/reference/mlflow.md does not describe, apart from MLflow's own tags."""
    found = set[str]()
    kernels = store.run_ids(campaign, store.read_population(campaign)[1]).values()
    for run_id, kind in ((campaign.run_id, "campaign"), *((run_id, "kernel") for run_id in kernels)):
        data = store.client.get_run(run_id).data
        held = {"tags": data.tags, "params": data.params, "metrics": data.metrics, "artifacts": _files(store, run_id)}
        for group, names in held.items():
            described = _described(kind, group)
            found |= {f"{group}: {n}" for n in names if not n.startswith("mlflow.") and not described.fullmatch(n)}
    return found


def _described(kind: str, group: str) -> re.Pattern[str]:
    """What matches the names in a table of docs/reference/mlflow.md; `{...}` in a name stands for any text."""
    page = (ROOT / "docs" / "reference" / "mlflow.md").read_text()
    table = page.partition(f"## A {kind}'s run: {group}\n")[2].partition("\n## ")[0]
    names = re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)
    assert names, f"the page describes no {group} of a {kind}'s run"
    return re.compile("|".join(re.sub(r"\\\{.*?\\\}", ".*", re.escape(name)) for name in names))


def _files(store: MlflowStore, run_id: str, folder: str | None = None) -> list[str]:
    listed = store.client.list_artifacts(run_id, folder)
    return [name for f in listed for name in (_files(store, run_id, f.path) if f.is_dir else [f.path])]
