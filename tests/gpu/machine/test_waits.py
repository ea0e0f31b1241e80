"""Missing waits: single rules, all ways of random programs, compiled code without its waits, inline assembly."""

import re
from collections import deque
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.gpu.machine import effects as effect
from kernel_scientist.gpu.machine import flow, listing, static_checks, waits
from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.toolchains import hip
from tests.gpu.machine.listings import listed, missing, omitted
from tests.gpu.toolchains.test_hip import GEMM

TOOLS = hip.find()
needs_hip = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
LOAD, USE = "global_load_dword v1, v[2:3], off", "v_add_f32_e32 v4, v1, v1"


def test_a_load_is_used_before_its_wait() -> None:
    assert missing(LOAD, USE) == [(2, "s_waitcnt vmcnt(0)")]
    assert missing(LOAD, "s_waitcnt vmcnt(0)", USE) == []


def test_a_listing_without_code_lacks_nothing() -> None:
    assert static_checks.omissions(replace(listed(), statements=(), labels={}, kernels={})) == ()


def test_a_sentence_names_both_instructions_and_their_lines() -> None:
    (one,) = omitted('.file 1 "a.hip"', ".loc 1 7 3", LOAD, ".loc 1 9 3", USE)
    assert one.sentence == (
        "a.hip:9, assembly line 6: `v_add_f32_e32 v4, v1, v1` reads v1 before "
        "`global_load_dword v1, v[2:3], off` (assembly line 4) is known to have returned: "
        "`s_waitcnt vmcnt(0)` is missing"
    )


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("count", range(4))
def test_stores_and_loads_return_in_order(after: int, count: int) -> None:
    later = ("global_store_dword v[2:3], v5, off", "buffer_load_dword v6, v7, s[0:3], 0 offen") * 2
    expected = [] if count <= after else [(after + 3, f"s_waitcnt vmcnt({after})")]
    assert missing(LOAD, *later[:after], f"s_waitcnt vmcnt({count})", USE) == expected


@pytest.mark.parametrize(
    "first, use, wait",
    [
        ("ds_read_b128 v[0:3], v9", "v_mov_b32_e32 v8, v3", "lgkmcnt(0)"),
        ("ds_bpermute_b32 v0, v9, v8", "v_mov_b32_e32 v8, v0", "lgkmcnt(0)"),
        ("ds_add_rtn_u32 v0, v9, v8", "v_mov_b32_e32 v8, v0", "lgkmcnt(0)"),
        ("s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_add_u32 s9, s7, s8", "lgkmcnt(0)"),
        ("s_load_dwordx2 vcc, s[0:1], 0x0", "s_and_b64 s[2:3], vcc, s[4:5]", "lgkmcnt(0)"),
        ("flat_load_dword v0, v[2:3]", "v_mov_b32_e32 v8, v0", "vmcnt(0) lgkmcnt(0)"),
        ("scratch_load_dword v0, off, s32", "v_mov_b32_e32 v8, v0", "vmcnt(0)"),
        ("global_atomic_add v0, v[2:3], v4, off sc0", "v_mov_b32_e32 v8, v0", "vmcnt(0)"),
        ("buffer_load_dwordx4 a[0:3], v9, s[0:3], 0 offen", "v_accvgpr_read_b32 v8, a3", "vmcnt(0)"),
        ("global_load_dword v0, v[2:3], off", "v_mov_b32_e32 v0, v8", "vmcnt(0)"),
        ("global_load_dword v0, v[2:3], off", "global_store_dword v[2:3], v0, off", "vmcnt(0)"),
        ("global_load_dword v0, v[2:3], off", "s_waitcnt 0xc07f\n ds_read_b32 v0, v1", "vmcnt(0)"),
        ("global_load_dword v0, v[2:3], off", "v_mfma_f32_4x4x4_16b_f16 v[4:7], v[8:9], v[0:1], v[4:7]", "vmcnt(0)"),
    ],
)
def test_a_kind_of_load(first: str, use: str, wait: str) -> None:
    assert {remedy.removeprefix("s_waitcnt ") for _, remedy in missing(first, use)} == set(wait.split())
    assert missing(first, f"s_waitcnt {wait}", use) == []


@pytest.mark.parametrize(
    "lines",
    [
        ("global_load_dword v0, v[2:3], off", "global_load_dword v0, v[4:5], off"),
        ("ds_read_b32 v0, v1", "ds_read_b32 v0, v2"),
        ("global_atomic_add_f32 v[0:1], v2, off", "v_mov_b32_e32 v2, 0"),
        ("ds_add_f32 v0, v1", "v_mov_b32_e32 v1, v0"),
        ("s_load_dword s4, s[0:1], 0x0", "v_mov_b32_e32 v0, v4"),
        ("buffer_load_dword v0, s[0:3], 0 offen lds", "v_mov_b32_e32 v1, v0"),
    ],
)
def test_what_needs_no_wait(lines: tuple[str, ...]) -> None:
    assert missing(*lines) == []


