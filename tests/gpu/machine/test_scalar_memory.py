"""Scalar loads: widths, offsets, and what lies outside."""

import numpy as np

from kernel_scientist.gpu.machine.launch import Fault
from tests.gpu.machine import harness
from tests.gpu.machine.harness import M0, SCC, Array, Case, Outcome, random_image

WAVES, BYTES = 4, 256
WIDTHS = {"": 1, "x2": 2, "x4": 4, "x8": 8, "x16": 16}
DESCRIPTOR = "s_mov_b32 s92, s88\ns_and_b32 s93, s89, 0xffff\ns_mov_b32 s94, 96\ns_mov_b32 s95, 0x27000\n"


def case(text: str) -> Case:
    v, s = random_image(WAVES, 6)
    s[:, 12], s[:, 13] = 40, 3
    s[:, M0] = 24
    s[:, SCC + 1 :] = 24
    return Case(text, v, s, np.random.default_rng(1).integers(0, 256, (WAVES, BYTES), np.uint8))


def cases() -> list[tuple[Case, int, int, int]]:
    """Case, count of words, offset of the first, and bytes that a buffer has."""
    found = []
    for suffix, count in WIDTHS.items():
        to = f"s[0:{count - 1}]" if count > 1 else "s0"
        name = f"s_load_dword{suffix} {to}, s[88:89], "
        found += [
            (case(name + offset), count, at, BYTES)
            for offset, at in (("0x0", 0), ("0x1c", 28), ("m0", 24), ("m0 offset:0x8", 32))
        ]
        buffer = f"{DESCRIPTOR}s_buffer_load_dword{suffix} {to}, s[92:95], "
        found += [(case(buffer + offset), count, at, 96) for offset, at in (("0x0", 0), ("0x3c", 60), ("m0", 24))]
    found.append((case("s_load_dword s0, s[88:89], s12"), 1, 40, BYTES))
    return found


def words(one: Case, at: int, count: int, limit: int) -> Array:
    assert one.memory is not None
    found = np.ascontiguousarray(one.memory[:, at : at + 4 * count]).view(np.uint32).copy()
    found[:, np.arange(count) * 4 + at + 4 > limit] = 0
    return found


def test_loads() -> None:
    chosen = cases()
    outcomes: list[Outcome] = harness.run([one for one, *_ in chosen])
    for (one, count, at, limit), outcome in zip(chosen, outcomes, strict=True):
        want = one.s.copy()
        want[:, :count] = words(one, at, count, limit)
        np.testing.assert_array_equal(outcome.s[:, :16], want[:, :16], one.text)


def test_a_destination_may_cover_the_address() -> None:
    one = case("s_mov_b64 s[0:1], s[88:89]\ns_load_dwordx4 s[0:3], s[0:1], 0x10")
    (outcome,) = harness.run([one])
    np.testing.assert_array_equal(outcome.s[:, :4], words(one, 16, 4, BYTES))


def test_outside_of_all_memory_is_a_finding() -> None:
    one = case("s_load_dword s0, s[88:89], 0x7fff0")
    _, result = harness.findings([one])
    assert [(f.fault, f.statement.mnemonic) for f in result.findings] == [(Fault.READ_OUTSIDE, "s_load_dword")]
