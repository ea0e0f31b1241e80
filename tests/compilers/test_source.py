"""Editing a kernel's file changes what was asked for and nothing else."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compilers.source import KernelSource, SourceError, language_of, read_kernel
from kernel_scientist.records.errors import SetupError
from kernel_scientist.workers.validation import MOST_SOURCE
from tests.conftest import ROOT

BLOCKED = KernelSource((ROOT / "problems/fp8-blockwise-gemm/seeds/cpp_blocked.py").read_text())
SEEDS = sorted((ROOT / "problems").glob("*/seeds/*.py"))


@given(st.sampled_from(sorted(BLOCKED.tunables)), st.integers(-(2**31), 2**31))
def test_setting_a_tunable_changes_one_value_and_no_other_line(name: str, value: int) -> None:
    edited = BLOCKED.with_tunables({name: value})
    assert edited.tunables == {**BLOCKED.tunables, name: value}
    assert edited.choices == BLOCKED.choices and edited.flags == BLOCKED.flags
    changed = [a for a, b in zip(BLOCKED.text.splitlines(), edited.text.splitlines(), strict=True) if a != b]
    assert len(changed) <= 1
    assert edited.with_tunables({name: BLOCKED.tunables[name]}).text == BLOCKED.text


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=12), max_size=4))
def test_flags_are_kept_whatever_they_hold(flags: list[str]) -> None:
    assert BLOCKED.with_flags(flags).flags == flags


@given(st.text(st.characters(whitelist_categories=["L", "N", "P", "Zs"]), max_size=40))
def test_a_site_holds_what_was_put_there(body: str) -> None:
    edited = BLOCKED.with_site("tile-order", body)
    assert edited.site("tile-order") == body + "\n"
    original = BLOCKED.site("tile-order")
    assert original is not None and edited.with_site("tile-order", original).text == BLOCKED.text


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(SourceError, match="no tunable NOPE; declared: VEC"):
        BLOCKED.with_tunables({"NOPE": 1})
    with pytest.raises(SourceError, match="no site 'nope'"):
        BLOCKED.with_site("nope", "")
    with pytest.raises(SourceError, match="no FLAGS"):
        KernelSource("x = 1").with_flags([])
    with pytest.raises(SourceError, match="line 1"):
        KernelSource("def f(:").tunables  # noqa: B018
    assert BLOCKED.site("nope") is None and KernelSource("TUNABLES = f()").tunables == {}


@pytest.mark.parametrize("path", SEEDS, ids=lambda p: f"{p.parts[-3]}-{p.stem}")
def test_seeds_declare_what_they_tune(path: object) -> None:
    text = path.read_text()  # type: ignore[attr-defined]
    source = KernelSource(text)
    assert source.defines("custom_kernel") and not source.defines("something_else")
    assert list(source.tunables) == list(source.choices)
    assert all(value in source.choices[name] for name, value in source.tunables.items())
    assert language_of(text) == path.stem.split("_")[0]  # type: ignore[attr-defined]
    assert source.tunables or path.stem.endswith("naive")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "def f(data): ...",
        "f = g",
        "a = f = g",
        "f: Callable = G()",
        "from g import h as f",
        "if x:\n    def f(data): ...\nelse:\n    f = g",
        "try:\n    from g import f\nexcept ImportError:\n    pass",
        "try:\n    import g\nexcept ImportError:\n    def f(data): ...",
        "with g:\n    for _ in h:\n        f = g",
        "match g:\n    case 1:\n        f = g",
    ],
)
def test_what_a_module_defines_is_found_wherever_it_stands(text: str) -> None:
    assert KernelSource(text).defines("f") and not KernelSource(text).defines("data")


@pytest.mark.parametrize("text", ["f: Callable", "f()", "def g():\n    f = 1", "class G:\n    def f(self): ..."])
def test_what_a_module_does_not_define_is_not_found(text: str) -> None:
    assert not KernelSource(text).defines("f")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("# was @triton.jit\nx = 1", "cpp"),
        ("'''Ported from a kernel with @triton.jit.'''", "cpp"),
        ("def f(x):\n    'as @triton.autotune does'\n    return x", "cpp"),
        ("SOURCE = '''// a block of a __global__ function\nint f();'''", "cpp"),
        ("SOURCE = '''int f(); /* as in\nhip/hip_runtime.h */ int g();'''", "cpp"),
        ("k = load(SOURCE)  # on a GPU: hip/hip_runtime.h, --offload-arch=gfx942", "cpp"),
        ("@triton.jit  # __global__\ndef f(x): ...", "triton"),
        ("SOURCE = '''// a kernel\n__global__ void f();'''", "cuda"),
        ("SOURCE = '''const char *s = \"//\"; __global__ void f();'''", "cuda"),
        ("SOURCE = r'''#include <hip/hip_runtime.h>  // for AMD'''", "hip"),
        ("load(SOURCE, flags=['--offload-arch=gfx942'])", "hip"),
        ("# __global__\ndef f(:", "cuda"),
    ],
)
def test_the_language_is_told_by_code_and_not_by_comments(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["x = " + "-" * 200_000 + "1", "x = " + "1+" * 50_000 + "1"])
def test_what_is_nested_too_deeply_is_said(text: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="too deeply"):
        KernelSource(text).defines("x")
    assert language_of(f"# __global__\n{text}") == "cuda"
    (tmp_path / "k.py").write_text(text)
    with pytest.raises(SetupError, match=r"k\.py.*too deeply"):
        read_kernel(tmp_path / "k.py")


def test_a_file_with_a_zero_byte_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("x = 1\0")
    with pytest.raises(SetupError, match=r"k\.py: it is not text \(it has zero bytes\)"):
        read_kernel(tmp_path / "k.py")


@pytest.mark.timeout(20)
def test_only_a_regular_file_of_bearable_size_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for path in (tmp_path / "pipe.py", tmp_path, Path("/dev/zero")):
        with pytest.raises(SetupError, match="it is no regular file"):
            read_kernel(path)
    file = tmp_path / "k.py"
    head = "def custom_kernel(data): ...\n"
    file.write_text(head + "#" * (MOST_SOURCE - len(head)))
    assert len(read_kernel(file)) == MOST_SOURCE
    with file.open("a") as more:
        more.write("#")
    with pytest.raises(SetupError, match=f"at most {MOST_SOURCE}"):
        read_kernel(file)