def test_scalar_loads_return_in_any_order() -> None:
    loads = ("s_load_dword s4, s[0:1], 0x0", "s_load_dword s5, s[0:1], 0x4")
    assert missing(*loads, "s_waitcnt lgkmcnt(1)", "s_mov_b32 s6, s4") == [(4, "s_waitcnt lgkmcnt(0)")]


def test_a_counter_never_holds_more_than_it_can() -> None:
    others = [f"global_load_dword v{n}, v[2:3], off" for n in range(10, 73)]
    assert missing(LOAD, *others, USE) == []
    assert missing(LOAD, *others[1:], USE) == [(64, "s_waitcnt vmcnt(62)")]


def test_the_way_round_a_loop_counts() -> None:
    wait, back = "s_waitcnt vmcnt(0)", "s_cbranch_scc1 again"
    assert missing(LOAD, "again:", wait, USE, LOAD, back) == []
    assert missing(LOAD, wait, "again:", USE, LOAD, back) == [(4, "s_waitcnt vmcnt(0)")]


def test_a_called_function_waits_by_itself() -> None:
    assert missing(LOAD, "s_swappc_b64 s[30:31], s[4:5]", USE) == []


WRITE, READ, BARRIER = "ds_write_b32 v0, v1", "ds_read_b32 v2, v3", "s_barrier"


@pytest.mark.parametrize(
    "lines, line",
    [
        ((WRITE, BARRIER, READ), 2),
        ((WRITE, "s_waitcnt lgkmcnt(0)", BARRIER, READ), 0),
        ((WRITE, BARRIER, "s_waitcnt lgkmcnt(0)", READ), 2),
        ((WRITE, BARRIER, "s_waitcnt lgkmcnt(0)", BARRIER, READ), 0),
        ((READ, WRITE, "s_waitcnt lgkmcnt(1)", BARRIER, READ), 4),
        ((WRITE, BARRIER, WRITE), 0),
        (("again:", BARRIER, READ, "s_waitcnt lgkmcnt(0)", WRITE, "s_cbranch_scc1 again"), 2),
        (("global_load_lds_dword v[0:1], off", BARRIER, READ), 2),
        (("global_load_lds_dword v[0:1], off", "s_waitcnt vmcnt(0)", BARRIER, READ), 0),
        (("global_load_lds_dword v[0:1], off",) * 2 + ("s_waitcnt vmcnt(1)", BARRIER, READ), 0),
    ],
)
def test_stores_to_lds_before_a_barrier(lines: tuple[str, ...], line: int) -> None:
    assert [number for number, _ in missing(*lines)] == ([line] if line else [])


# All ways of random programs. The hardware is played by an adversary that lets nothing return before it must: after a
# wait it has chosen, in every possible way, what is still outstanding.

KINDS = {
    "global_load_dword v{0}, v[20:21], off": ("vm",),
    "ds_read_b32 v{0}, v22": ("lgkm",),
    "s_load_dword s{0}, s[20:21], 0x0": ("any",),
    "flat_load_dword v{0}, v[20:21]": ("any vm", "any"),
    "global_store_dword v[20:21], v23, off": ("vm",),
}
MOST_STATES, MOST_OUTSTANDING = 1000, 7
"""A loop without a wait has no end of states."""
Outstanding = tuple[tuple[str, str], ...]
"""Counter and register of what has not returned, in order of issue."""
statements = st.one_of(
    st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 2)).map(lambda pair: pair[0].format(pair[1])),
    st.tuples(st.sampled_from("vs"), st.integers(0, 2)).map(
        lambda pair: f"v_mov_b32_e32 v9, v{pair[1]}" if pair[0] == "v" else f"s_mov_b32 s9, s{pair[1]}"
    ),
    st.tuples(st.sampled_from(("vmcnt", "lgkmcnt")), st.integers(0, 2)).map(
        lambda pair: f"s_waitcnt {pair[0]}({pair[1]})"
    ),
    st.integers(0, 3).map(lambda label: f"s_cbranch_scc1 L{label}"),
)


def _kind(text: str) -> tuple[str, ...]:
    return next((kinds for form, kinds in KINDS.items() if form.split()[0] == text.split()[0]), ())


def _retired(outstanding: Outstanding, counter: str, count: int) -> set[Outstanding]:
    """Return what may be outstanding after a wait: as much as it allows, in every combination."""
    names = ("vm", "any vm") if counter == "vmcnt" else ("lgkm", "any")
    counted = [n for n, (name, _) in enumerate(outstanding) if name in names]
    if len(counted) <= count:
        return {outstanding}
    after = set[Outstanding]()
    for n in counted:
        first_in_order = n == next((m for m in counted if outstanding[m][0] == names[0]), -1)
        if outstanding[n][0] == names[1] or first_in_order:
            after |= _retired(outstanding[:n] + outstanding[n + 1 :], counter, count)
    return after


