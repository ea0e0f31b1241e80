"""`report --metrics` states a factor only with its interval, and if that says something."""

from typing import Any, cast

import pytest

from kernel_scientist.campaign.results import of_speedup
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.factors import UNRESOLVED
from kernel_scientist.report import figures
from kernel_scientist.sandbox import device_queue
from kernel_scientist.tracking.access import RecordedCampaign
from kernel_scientist.tracking.campaign_run import CampaignRun
from tests import results
from tests.trials import speedup, trial

RUN = CampaignRun("run", "identity-cpu-20260101-000000-abcd", {}, {}, {}, running=False)


def stated(interval: tuple[float, float] | None) -> dict[str, Any]:
    """The figures of a champion that was confirmed to be twice as fast, with this interval."""
    population = Population()
    population.add(trial("k00001", 2.0))
    store: Any = None
    recorded = RecordedCampaign(store, RUN, population, None, "identity", "cpu", (), ())
    over = of_speedup(speedup("reference", 2.0, 50.0, interval or UNRESOLVED))
    found = figures.of(recorded, results.validation(speedups=(over,)))
    return {key: value for key, value in found.items() if "speedup" in key}


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        ((1.9, 2.1), {"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1}),
        ((0.2, 20.0), {"speedup_low": 0.2, "speedup_high": 20.0}),
        (None, {}),
    ],
)
def test_a_factor_stands_with_its_interval(interval: tuple[float, float] | None, told: dict[str, float]) -> None:
    assert stated(interval) == cast(dict[str, Any], told)


def test_a_turn_is_no_device() -> None:
    shown = [device_queue.shown(name) for name in ("cpu", "gpu-0000:83:00.0", "0123456789abcdef" * 2, "a\nb")]
    assert shown == ["cpu", "gpu-0000:83:00.0", "a turn", "a?b"]
