"""What compiles and times a kernel is part of the key under which its results are kept."""

import dataclasses

import pytest

from kernel_scientist.campaign import evaluation_context
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import addresses
from kernel_scientist.problems import find
from kernel_scientist.records.kernel import Kernel
from kernel_scientist.records.params import Params


def test_results_of_another_compiler_are_not_taken_for_a_modelled_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = hip.find()
    if isinstance(tools, str):
        pytest.skip(tools)
    params = Params(problem="softmax", language="hip", target="model:mi300x")
    address = addresses.of(params)
    kernel = Kernel(name="k", language="hip", source="// nothing")

    def key() -> str:
        return evaluation_context.fingerprint(params, find(params.problem, address.device), address, kernel, "check")

    first = key()
    assert key() == first
    monkeypatch.setattr(hip, "find", lambda: dataclasses.replace(tools, version="clang version 99"))
    assert key() != first
