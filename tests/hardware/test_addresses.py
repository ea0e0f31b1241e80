"""Targets, and the table of GPUs that they are looked up in."""

from types import SimpleNamespace

import pytest
import torch

from kernel_scientist.hardware import addresses, gpu, gpus
from kernel_scientist.records.errors import SetupError


@pytest.mark.parametrize(
    ("present", "name", "language", "found"),
    [
        ("cpu", "auto", "triton", "cpu"),
        ("cpu", "cpu", "cpp", "cpu"),
        ("rocm", "auto", "cpp", "cpu"),
        ("rocm", "auto", "triton", "rocm"),
        ("rocm", "cpu", "triton", "cpu"),
        ("rocm", "rocm", "hip", "rocm"),
        ("cuda", "auto", "cuda", "cuda"),
        ("cpu", "model:mi300x", "hip", "model-mi300x"),
        ("cpu", "model:MI355X", "triton", "model-mi355x"),
    ],
)
def test_a_target_is_found(present: str, name: str, language: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_present", lambda: present)
    monkeypatch.setattr(gpu, "lock", lambda platform: f"{platform}-lock")
    target = addresses.resolve(name, language)
    on_gpu = found in ("cuda", "rocm")
    assert (target.name, target.device) == (found, "cuda" if on_gpu else "cpu")
    is_model = found.startswith("model")
    assert target.lock == (f"{found}-lock" if on_gpu else "" if is_model else "cpu")
    assert (target.gpu is not None) == is_model == target.by_model


@pytest.mark.parametrize(
    ("present", "name", "language", "words"),
    [
        ("cpu", "auto", "hip", "only inspected here: they need target=rocm; use target=model:mi300x"),
        ("cpu", "cpu", "cuda", "only inspected here: they need target=cuda; use `kernel-scientist compile`"),
        ("cuda", "auto", "hip", "hip kernels run only on target=rocm"),
        ("cuda", "rocm", "triton", "finds no such GPU here"),
        ("cpu", "cuda", "cpp", "finds no such GPU here"),
        ("cuda", "cuda", "cpp", "cpp kernels run only on target=cpu"),
        ("cpu", "model:mi300x", "cpp", "predicts GPU kernels"),
        ("cpu", "model:h100", "hip", "HIP kernels are compiled for AMD's GPUs"),
        (
            "cpu",
            "model:H100",
            "triton",
            "only code for AMD's GPUs is executed without the GPU",
        ),
        ("cpu", "model:tpu", "triton", "unknown machine 'tpu'; known: mi300x"),
    ],
)
def test_an_impossible_target_is_one_sentence(
    present: str, name: str, language: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_present", lambda: present)
    with pytest.raises(SetupError, match=words):
        addresses.resolve(name, language)


@pytest.mark.parametrize(
    ("name", "disturbed", "confirms", "compares"),
    [
        ("cpu", True, True, True),
        ("cuda", False, True, True),
        ("model:mi300x", False, True, True),
        ("kernelbot", False, False, False),
        ("pool:night", False, False, False),
    ],
)
def test_what_a_target_allows_follows_from_where_it_times_kernels(
    name: str, disturbed: bool, confirms: bool, compares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_present", lambda: "cuda")
    monkeypatch.setattr(gpu, "lock", lambda platform: f"{platform}-lock")
    target = addresses.resolve(name, "triton")
    assert (target.builds_disturb, target.confirms_here, not target.why_not_paired) == (disturbed, confirms, compares)


def test_a_gpu_is_chosen_by_name_or_architecture() -> None:
    assert gpus.chosen("", "gfx942") is gpus.MI300X and gpus.chosen("H200", "sm_90") is gpus.named("h200")
    with pytest.raises(SetupError, match="H100 is sm_90, not gfx942: name one of the two"):
        gpus.chosen("h100", "gfx942")
    with pytest.raises(SetupError, match="unknown architecture 'gfx90a'; known: gfx942, gfx950, sm_90"):
        gpus.chosen("", "gfx90a")


def test_a_drivers_name_is_looked_up_by_whole_words() -> None:
    assert gpus.detected("NVIDIA H100 80GB HBM3") is gpus.named("h100")
    assert gpus.detected("AMD Instinct MI300X OAM") is gpus.MI300X
    assert gpus.detected("NVIDIA H100 PCIe") is gpus.detected("NVIDIA GeForce RTX 4090") is None


@pytest.mark.parametrize(
    ("units", "name"), [(304, "AMD Instinct MI300X"), (38, "AMD Instinct MI300X, partition of 38 units")]
)
def test_a_partition_is_not_taken_for_the_whole_gpu(units: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "AMD Instinct MI300X")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(multi_processor_count=units))
    assert gpus.name_of("cuda") == name
    assert gpus.of_device("cuda") is (gpus.MI300X if units == 304 else None)
