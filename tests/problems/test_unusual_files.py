"""Files of problems that are unusual or wrong: the first are served, the others refused with one sentence."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_scientist import problems
from kernel_scientist.campaign.describing import listed
from kernel_scientist.problems import admission, frozen
from kernel_scientist.records.errors import SetupError

LEVEL = Path(__file__).parent / "kernelbench/level1"
FILE = """
import sys
import torch

{sizes}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {build}

    def forward(self, x):
        return {call}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
PLAIN = {
    "sizes": "rows, width = 64, 128",
    "build": "pass",
    "call": "torch.tanh(x)",
    "inputs": "torch.randn(rows, width)",
}
SERVED: dict[str, dict[str, str]] = {
    "a plain attribute that is a tensor": {"build": "self.m = torch.rand(width)", "call": "x * self.m"},
    "a buffer that no state has": {
        "build": "self.register_buffer('scale', torch.full((width,), 3.0), persistent=False)",
        "call": "x * self.scale",
    },
    "a name that cases have, too": {"sizes": "seed = 42\nrows, width = 64, 128"},
    "a size computed from another, which the model reads": {
        "sizes": "rows, width = 64, 128\nfeatures = 2 * width",
        "call": "x * torch.arange(1, features + 1)",
        "inputs": "torch.randn(rows, features)",
    },
    "inputs in a list": {
        "call": "x[0] + torch.sin(x[1])",
        "inputs": "[torch.randn(rows, width), torch.randn(rows, width)]",
    },
    "a dict as output": {"call": "{'sine': torch.sin(x), 'sum': x.sum(1)}"},
    "a tensor of one element beside another as output": {"call": "(torch.sin(x), (x * x).mean())"},
}


def written(folder: Path, **parts: str) -> Path:
    file = folder / "1_File.py"
    file.write_text(FILE.format(**{**PLAIN, **parts}))
    return file


@pytest.mark.parametrize("what", SERVED)
@pytest.mark.parametrize("compat", ["intended", "official"])
def test_files_that_are_unusual_are_admissible(what: str, compat: str, tmp_path: Path) -> None:
    assert admission.fault(written(tmp_path, **SERVED[what]), compat) == ""


@pytest.mark.parametrize("name", ["1_Linear_with_bias", "3_Norm_in_training"])
def test_the_official_parameters_are_the_same_in_double_precision(name: str) -> None:
    assert admission.fault(LEVEL / f"{name}.py", "official") == ""


def test_nested_inputs_have_the_precision(tmp_path: Path) -> None:
    problem = problems.find(f"{written(tmp_path, **SERVED['inputs in a list'])}@bf16")
    (first, second), *_ = problem.generate(problem.profile("cpu").tests[0])
    assert first.dtype == second.dtype == torch.bfloat16


def test_tied_weights_stay_tied(tmp_path: Path) -> None:
    build = "self.one, self.other = torch.nn.Linear(width, width), torch.nn.Linear(width, width); "
    build += "self.other.weight = self.one.weight"
    file = written(tmp_path, build=build, call="self.other(torch.tanh(self.one(x)))")
    problem = problems.load(file)
    _, parameters, _ = problem.generate(problem.profile("cpu").tests[0])
    assert torch.equal(parameters["one.weight"], parameters["other.weight"])
    assert admission.fault(file) == ""


def test_sizes_are_whole_numbers_however_they_are_written(tmp_path: Path) -> None:
    sizes = "rows: int = 2 ** 8\nwidth = 1 << 9\nheight = 16\nheight = height * 4"
    problem = problems.load(written(tmp_path, sizes=sizes, inputs="torch.randn(rows, width, height)"))
    full = problem.profile("full").benchmarks[0]
    assert full.sizes == {"rows": 256, "width": 512}
    assert problem.generate(full)[0].shape == (256, 512, 64)
    small = problem.profile("cpu").tests[0]
    assert problem.generate(small)[0].shape == (small.sizes["rows"], small.sizes["width"], 64)
    assert small.whole("rows") * small.whole("width") < 256 * 512


