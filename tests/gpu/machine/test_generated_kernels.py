"""Generated kernels give to the bit what the same text gives on the host, however clang optimises them.

`make soak` runs MANY kernels. GENERATED_FIRST and GENERATED_KERNELS choose others, or one:
`GENERATED_FIRST=4711 GENERATED_KERNELS=1 pytest -m soak tests/gpu/machine/test_generated_kernels.py`; and
`python -m tests.gpu.machine.generated_kernels 4711` prints it.
"""

import os
from pathlib import Path

import pytest

from kernel_scientist.gpu.toolchains import hip
from tests.gpu.machine.generated_kernels import generated
from tests.gpu.machine.generated_runs import LEVELS, assembly, compared, disagreements, on_host

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
FEW, MANY = 20, 10_000
"""Kernels of a usual run and of a long one."""
BATCH = 100
"""Kernels of one file of a long run. Each has 16 arrays, and a checking run tells 2047 of them apart. At -O0 the
assembly of so many has 26 MiB, and 32 may be read."""
ALL_LEVELS = 8
"""A long run compiles each file at -O3, and one of so many at the other levels too: -O0 takes most of the time."""

CLANGS = {8347: "a condition is computed in the register of a sum that is still needed: the loop is vectorised by two"}
"""Kernels that clang-19 translates wrongly, and how, as their assembly shows. Kinds of them are not generated
(`generated_expressions.DEVICE_FUNCTIONS`)."""


def test_a_few_kernels_agree_at_all_levels() -> None:
    found = disagreements(range(FEW))
    assert not found, "\n".join(str(one) for one in found)


def test_a_wrong_instruction_is_found(tmp_path: Path) -> None:
    kernels = [generated(number) for number in range(FEW)]
    text, host = assembly(kernels, "-O3"), on_host(kernels, tmp_path)
    for right, wrong in (("v_xor_b32", "v_or_b32"), ("v_bfe_i32", "v_bfe_u32"), ("ds_bpermute_b32", "ds_permute_b32")):
        assert right in text
        assert compared(kernels, host, text.replace(right, wrong), "-O3"), right


def test_a_number_always_gives_the_same_kernel() -> None:
    assert generated(7) == generated(7)
    assert len({generated(number).device for number in range(FEW)}) == FEW


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_many_kernels_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(tmp_path))  # assembly of 10,000 kernels takes gigabytes
    first, count = int(os.environ.get("GENERATED_FIRST", "0")), int(os.environ.get("GENERATED_KERNELS", MANY))
    found = list[str]()
    for batch, start in enumerate(range(first, first + count, BATCH)):
        levels = LEVELS if batch % ALL_LEVELS == 0 else LEVELS[:1]
        wrong = disagreements(range(start, min(start + BATCH, first + count)), levels)
        found += [str(one) for one in wrong if one.number not in CLANGS]
        for file in (tmp_path / "hip").glob("*.json"):
            file.unlink()
    assert not found, "\n".join(found)
