"""Vector instructions without operands beyond their sources, with all encodings, kinds of operands and modifiers."""

import functools
from collections.abc import Iterable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.gpu.machine import conversion_rows, float_rows, harness, integer_rows
from tests.gpu.machine.instances import make
from tests.gpu.machine.rows import Row
from tests.gpu.machine.values import BITS
from tests.gpu.machine.vectors import Instance, differences, expected

NO_SDWA = ("v_fmac_f32", "v_mac_f16", "v_dot", "v_mov_b64", "v_ldexp")
NO_DPP = ("v_fmac_f64",)


@functools.cache
def table() -> dict[str, Row]:
    return float_rows.rows() | integer_rows.rows() | conversion_rows.rows()


def encodings(name: str, row: Row) -> tuple[str, ...]:
    """Suffixes that the instruction has; `_vop3` stands for the one encoding that has no suffix."""
    if row.form in ("vop3", "vop3p"):
        return ("_vop3",)
    wide = 64 in (BITS[row.to], *(BITS[kind] for kind in row.sources))
    found = ["_e32", "_e64"]
    found += ["_sdwa"] if not wide and not name.startswith(NO_SDWA) else []
    found += ["_dpp"] if not name.startswith(NO_DPP) else []
    return tuple(found)


def instances(names: Iterable[str], seeds: range) -> list[Instance]:
    found = []
    for name in names:
        for encoding in encodings(name, table()[name]):
            found += [make(name, table()[name], encoding, seed, plain=seed == 0) for seed in seeds]
    for one in found:
        one.encoding = one.encoding.removesuffix("_vop3")
    return found


def check(chosen: list[Instance]) -> None:
    wrong = []
    for start in range(0, len(chosen), 200):
        batch = chosen[start : start + 200]
        for one, outcome in zip(batch, harness.run([i.case() for i in batch]), strict=True):
            want, known = expected(one)
            wrong += differences(one, outcome.v, want, known)[:1]
            if (outcome.s != one.s).any():
                wrong.append((one.text(), "changes a scalar register"))
    assert not wrong, "\n".join(map(str, wrong[:40])) + f"\n{len(wrong)} wrong of {len(chosen)}"


def letters() -> list[str]:
    return sorted({name[2] for name in table()})


@pytest.mark.parametrize("letter", letters())
def test_corners_in_all_encodings(letter: str) -> None:
    check(instances([name for name in table() if name[2] == letter], range(1)))


@pytest.mark.parametrize("letter", letters())
def test_operands_and_modifiers(letter: str) -> None:
    check(instances([name for name in table() if name[2] == letter], range(1, 5)))


@settings(phases=(Phase.generate,), max_examples=40)  # a smaller seed is not a simpler instruction
@given(st.lists(st.tuples(st.sampled_from(sorted(table())), st.integers(100, 10**6)), min_size=20, max_size=20))
def test_any_instance(chosen: list[tuple[str, int]]) -> None:
    check([one for name, seed in chosen for one in instances([name], range(seed, seed + 1))])