@pytest.mark.parametrize(
    "sizes", ["height = width = 256", "size = (256, 256)\nheight, width = size", "n = 64\nheight, width = n * 4, n * 4"]
)
def test_sizes_that_the_model_reads_keep_their_value_however_they_are_assigned(sizes: str, tmp_path: Path) -> None:
    rows = "rows = 8192\n"
    file = written(
        tmp_path, sizes=rows + sizes, call="x * torch.arange(1, width + 1)", inputs="torch.randn(rows, width)"
    )
    assert admission.fault(file) == ""
    assert problems.load(file).profile("cpu").tests[0].whole("rows") < 8192


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"sizes": "rows, width = 64, 128\ndef twice(a, a):\n    return a"}, "duplicate argument"),
        ({"sizes": "sys.exit(3)"}, "SystemExit"),
        ({"sizes": "rows, width = 64, 128\nraise ValueError('one\\ntwo')"}, "one two"),
        ({"inputs": "torch.rand(rows, width, generator=3)"}, "no sizes were found"),
    ],
)
def test_a_wrong_file_is_refused_with_one_line(parts: dict[str, str], words: str, tmp_path: Path) -> None:
    reason = admission.fault(written(tmp_path, **parts))
    assert words in reason and "\n" not in reason


def test_a_function_is_no_model(tmp_path: Path) -> None:
    file = tmp_path / "1_File.py"
    file.write_text("def Model(): ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n")
    with pytest.raises(SetupError, match="defines no Model"):
        problems.load(file)


TASK = "description: a folder\ntests: [{size: 4096, seed: 1}]\nbenchmarks: [{size: 8192, seed: 2}]\n"
REFERENCE = """
import torch


def generate_input(size: int, seed: int):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def ref_kernel(data):
    return OUTPUT


def check_implementation(data, output):
    torch.testing.assert_close(output, ref_kernel(data), rtol=1e-2, atol=1e-2)
    return True, ""
"""


def folder(place: Path, output: str = "torch.cumsum(data, 0)", **files: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    given = {"task.yml": TASK, "reference.py": REFERENCE.replace("OUTPUT", output), **files}
    for name, text in given.items():
        (place / name).write_text(text)
    return place


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("torch.cumsum(data, 0)", ""),  # its check raises AssertionError for a wrong output
        ("data.max()", ""),  # an element of the only input is no copy of it
        ("data * 1.001", "copy"),
    ],
)
def test_an_only_input_is_no_list_of_inputs(output: str, words: str, tmp_path: Path) -> None:
    found = admission.fault(folder(tmp_path / "one", output))
    assert words in found if words else found == ""


def test_controls_run_without_checking_cases(tmp_path: Path) -> None:
    task = TASK.replace("tests: [{size: 4096, seed: 1}]", "")
    blind = REFERENCE.replace("OUTPUT", "torch.cumsum(data, 0)").partition("def check")[0]
    blind += "def check_implementation(data, output):\n    return True, ''\n"
    place = folder(tmp_path / "one", **{"task.yml": task, "reference.py": blind, "lab.yml": "dtype: fp32\n"})
    assert "passes a wrong output" in admission.fault(place)


def test_an_exception_of_a_reference_is_a_reason(tmp_path: Path) -> None:
    place = folder(tmp_path / "one", "data.nothing", **{"lab.yml": "dtype: fp32\n"})
    assert "AttributeError" in admission.fault(place)


