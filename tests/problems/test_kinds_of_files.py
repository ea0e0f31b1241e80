"""What KernelBench's files contain beyond the simplest: found by loading real ones, written here in the same format."""

from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.problems import admission
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.kernel import Case

MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self, {arguments}):
        super().__init__()
        {build}

    def forward(self, x):
        return {call}


{sizes}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{arguments}]
"""
CONVOLUTION = {
    "arguments": "in_channels, out_channels, groups",
    "build": "self.conv, self.norm = torch.nn.Conv2d(in_channels, out_channels, 3), "
    "torch.nn.GroupNorm(groups, out_channels)",
    "call": "self.norm(self.conv(x))",
    "sizes": "batch_size = 128\nin_channels, out_channels, groups = 16, 64, 16\nheight = width = 128",
    "inputs": "torch.rand(batch_size, in_channels, height, width)",
}
SCALE = {
    "arguments": "scale, limits",
    "build": "self.scale, self.limits = torch.nn.Parameter(torch.tensor(scale)), limits",
    "call": "torch.clamp(x * self.scale, *self.limits)",
    "sizes": "rows, columns = 4096, 4096\nscale = 1.0\nlimits = [-1.0, 16.0]",
    "inputs": "torch.randn(rows, columns)",
}
LAYERS = {
    "arguments": "width, hidden",
    "build": "sizes = [width, *hidden]; self.layers = torch.nn.Sequential("
    "*(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])))",
    "call": "self.layers(x)",
    "sizes": "batch_size, width = 128, 16384\nhidden = [32768, 16384]",
    "inputs": "torch.rand(batch_size, width)",
}
FLATTENED = {
    "arguments": "channels, width",
    "build": "self.conv, self.norm = torch.nn.Conv2d(channels, channels, 3, padding=1), torch.nn.LayerNorm(2 * width)",
    "call": "self.norm(self.conv(x).reshape(x.shape[0], -1, 2 * x.shape[3]))",
    "sizes": "batch_size, channels, width = 64, 64, 128",
    "inputs": "torch.rand(batch_size, channels, 2 * channels // channels, width)",
}
IRREGULAR = {
    "arguments": "",
    "build": "pass",
    "call": "x @ x.T",
    "sizes": "M = 8205\nK = 5921\nunused = 100",
    "inputs": "torch.rand(M, K)",
}
STATEFUL = {
    "arguments": "width",
    "build": "self.state = torch.ones(batch_size, width)",
    "call": "torch.tanh(x + self.state)",
    "sizes": "batch_size = 48\nwidth = 65536",
    "inputs": "torch.randn(batch_size, width)",
}

GROUPED = {
    "arguments": "in_channels, out_channels",
    "build": "self.conv, self.norm = torch.nn.Conv2d(in_channels, out_channels, 3), "
    "torch.nn.GroupNorm(4, out_channels)",
    "call": "self.norm(self.conv(x)).mean(dim=[2, 3])",
    "sizes": "batch_size, in_channels, out_channels = 128, 3, 16\nheight = width = 64",
    "inputs": "torch.rand(batch_size, in_channels, height, width)",
}


def loaded(folder: Path, parts: dict[str, str]) -> Problem:
    file = folder / "1_Model.py"
    file.write_text(MODEL.format(**parts))
    assert admission.fault(file) == ""
    return problems.load(file)


def cases(problem: Problem) -> list[Case]:
    cpu = problem.profile("cpu")
    return [*cpu.tests, *cpu.benchmarks]


def test_sizes_keep_their_ratios(tmp_path: Path) -> None:
    problem = loaded(tmp_path, CONVOLUTION)
    for case in cases(problem):
        assert case.whole("out_channels") == 4 * case.whole("groups") and "width" not in case.sizes
        x = problem.generate(case)[0]
        assert x.shape[2] == x.shape[3] == case.whole("height") < 128
    assert problem.profile("cpu").held_out


def test_sizes_at_which_the_output_depends_on_the_inputs_are_preferred(tmp_path: Path) -> None:
    problem = loaded(tmp_path, GROUPED)  # the mean of a group of one channel is always the bias
    for case in cases(problem):
        assert case.whole("out_channels") > 4


def test_numbers_with_a_point_are_no_sizes(tmp_path: Path) -> None:
    problem = loaded(tmp_path, SCALE)
    for case in cases(problem):
        assert set(case.sizes) == {"rows", "columns"}
        *_, parameters, arguments = problem.generate(case)
        assert arguments == [1.0, [-1.0, 16.0]] and parameters["scale"].is_floating_point()


def test_lists_are_sizes_and_stay_lists(tmp_path: Path) -> None:
    problem = loaded(tmp_path, LAYERS)
    for case in cases(problem):
        assert problem.generate(case)[-1][1] == case.sizes["hidden"]
        assert problem.work(case).bytes < 64 << 20


def test_large_odd_sizes_become_smaller_and_stay_odd(tmp_path: Path) -> None:
    problem = loaded(tmp_path, IRREGULAR)
    for case in [*cases(problem), *problem.profile("cpu").held_out]:
        assert case.whole("M") % 2 and case.whole("M") < 8205
    assert problem.profile("cpu").held_out  # another size than the one that has no effect


def test_a_size_that_the_model_reads_keeps_its_value(tmp_path: Path) -> None:
    problem = loaded(tmp_path, STATEFUL)  # a kernel's file has a copy of the value
    for case in cases(problem):
        assert set(case.sizes) == {"width"} and problem.generate(case)[0].shape == (48, case.whole("width"))


@pytest.mark.parametrize(
    "sizes", ["batch_size, channels, width = 64, 64, 128", "batch_size = 64\nchannels = 64\nwidth = 128"]
)
def test_the_forms_of_an_assignment_give_the_same_sizes(sizes: str, tmp_path: Path) -> None:
    problem = loaded(tmp_path, FLATTENED | {"sizes": sizes})
    assert set(cases(problem)[0].sizes) == {"batch_size", "channels", "width"}
