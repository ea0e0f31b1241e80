"""Files as they lie in packages, without a custom_kernel: the real compiler, in its confined process."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import kernel_scientist as ks
from kernel_scientist.campaign import compiling
from kernel_scientist.gpu.capture import entries, file_inspection, limits
from kernel_scientist.gpu.capture.files import guesses
from kernel_scientist.gpu.capture.files.missing import Missing, reason
from kernel_scientist.gpu.capture.large_tensors import SkipsLarge
from kernel_scientist.hardware import gpus
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.report import compilation
from tests.conftest import ROOT

FILES = ROOT / "tests/gpu/capture/submissions/files"


def compiled(name: str, gpu: str = "mi300x", entry: str | None = None, inputs: str | None = None) -> dict[str, Any]:
    return of(FILES / name, gpu, entry=entry, inputs=inputs)


def of(file: Path, gpu: str = "mi300x", **more: Any) -> dict[str, Any]:
    """Compile a file; return what `compile --json` prints."""
    params = Params(problem=more.pop("problem", Params().problem))
    return compiling.compiled(file, gpus.named(gpu), None, params, **more).model_dump(mode="json")


def names(report: dict[str, Any]) -> set[str]:
    return {launch["kernel"] for launch in report["launches"]}


def test_a_script_is_imported_and_its_launches_are_seen() -> None:
    found = compiled("script.py")
    assert found["ok"], found
    launches = {launch["kernel"]: launch for launch in found["launches"]}
    assert launches["scaled"]["grid"] in ([64, 1, 1], [128, 1, 1], (64, 1, 1), (128, 1, 1))
    assert launches["scaled"]["autotuned"] == 2
    assert launches["persistent"]["grid"][0] % 304 == 0, "it asked for the number of units and of registers"
    assert [line for line in found["missed"] if "assertion fails" in line and "script.py, line 39" in line]


def test_compile_is_a_function_that_returns_a_record() -> None:
    found = ks.compile(FILES / "two.py", entry="fill", inputs="x:fp16[4096],block:int=512")
    (launch,) = found.launches
    assert found.ok and found.arch == "gfx942" and launch.grid == (8, 1, 1) and launch.vgpr > 0
    assert type(found).model_validate_json(found.model_dump_json()) == found, "its JSON is what `compile --json` prints"


def test_a_file_of_a_package_that_cannot_be_imported() -> None:
    found = compiled("checkout/lattice/ops/norm.py")
    assert found["ok"] and names(found) == {"norm_kernel"}, found
    (told,) = [line for line in found["missed"] if "by itself" in line]
    assert "RSTD -> float32" in told and "eps 1e-06" in told


def test_an_entry_of_a_package_s_file_is_called() -> None:
    inputs = "x:bf16[512,1000],w:bf16[1000],eps:float=1e-5"
    found = compiled("checkout/lattice/ops/norm.py", entry="normed", inputs=inputs)
    (launch,) = found["launches"]
    assert tuple(launch["grid"]) == (512, 1, 1) and launch["constants"]["BLOCK"] == "1024"
    assert launch["constants"]["HAS_WEIGHT"] == "True" and launch["num_warps"] == 2, "gfx942 says that it is 9.4"


def test_the_options_of_a_file_s_own_launches_are_taken() -> None:
    found = compiled("wide_workgroup.py")
    assert [one["num_warps"] for one in found["launches"]] == [32]
    assert [line for line in found["findings"] if "2048 threads, gfx942 allows 1024" in line]


def test_what_the_file_s_heuristics_and_configurations_give_is_told() -> None:
    found = compiled("derived.py")
    told = {line.split()[2]: line.partition("by itself: ")[2] for line in found["missed"]}
    assert "by the file's heuristics BLOCK 2048; configuration 1 of 2: ROWS 4, num_warps 2" in told["outside"], told
    assert "by the file's heuristics HALF 512" in told["chained"] and "QUARTER 256" in told["chained"]
    assert "heuristics" not in told["hooked"] and "configuration 1 of 2: BLOCK 256" in told["hooked"]
    (finding,) = [line for line in found["findings"] if line.startswith("hooked")]
    assert finding.startswith("hooked (BLOCK 256, num_warps 4): "), finding


def test_an_autotuned_kernel_by_itself_has_a_configuration_that_would_run() -> None:
    found = compiled("autotuned_alone.py")
    told = {line.split()[2]: line.partition("by itself: ")[2] for line in found["missed"]}
    assert told["pruned"].endswith("configuration 2 of 2: BLOCK 256, num_warps 2, num_ctas 1, num_stages 3"), told
    assert "configuration 2 of 2: M 32, K 32" in told["large"], told
    assert re.search(r"; configuration 1 needs \d+ B of LDS, there are 65536$", told["large"]), told


def test_gluon_is_named_as_what_it_is() -> None:
    found = compiling.compiled(FILES / "gluon_copy.py", gpus.named("mi300x"), None, Params())
    assert [launch.dialect for launch in found.launches] == ["Gluon"]
    text = [line for line in compilation.lines(found) if isinstance(line, str)]
    assert "copy_kernel (Gluon), 4 warps" in text


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["mi300x", "h100"])
def test_arguments_are_invented_for_each_kernel(gpu: str) -> None:
    found = compiled("alone.py", gpu)
    expected = {"gather", "typed", "optional", "applied", "described", "pointed", "packed"}
    assert found["ok"] and names(found) == expected, found["missed"]
    told = {line.split()[2]: line for line in found["missed"]}
    assert "index_of, lengths -> int32" in told["gather"] and "values, out -> bfloat16" in told["gather"]
    assert "KIND fp32" in told["typed"] and "MODE double" in told["typed"]
    assert "IS_VARLEN False" in told["optional"] and "bias_ptr" in told["optional"].split("->")[0]
    assert "descriptor of 64x32 blocks" in told["described"] and "descriptor of 128x32 blocks" in told["described"]
    assert "places -> int64" in told["pointed"]
    assert "w_ptr -> int32" in told["packed"]
    assert [line for line in found["missed"] if "inner is defined inside of a function" in line]


def test_what_a_kernel_lacks_is_named_with_the_line() -> None:
    found = compiled("lacking.py")
    assert found["ok"] and names(found) == {"whole"}
    (needs,) = [line for line in found["missed"] if "combine" in line]
    assert "lacking.py, line 11: needs needs `a_package_that_nobody_has.ops.combine`" in needs and "line 5" in needs
    (foreign,) = [line for line in found["missed"] if "inline assembly for NVIDIA" in line]
    assert foreign.startswith("no call: lacking.py, line ") and "rcp.approx.f32" in foreign


def test_a_model_is_built_and_called_with_its_own_inputs() -> None:
    found = compiled("model.py")
    (launch,) = found["launches"]
    assert tuple(launch["grid"]) == (1 << 18, 1, 1) and launch["cases"] == ["ModelNew"]
    assert found["missed"] == []


def test_an_entry_that_is_not_clear_is_asked_for() -> None:
    with pytest.raises(SetupError, match="name one by --entry: fill, zero"):
        compiled("two.py", inputs="x:fp16[64]")
    with pytest.raises(SetupError, match="defines no nothing"):
        compiled("two.py", entry="nothing", inputs="x:fp16[64]")
    found = compiled("two.py", entry="fill", inputs="x:fp16[4096],block:int=512")
    (launch,) = found["launches"]
    assert tuple(launch["grid"]) == (8, 1, 1) and launch["constants"]["BLOCK"] == "512"


def test_a_file_without_a_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("def f(x):\n    return x\n")
    found = of(tmp_path / "plain.py")
    assert not found["ok"] and "nothing of plain.py compiles" in found["reason"]
    assert found["tried"] == [compiling.NO_KERNEL]


def test_the_text_of_inputs_is_read() -> None:
    found = entries.headers(
        "x:fp16[4,8], n:int=4096,flag:bool=true,kind:dtype=bf16,b:none,s:fp32[2,3][1,2],e:float=1e-6"
    )
    assert found["x"] == {"kind": "tensor", "dtype": "float16", "shape": [4, 8], "stride": [8, 1]}
    assert found["s"]["stride"] == [1, 2] and found["kind"] == {"kind": "dtype", "value": "bfloat16"}
    assert [found[name]["value"] for name in ("n", "flag", "b", "e")] == [4096, True, None, 1e-6]


@pytest.mark.parametrize(
    "text", ["x", "x:fp16[4", "x:fp99[4]", "n:int=a", "x:fp16[4]=3", "x:fp16[4],x:int=1", ",", " "]
)
def test_a_wrong_text_of_inputs_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(SetupError, match="--inputs") as caught:
        entries.headers(text)
    assert "\n" not in str(caught.value)


def test_what_a_file_may_import_is_its_package_and_what_lies_beside_it(tmp_path: Path) -> None:
    for name in ("repo/src/pack/__init__.py", "repo/src/pack/deep/kernel.py", "repo/helper.py", "repo/other.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import other\n" if name.endswith("helper.py") else "")
    file = tmp_path / "repo/src/pack/deep/kernel.py"
    place = file_inspection.around(file, "import torch, helper, os\nfrom pack.deep import x")
    assert place.module == "pack.deep.kernel"
    assert place.roots == {"pack": f"{tmp_path}/repo/src/pack", "helper": f"{tmp_path}/repo/helper.py",
                           "other": f"{tmp_path}/repo/other.py"}  # fmt: skip
    assert file_inspection.around(tmp_path / "repo/other.py", "import torch").roots == {}


def test_entries_are_found_by_reading() -> None:
    text = (FILES / "two.py").read_text()
    assert entries.entry(text, "two.py", None, needed=False) is None
    assert entries.entry((FILES / "model.py").read_text(), "model.py", None, needed=True) == "ModelNew"
    assert entries.entry((FILES / "script.py").read_text(), "script.py", None, needed=True) == "scale"


def test_the_last_stride_of_a_tensor_is_one() -> None:
    found = guesses.units(
        ["a", "stride_am", "stride_ak", "stride_bk", "stride_bn", "x_row_stride", "stride_0", "stride_1"]
    )
    assert found == {"stride_ak", "stride_bn", "stride_1"}


def test_large_tensors_take_no_time() -> None:
    with SkipsLarge():
        a = torch.rand(1 << 15, 1 << 15)
        b = (a @ a).softmax(-1)
        c = b[: 1 << 10].t()
        assert (
            b.shape == a.shape
            and c.shape == (1 << 15, 1 << 10)
            and c.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
        )
        assert torch.rand(16).sum() > 0 and (torch.ones(4, 4) @ torch.ones(4, 4))[0, 0] == 4


def test_a_limit_of_cpu_time_ends_a_loop() -> None:
    with (
        pytest.raises(limits.TimeLimitError, match=r"the loop took more than 0.1 s"),
        limits.cpu_seconds(0.1, "the loop"),
    ):
        while True:
            pass


def test_a_missing_name_is_harmless_until_a_kernel_needs_it() -> None:
    lost = Missing("pack.thing", "no such module")

    class Derived(lost):  # pyright: ignore
        pass

    @lost.register(option=1)
    def function() -> int:
        return 1

    assert function() == 1 and not lost and not isinstance(3, lost) and Derived() is not None
    assert (lost | None) is lost and reason(lost.x) == "`pack.thing.x` is missing: no such module" and reason(3) is None


def test_descriptions_of_inputs_are_plain_data() -> None:
    assert json.loads(json.dumps(entries.headers("x:bf16[2]"))) == {
        "x": {"kind": "tensor", "dtype": "bfloat16", "shape": [2], "stride": [1]}
    }


SCRIPT = """
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def added(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


class Tripled(torch.autograd.Function):
    @staticmethod
    @triton.jit
    def kernel(x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, 3 * tl.load(x + at, mask=at < n), mask=at < n)


@torch.library.custom_op("lab_of_tests::twice", mutates_args=(), device_types="cuda")
def twice(x: torch.Tensor) -> torch.Tensor:
    assert x.device == DEVICE and x.get_device() == 0 and not x.is_cpu
    y = torch.empty_like(x)
    doubled[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y


@torch.compile
def shifted(x):
    return x + 1


def tuned(x):
    calls = []
    times = {block: triton.testing.do_bench(lambda: calls.append(block)) for block in (256, 512)}
    assert set(calls) == {256, 512} and max(times.values()) < float("inf")


if torch.cuda.is_available():
    def chosen(x):
        return twice(shifted(x))


torch.cuda.manual_seed(0)
gen = torch.Generator(device="cuda").manual_seed(1)
assert isinstance(gen, torch.Generator) and torch.cuda.mem_get_info()[1] > 1 << 30
assert triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)["max_threads_per_sm"] == 2048
small = torch.randn(4096, device=torch.device("cuda"), generator=gen)
large = torch.randn(4096, 4096, device=DEVICE).requires_grad_(True)
assert large.requires_grad
tuned(small)
twice(small)
"""


def test_a_script_that_asks_for_the_device_in_many_ways(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"\ufeff{SCRIPT}")
    found = of(tmp_path / "script.py")
    assert found["ok"] and names(found) == {"doubled", "added", "kernel"}, found["missed"]
    assert all("by itself" in line for line in found["missed"]), found["missed"]
    launches = {launch["kernel"]: launch for launch in found["launches"]}
    assert launches["doubled"]["grid"] is not None and launches["added"]["grid"] is None
    called = of(tmp_path / "script.py", entry="chosen", inputs="x:fp32[8192]")
    assert any(tuple(launch["grid"] or ()) == (8, 1, 1) for launch in called["launches"]), called["missed"]


def test_relative_imports_need_no_init_file(tmp_path: Path) -> None:
    place = tmp_path / "ops"
    place.mkdir()
    helper = (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef silu(x):\n    return x * tl.sigmoid(x)\n"
    )
    (place / "helpers.py").write_text(helper)
    kernel = SCRIPT.partition("class Tripled")[0].replace("2 * tl.load(x + at, mask=at < n)", "silu(tl.load(x + at))")
    (place / "act.py").write_text(f"from .helpers import silu\n{kernel}")
    found = of(place / "act.py")
    assert found["ok"] and names(found) == {"doubled", "added"}, found["missed"]


def test_a_submission_that_launches_at_import_is_tried_on_problems(tmp_path: Path) -> None:
    kernel = SCRIPT.partition("class Tripled")[0]
    kernel += "\n\ndef custom_kernel(data):\n    x, y = data\n"
    kernel += "    doubled[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)\n    return y\n\n\n"
    kernel += "one = torch.ones(64, device='cuda')\ncustom_kernel((one, one))\n"
    (tmp_path / "sub.py").write_text(kernel)
    found = of(tmp_path / "sub.py", problem="identity")
    assert found["ok"] and found["problem"] == "identity"
