"""Recorded kernels for tests."""

from kernel_scientist.records.evaluation import Evaluation, PairedTime, Speedup, Timing, Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, Verdict
from kernel_scientist.tracking import run_schema
from kernel_scientist.tracking.mlflow_store import CampaignRun, MlflowStore

REFERENCE_US = 100.0
"""The reference's time in every run."""


def speedup(against: str, ratio: float, time_us: float, interval: tuple[float, float], margin: float = 0.0) -> Speedup:
    times = PairedTime(time_us=time_us, against_us=time_us * ratio)
    return Speedup(against=against, ratio=ratio, interval=interval, margin=margin, cases={"c": times})


def trial(
    name: str,
    ratio: float | None,
    over: dict[str, tuple[float, float]] | None = None,
    base: str | None = None,
    margin: float = 0.0,
) -> Trial:
    """A kernel with this speedup over the reference; `over` gives the intervals over other kernels."""
    kernel = Kernel(name=name, language="cpp", source=f"# {name}", base=base, reference=base)
    if ratio is None:
        return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.INCORRECT, reason="wrong"))
    us = REFERENCE_US / ratio
    speedups = [speedup(REFERENCE, ratio, us, (ratio * 0.9, ratio * 1.1))]
    speedups += [speedup(k, (a + b) / 2, us, (a, b), margin) for k, (a, b) in (over or {}).items()]
    timing = Timing(case="c", time_us=us, interval_us=(0.9 * us, 1.1 * us))
    return Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.OK, timings=(timing,), speedups=tuple(speedups)))


def undescribed(store: MlflowStore, campaign: CampaignRun) -> set[str]:
    """What a campaign's runs hold that `tracking.run_schema`, and so docs/reference/mlflow.md, does not describe."""
    found = set[str]()
    kernels = store.run_ids(campaign, store.read_population(campaign)[1]).values()
    for run_id, kind in ((campaign.run_id, run_schema.CAMPAIGN), *((run_id, run_schema.KERNEL) for run_id in kernels)):
        data = store.client.get_run(run_id).data
        held = {"tags": data.tags, "params": data.params, "metrics": data.metrics, "artifacts": _files(store, run_id)}
        found |= {
            f"{group}: {name}" for group, names in held.items() for name in run_schema.unknown(kind, group, names)
        }
    return found


def _files(store: MlflowStore, run_id: str, folder: str | None = None) -> list[str]:
    listed = store.client.list_artifacts(run_id, folder)
    return [name for f in listed for name in (_files(store, run_id, f.path) if f.is_dir else [f.path])]
