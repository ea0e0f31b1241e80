"""The GPU of this host among several: what is read from nvidia-smi, and what workers are shown."""

from pathlib import Path

import pytest
import torch

from kernel_scientist.hardware import gpu

NVIDIA_SMI = """#!/bin/sh
case "$1" in
*compute_mode*) echo "GPU-aa, Exclusive_Process"; echo "GPU-bb, Default" ;;
*) echo "GPU-aa, A, 1.0, 210 MHz, 1 MHz, 30, 70 W"; echo "GPU-bb, B, 1.0, 1980 MHz, 2 MHz, 40, 90 W" ;;
esac
"""


class Properties:
    uuid = "bb"


@pytest.mark.parametrize(
    ("here", "shown"),
    [
        ({}, {"CUDA_VISIBLE_DEVICES": "0"}),
        ({"CUDA_VISIBLE_DEVICES": "3,1"}, {"CUDA_VISIBLE_DEVICES": "3"}),
        ({"HIP_VISIBLE_DEVICES": "2"}, {"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "2"}),
        ({"CUDA_VISIBLE_DEVICES": "GPU-aa,1", "PATH": "x"}, {"CUDA_VISIBLE_DEVICES": "GPU-aa"}),
        ({"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_VISIBLE_DEVICES": ""}),
    ],
)
def test_workers_are_shown_the_gpu_that_is_locked(here: dict[str, str], shown: dict[str, str]) -> None:
    """ROCm prefers HIP's variable: if it were set here, a choice by CUDA's would be ignored."""
    assert gpu.only_first(here) == shown


def test_the_state_is_that_of_the_gpu_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text(NVIDIA_SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Properties)
    assert gpu.state()["gpu"] == "B" and gpu.state()["clock_sm"] == "1980 MHz"
    assert gpu.exclusive() == "" and gpu.lock("cuda") == "gpu-bb"
    monkeypatch.setattr(Properties, "uuid", "aa")
    assert gpu.exclusive() == "Exclusive_Process"
