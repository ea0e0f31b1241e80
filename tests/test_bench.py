"""Our own benchmarks run: their figures say nothing here."""

import os
from pathlib import Path

import pytest

from benchmarks import endpoint, engine, scale


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("services", [True, False])
def test_a_campaign_on_the_scripted_endpoint_is_measured(
    services: bool, prefect_api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PREFECT_HOME", "KERNEL_SCIENTIST_CACHE"):  # the benchmark changes them
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    with endpoint.serving(0.1) as address:
        found = engine.run(engine.settings(address, calls=4), 0.01, 20.0, services, warm_up_s=1.0)
    assert found["kernels"] > 0 and found["kernels_per_hour"] > 0 and found["cpu_s_per_kernel"] > 0


@pytest.mark.slow
def test_a_large_campaign_is_read_back_and_goes_on(tmp_path: Path) -> None:
    found, record = scale.one_size(scale.snapshots.KERNELS + 30, tmp_path)
    assert (
        found["resume_s"] > 0
        and all(cost > 0 for cost in record())
        and set(found["selection_ms"]) >= {"greedy", "tree"}
    )