def _too_early(program: Listing) -> tuple[set[int], bool]:
    """Return the instructions that touch, on some way, what may be outstanding; and whether all ways were taken."""
    early, seen, whole = set[int](), set[tuple[int, Outstanding]](), True
    ways = deque[tuple[int, Outstanding]]([(0, ())])
    while ways and len(seen) < MOST_STATES:
        place, outstanding = ways.popleft()
        if (place, outstanding) in seen or place >= len(program.statements):
            continue
        if len(outstanding) > MOST_OUTSTANDING:
            whole = False
            continue
        seen.add((place, outstanding))
        one = program.statements[place]
        touched = set(re.findall(r"\b[vs]\d+\b", one.operands))
        kinds = _kind(one.mnemonic)
        written = one.operands.split(",")[0] if kinds and "store" not in one.mnemonic else ""
        for counter, register in outstanding:
            if register in touched and not (register == written and (counter,) == kinds and counter in ("vm", "lgkm")):
                early.add(place)
        after = {outstanding}
        if one.mnemonic == "s_waitcnt":
            counter, count = one.operands.rstrip(")").split("(")
            after = _retired(outstanding, counter, int(count))
        elif one.mnemonic.startswith("s_cbranch"):
            ways.append((program.labels[one.operands], outstanding))
        elif kinds:
            after = {outstanding + tuple((counter, written) for counter in kinds)}
        ways += [(place + 1, state) for state in after]
    return early, whole and not ways


@settings(max_examples=150, deadline=None)
@given(st.lists(statements, min_size=2, max_size=9), st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_what_is_said_is_what_some_way_shows(lines: list[str], labels: list[int]) -> None:
    """In every block the first instruction that is too early on some way is named, and no other is without reason."""
    lines = [*lines]
    for number, place in enumerate(labels):
        lines.insert(min(place, len(lines)), f"L{number}:")
    program = listed(*lines)
    by_line = {one.line: n for n, one in enumerate(program.statements)}
    said = {by_line[one.statement.line] for one in static_checks.omissions(program)}
    expected, whole = _too_early(program)
    assert said <= expected or not whole
    for block in flow.blocks(program).values():
        first = min((n for n in expected if block.first <= n < block.end), default=block.end)
        assert first == block.end or any(block.first <= n <= first for n in said)


# Compiled code.


@needs_hip
@pytest.mark.parametrize("flag", ["-O1", "-O3"])
def test_compiled_code_lacks_nothing_and_every_wait_that_is_taken_away_is_missed(flag: str) -> None:
    program = listing.read(hip.compile_hip(GEMM, "gfx942", [flag]).assembly)
    assert static_checks.omissions(program) == ()
    effects = [effect.of(one.mnemonic, one.operands) for one in program.statements]
    places = [n for n, one in enumerate(effects) if one.name == "s_waitcnt"]
    assert len(places) > 5
    silent = list[int]()
    for n in places:
        without = [*effects]
        without[n] = replace(effects[n], modifiers=frozenset(("vmcnt(63)",)))
        silent += [] if waits.omissions(program, without) else [n]
    # What nobody misses guards memory, not registers: it is just before a barrier.
    assert [n for n in silent if effects[n + 1].name != "s_barrier"] == []
    assert len(silent) < len(places) / 3


ASM = """
#include <hip/hip_runtime.h>
extern "C" __global__ void k(const float* in, float* out) {
  float a, b;
  const float* p = in + threadIdx.x;
  asm volatile("global_load_dword %0, %1, off" : "=v"(a) : "v"(p));
  asm volatile("WAIT");
  asm volatile("v_add_f32 %0, %1, %1" : "=v"(b) : "v"(a));
  out[threadIdx.x] = b;
}
"""


@needs_hip
def test_inline_assembly_without_its_wait_is_named_with_its_line() -> None:
    def of(wait: str) -> list[str]:
        built = hip.compile_hip(ASM.replace("WAIT", wait), "gfx942", ["-O3", "-gline-tables-only"])
        assert built.ok, built.log
        return [one.sentence for one in static_checks.omissions(listing.read(built.assembly))]

    assert of("s_waitcnt vmcnt(0)") == []
    (sentence,) = of("s_nop 0")
    assert sentence.startswith("kernel.hip:8, ")
    assert "`v_add_f32 v" in sentence
    assert sentence.endswith("`s_waitcnt vmcnt(0)` is missing")


def test_counts_written_as_a_number() -> None:
    assert waits.counts("vmcnt(3) & lgkmcnt(2)") == (3, 2)
    assert waits.counts("0") == (0, 0)
    assert [waits.counts(text) for text in ("0xc07f", "0x0f70")] == [(63, 0), (0, 15)]
    assert [a < b for a, b in pairwise(waits.counts(f"{n:#x}")[0] for n in range(16))] == [True] * 15
