"""Our own benches run: their figures say nothing here."""

from pathlib import Path

import pytest

from benchmarks import overhead


def test_the_laboratorys_own_cost_is_measured_in_a_real_campaign(
    tmp_path: Path, prefect_api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    found = overhead.per_kernel(tmp_path, 3)
    assert found["kernels"] > 3 and set(found) == {
        "kernels",
        "per_kernel_mlflow_s",
        "per_kernel_prefect_s",
        "per_kernel_together_s",
        "per_kernel_playbook_s",
    }
    assert (tmp_path / "mlruns" / "mlflow.db").is_file()
