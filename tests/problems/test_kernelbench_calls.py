"""KernelBench's reference is called as its users call it, with the parameters of each call, which stay as they are."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_scientist.problems import kernelbench
from kernel_scientist.problems.problem import Problem

FILE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        {parts}

    def forward(self, x):
        return {output}

rows = 6
size = 8

def get_inputs():
    return [torch.randn(3, rows, size)]

def get_init_inputs():
    return [size]
"""
KINDS = {
    "linear": ("self.a = nn.Linear(size, size)", "self.a(x).relu()"),
    "lists its weights": ("self.a = nn.LSTM(size, size, batch_first=True)", "self.a(x)[0]"),
    "tied weights": ("self.a = nn.Linear(size, size); self.b = nn.Linear(size, size); self.b.weight = self.a.weight",
                     "self.b(self.a(x))"),
    "updates its buffers": ("self.a = nn.BatchNorm1d(6)", "self.a(x)"),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def problem(request: pytest.FixtureRequest, tmp_path: Path) -> Problem:
    parts, output = KINDS[request.param]
    file = tmp_path / "1_Kind.py"
    file.write_text(FILE.format(parts=parts, output=output))
    return kernelbench.load(file)


def by_functional_call(problem: Problem, data: Any) -> torch.Tensor:
    module = problem._module.kernelbench_model  # pyright: ignore[reportPrivateUsage]
    x, parameters, init_inputs = data
    with torch.no_grad():
        clones = {id(tensor): tensor.clone() for tensor in parameters.values()}  # tied weights are one object
        own = {name: clones[id(tensor)] for name, tensor in parameters.items()}
        return torch.func.functional_call(module.Model(*init_inputs), own, (x,))


def test_the_parameters_of_each_call_count_and_stay_as_they_are(problem: Problem) -> None:
    case = problem.profile("full").benchmarks[0]
    calls = [problem.generate(case, seed) for seed in (1, 2, 3)]
    before = [{name: tensor.clone() for name, tensor in data[1].items()} for data in calls]
    outputs = [problem.reference(data) for data in (*calls, *calls)]
    for data, output, again in zip(calls, outputs[:3], outputs[3:], strict=True):
        assert torch.allclose(output, by_functional_call(problem, data), atol=1e-6)
        assert torch.equal(output, again)
        good, message = problem.check(data, problem.golden(data))
        assert good, message
    for data, kept in zip(calls, before, strict=True):
        assert all(torch.equal(data[1][name], tensor) for name, tensor in kept.items())
