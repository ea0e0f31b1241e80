"""What compilers may be given: what kernels for speed give, and nothing that starts a program or writes elsewhere."""

import os
from pathlib import Path

import pytest

from kernel_scientist.compilers import build, flags, gxx
from kernel_scientist.compilers.request import BuildRequest, ExtensionRequest

HONEST = (
    *("-O2", "-O", "-Ofast", "-march=native", "-mprefer-vector-width=512", "-mno-avx512f", "-mtune=znver4", "-mfma"),
    *("-march=armv8.2-a+sve", "-ffast-math", "-fno-tree-loop-distribute-patterns", "-funroll-loops", "-fopenmp-simd"),
    *("-falign-loops=64:32", "-ffp-contract=fast", "-fsanitize=address,undefined", "-fopt-info-vec", "-flto=2"),
    *("-std=gnu++23", "--std=c++2b", "--param=max-unroll-times=8", "-DTILE=8", "-DF(x)=(x), y", "-UNDEBUG", "-DNDEBUG"),
    *("-I/usr/include/eigen3", "-isystem/usr/include", "-lm", "-lopenblas", "-lstdc++", "-Wall", "-Wno-unused", "-w"),
    *("-Werror=vla", "-g", "-ggdb3", "-pthread", "-pipe", "-shared", "-fPIC", "-s", "-static-libgcc"),
)
DEVICE = (
    *("--offload-arch=gfx942", "-munsafe-fp-atomics", "-Rpass-analysis=kernel-resource-usage", "-fgpu-rdc", "-mllvm"),
    *("-amdgpu-early-inline-all=true", "-arch=sm_90a", "-gencode=arch=compute_90a,code=sm_90a", "-gencode"),
    *("arch=compute_90a,code=[sm_90a,compute_90a]", "--use_fast_math", "--expt-relaxed-constexpr", "-lineinfo"),
    *(
        "-Xptxas=-v,-O3",
        "-Xptxas",
        "-v",
        "--ptxas-options=-v",
        "-Xcompiler",
        "-fPIC,-O3",
        "-maxrregcount=64",
        "-t",
        "4",
    ),
    *("--ftz=true", "--diag-suppress=177", "-Xptxas=-dlcm=ca", "-lcuda", "-lcublas", "-DX"),
)
HOSTILE = (
    *("-specs=kernel.cpp", "--specs=kernel.cpp", "--specs", "-wrapper", "--wrapper", "-fplugin=x", "-fplugin-arg-x=y"),
    *(
        "-fmodule-mapper=|sh",
        "-fmodules-ts",
        "-B.",
        "--prefix=.",
        "-o",
        "-ox",
        "--output=x",
        "-x",
        "-xc",
        "--language=c",
    ),
    *("@file", "kernel.cpp", "log", "-T", "-Tkernel.cpp", "-Wl,-plugin=x", "-Wa,-x", "-Wp,-MD,x", "-Xlinker"),
    *("-Xassembler", "-Xpreprocessor", "-L.", "-l:x", "-fuse-ld=x", "-fdump-tree-all", "-foffload=x", "-save-temps"),
    *("-dumpdir", "-iplugindir=x", "-imacros", "-include", "-E", "-S", "-c", "-M", "-MD", "-e", "-z", "", "-", "--"),
    *("-no-integrated-cpp", "--sysroot=.", "-nostdinc\n@x", "-fprofile-use=kernel.cpp", "-O3 -wrapper sh"),
)
HOSTILE_FOR_DEVICES = (
    *(
        "-ccbin",
        "-ccbin=x",
        "--compiler-bindir=x",
        "-run",
        "--run",
        "-optf",
        "--options-file=x",
        "-odir",
        "--output-dir=x",
    ),
    *("-keep", "--keep", "-objtemp", "--ld-path=x", "-Xnvlink", "--gcc-toolchain=/x", "--rocm-path=x", "--cuda-path=x"),
    *("-Xclang", "-cc1", "-load", "-fpass-plugin=x", "--config=x", "-ivfsoverlay", "-Xcompiler=-O3,-wrapper,sh"),
    *("-O3,-wrapper", "-Xptxas=-o,x", "-Xcompiler=-specs=x", "-mllvm=-load=x", "--target=x", "-Xarch_device"),
)
SPECS = """#if 0
*link_command:
{command}

*junk:
#endif
extern "C" void none() {{}}
"""


@pytest.mark.parametrize("flag", HONEST)
def test_what_honest_kernels_give_is_given(flag: str) -> None:
    assert flags.forbidden([flag]) is None and flags.forbidden_for_device([flag]) is None


@pytest.mark.parametrize("flag", DEVICE)
def test_what_kernels_for_gpus_give_is_given(flag: str) -> None:
    assert flags.forbidden_for_device([flag]) is None


@pytest.mark.parametrize("flag", [*HOSTILE, *HOSTILE_FOR_DEVICES])
def test_all_else_is_refused_by_name(flag: str) -> None:
    assert flags.forbidden(["-O2", flag]) == flag
    assert flags.forbidden_for_device(["-O2", flag]) == flag


@pytest.mark.parametrize("flag", ["--specs=kernel.cpp", "-specs=kernel.cpp"])
def test_a_source_is_no_file_of_specs(flag: str) -> None:
    """It would be a shell's command in place of the linker."""
    built = gxx.build(BuildRequest(SPECS.format(command="/bin/sh -c echo\\ it\\ ran\\ >&2"), {}, [flag]))
    assert built.path is None and built.report.log == f"flag {flag!r} is not allowed"
    empty: list[str] = []
    wanted = ExtensionRequest("own", [""], empty, None, ["--specs=main.cpp"], empty, empty, empty, False, True, True)
    assert "'--specs=main.cpp' is not allowed" in build.build(wanted, "cpu", 60).report.log


RAN = """
chroot / true && echo chrooted; renice -n 0 -p {pid} && echo reniced; echo ran;
setsid sleep {seconds} >/dev/null 2>&1 & {end}
"""


@pytest.mark.parametrize("end", ["wait", "sleep 0.3"])
def test_what_a_compiler_starts_has_no_rights_and_ends_with_it(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were there a flag that nobody thought of: what it ran would be confined, and outlive neither build nor limit."""
    monkeypatch.setattr(flags, "forbidden", lambda _: None)
    seconds = f"{200000 + os.getpid()}.{len(end)}"
    script = RAN.format(pid=os.getpid(), seconds=seconds, end=end).strip().replace("\n", " ").replace(" ", "\\ ")
    built = gxx.build(BuildRequest(SPECS.format(command=f"/bin/sh -c {script}"), {}, ["--specs=kernel.cpp"]), 3)
    words = built.report.log.splitlines()
    assert built.path is None and "ran" in words and "chrooted" not in words and "reniced" not in words
    assert ("the compiler took longer than 3 s and was stopped" in words) == (end == "wait")
    assert not _running(seconds)


def _running(word: str) -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue  # it has just ended
    return found