@pytest.mark.parametrize(
    "files",
    [
        {"task.yml": "files: [reference.py]\n"},
        {"task.yml": "tests: [5]\n"},
        {"task.yml": "tests: {size: 4}\n"},
        {"task.yml": "tests: [{size: 4, seed: x}]\n"},
        {"task.yml": "tests: [{size: [1.5]}]\n"},
        {"task.yml": "tests: [{size: 4, seed: .inf}]\n"},
        {"lab.yml": "writes: 1\n"},
        {"lab.yml": "profiles: 3\n"},
    ],
)
def test_a_malformed_folder_is_refused_with_one_line(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(tmp_path / "problems/one", **files)
    reason = admission.fault(place)
    assert str(place) in reason and "\n" not in reason
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    assert [row.problem for row in listed()] == ["one"]


def test_a_folder_without_a_reference_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder(tmp_path / "problems/one") / "reference.py").unlink()
    folder(tmp_path / "problems/two")
    monkeypatch.setenv("KERNEL_SCIENTIST_ROOT", str(tmp_path))
    assert [row.problem for row in listed()] == ["one", "two"]
    assert "cannot read" in admission.fault(tmp_path / "problems/one")


def test_sections_of_a_lab_file_may_be_empty(tmp_path: Path) -> None:
    names = ("held_out", "profiles", "work", "writes", "updates", "policy", "stress", "parts", "dtype", "seed_bits")
    files = {"lab.yml": "".join(f"{name}:\n" for name in names), "task.yml": f"{TASK}ranking_by:\n"}
    assert admission.fault(folder(tmp_path / "one", **files)) == ""
    assert problems.load(tmp_path / "one").dtype == "fp32"


def test_a_misspelt_key_of_a_lab_file_is_an_error(tmp_path: Path) -> None:
    """Otherwise the held-out cases would be missing without a word."""
    place = folder(tmp_path / "one", **{"lab.yml": "dtype: fp32\nheld_ot: [{size: 4}]\n"})
    assert "lab.yml: unknown key 'held_ot'; known: dtype, " in admission.fault(place)


def test_a_linked_folder_is_that_which_it_links_to(tmp_path: Path) -> None:
    reference = f"import utils\n{REFERENCE.replace('OUTPUT', 'torch.cumsum(data, 0)')}"
    place = folder(tmp_path / "amd/one", **{"reference.py": reference})
    (tmp_path / "amd/utils.py").write_text("N = 1\n")
    (tmp_path / "one").symlink_to(place)
    assert admission.fault(tmp_path / "one") == ""


def test_paths_with_unusual_characters(tmp_path: Path) -> None:
    place = tmp_path / "me@work/level1"
    place.mkdir(parents=True)
    content = written(tmp_path).rename(tmp_path / "content")
    folder(place / "²_x")
    for name in ("2_With space.py", "3_Dots-2.5.py"):
        (place / name).write_text(content.read_text())
    (place / "1_Linked.py").symlink_to(content)  # as DVC does with cache.type symlink
    names = [p.name for p in problems.below([str(place)])]
    assert names == ["²_x", "1_Linked.py", "2_With space.py", "3_Dots-2.5.py"]
    assert [problems.load(place / name).name for name in names[1:]] == ["1_Linked", "2_With space", "3_Dots-2.5"]
    assert problems.find(f"{place / names[1]}@fp16").name == "1_Linked@fp16"
    with pytest.raises(SetupError, match="nowhere: there is no task folder"):
        problems.below([str(place), "nowhere"])
    with pytest.raises(SetupError, match="unknown problem"):
        problems.find("/")


def test_frozen_cases_of_equal_sizes_have_files_of_their_own(tmp_path: Path) -> None:
    task = TASK.replace("tests: [", "tests: [{size: 4096, seed: 7}, ")
    problem = problems.load(folder(tmp_path / "one", **{"task.yml": task, "lab.yml": "dtype: fp32\n"}))
    assert len(set(frozen.freeze(problem, "full", tmp_path / "cases"))) == 2
    assert frozen.verify(problem, "full", tmp_path / "cases") == 2
    other: Any = torch.load(tmp_path / "cases/size4096-seed7.pt")
    other["inputs"][5] += 1
    torch.save(other, tmp_path / "cases/size4096-seed7.pt")
    with pytest.raises(SetupError, match="generated inputs differ"):
        frozen.verify(problem, "full", tmp_path / "cases")
