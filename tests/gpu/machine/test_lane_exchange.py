"""Data between lanes: reads and writes of single lanes, permutations through the LDS crossbar, counts below a lane."""

import numpy as np

from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, LANES, M0, Array, Case, active, random_image, set_mask
from tests.gpu.machine.vectors import WAVES

Wanted = tuple[Case, Array, Array]
LANE = np.arange(LANES)


def image(seed: int, share: float = 0.6) -> tuple[Array, Array, Array]:
    v, s = random_image(WAVES, seed)
    set_mask(s, EXEC, np.random.default_rng(seed).random((WAVES, LANES)) < share)
    return v, s, active(s)


def written(v: Array, register: int, values: Array, enabled: Array) -> Array:
    after = v.copy()
    after[:, register] = np.where(enabled, values, v[:, register])
    return after


def single_lanes(seed: int) -> list[Wanted]:
    v, s, enabled = image(seed)
    if seed == 0:
        set_mask(s, EXEC, np.zeros((WAVES, LANES), bool))
        enabled = active(s)
    first = np.where(enabled.any(1), enabled.argmax(1), 0)
    wave = np.arange(WAVES)
    by_first, by_scalar, by_constant, by_m0 = s.copy(), s.copy(), s.copy(), s.copy()
    by_first[:, 4] = v[wave, 2, first]
    by_scalar[:, 4] = v[wave, 2, s[:, 5] & 63]
    by_constant[:, 4] = v[wave, 2, 37]
    by_m0[:, 4] = v[wave, 2, s[:, M0] & 63]
    after, constant = v.copy(), v.copy()
    after[wave, 2, s[:, M0] & 63] = s[:, 4]
    constant[wave, 2, 63] = 0xFFFFFFFF
    return [
        (Case("v_readfirstlane_b32 s4, v2", v, s), v, by_first),
        (Case("v_readlane_b32 s4, v2, s5", v, s), v, by_scalar),
        (Case("v_readlane_b32 s4, v2, 37", v, s), v, by_constant),
        (Case("v_readlane_b32 s4, v2, m0", v, s), v, by_m0),
        (Case("v_writelane_b32 v2, s4, m0", v, s), after, s),
        (Case("v_writelane_b32 v2, -1, 63", v, s), constant, s),
    ]


def permuted(seed: int) -> list[Wanted]:
    v, s, enabled = image(seed)
    random = np.random.default_rng(seed)
    if seed % 2:
        v[:, 3] = (random.permuted(np.tile(LANE, (WAVES, 1)), axis=1) * 4).astype(np.uint32)
    offset = (0, 4, 20)[seed % 3]
    place = (v[:, 3].astype(np.int64) + offset) // 4 % 64
    fetched = np.where(np.take_along_axis(enabled, place, 1), np.take_along_axis(v[:, 2], place, 1), 0)
    sent = np.zeros((WAVES, LANES), np.uint32)
    for lane in LANE:  # the highest lane wins
        rows = np.flatnonzero(enabled[:, lane])
        sent[rows, place[rows, lane]] = v[rows, 2, lane]
    tail = f" offset:{offset}" if offset else ""
    return [
        (Case(f"ds_bpermute_b32 v0, v3, v2{tail}", v, s), written(v, 0, fetched, enabled), s),
        (Case(f"ds_permute_b32 v0, v3, v2{tail}", v, s), written(v, 0, sent, enabled), s),
        (Case(f"ds_bpermute_b32 v2, v3, v2{tail}", v, s), written(v, 2, fetched, enabled), s),
    ]


def reversed5(x: int) -> int:
    return int(f"{x:05b}"[::-1], 2)


def source(text: str, lane: int) -> int:
    """The lane that ds_swizzle_b32 reads, from LLVM's names of the patterns and AMD's description of the offset."""
    place, half = lane % 32, lane // 32 * 32
    name, _, rest = text.partition(":")
    numbers = [int(part) for part in rest.split(",")] if name != "BITMASK_PERM" else []
    if name == "QUAD_PERM":
        return lane // 4 * 4 + numbers[lane % 4]
    if name == "BITMASK_PERM":  # the text has the highest bit first: 0, 1, p(reserve), i(nvert)
        bits = f"{place:05b}"
        rule = {"0": lambda b: "0", "1": lambda b: "1", "p": lambda b: b, "i": lambda b: "10"[int(b)]}
        return half + int("".join(rule[sign](bit) for sign, bit in zip(rest, bits, strict=True)), 2)
    if name == "BROADCAST":
        return half + place // numbers[0] * numbers[0] + numbers[1]
    if name == "SWAP":
        return half + (place ^ numbers[0])
    if name == "REVERSE":
        return half + place // numbers[0] * numbers[0] + numbers[0] - 1 - place % numbers[0]
    if name == "ROTATE":  # direction (0: to the left, data come from higher lanes), count
        return half + (place + numbers[1] * (-1 if numbers[0] else 1)) % 32
    return half + (reversed5(place) >> numbers[0].bit_count() | place & numbers[0])  # FFT


SWIZZLES = (
    *("QUAD_PERM:3,2,1,0", "QUAD_PERM:1,1,2,0", "BITMASK_PERM:01pi0", "BITMASK_PERM:ppppp", "BITMASK_PERM:iiiii"),
    *(
        "BITMASK_PERM:11p0i",
        "BROADCAST:2,1",
        "BROADCAST:8,5",
        "BROADCAST:32,17",
        "SWAP:1",
        "SWAP:2",
        "SWAP:4",
        "SWAP:8",
    ),
    *("SWAP:16", "REVERSE:2", "REVERSE:4", "REVERSE:8", "REVERSE:16", "REVERSE:32"),
)
ENCODED = {
    **{f"ROTATE:0,{n}": 0xC000 | n << 5 for n in (1, 7, 31)},
    **{f"ROTATE:1,{n}": 0xC400 | n << 5 for n in (1, 7, 31)},
    **{f"FFT:{n}": 0xE000 | n for n in (0, 1, 0x10, 0x1F)},
}


def swizzled(seed: int) -> list[Wanted]:
    found = []
    for text in (*SWIZZLES, *ENCODED):
        v, s, enabled = image(seed, 0.8)
        place = np.array([source(text, int(lane)) for lane in LANE])
        values = np.where(enabled[:, place], v[:, 2][:, place], 0)
        name, _, rest = text.partition(":")
        rest = f'"{rest}"' if name == "BITMASK_PERM" else rest
        offset = str(ENCODED[text]) if text in ENCODED else f"swizzle({name},{rest})"
        found.append((Case(f"ds_swizzle_b32 v0, v2 offset:{offset}", v, s), written(v, 0, values, enabled), s))
    return found


def counted(seed: int) -> list[Wanted]:
    v, s, enabled = image(seed)
    found = []
    for name, first in (("v_mbcnt_lo_u32_b32", 0), ("v_mbcnt_hi_u32_b32", 32)):
        count = np.zeros((WAVES, LANES), np.uint32)
        for lane in LANE:
            below = min(max(int(lane) - first, 0), 32)
            count[:, lane] = np.bitwise_count(v[:, 2, lane] & np.uint32((1 << below) - 1))
        found.append((Case(f"{name} v0, v2, v3", v, s), written(v, 0, count + v[:, 3], enabled), s))
        found.append((Case(f"{name} v0, v2, 0", v, s), written(v, 0, count, enabled), s))
    return found


def moves(seed: int) -> list[Wanted]:
    v, s, enabled = image(seed)
    swapped = written(written(v, 2, v[:, 3], enabled), 3, v[:, 2], enabled)
    through = "v_accvgpr_write_b32 a3, v2\nv_accvgpr_mov_b32 a4, a3\nv_accvgpr_read_b32 v0, a4"
    kept = "v_accvgpr_read_b32 v0, a5"
    constant = "s_mov_b64 exec, -1\nv_accvgpr_write_b32 a5, 0\ns_mov_b64 exec, s[4:5]\nv_accvgpr_write_b32 a5, -16\n"
    s[:, 4:6] = s[:, EXEC : EXEC + 2]
    all_lanes = "s_mov_b64 exec, -1\n" + kept + "\ns_mov_b64 exec, s[4:5]"
    sixteen = np.where(enabled, np.uint32(0xFFFFFFF0), np.uint32(0))
    whole = v.copy()
    whole[:, 0] = sixteen
    return [
        (Case("v_swap_b32 v2, v3", v, s), swapped, s),
        (Case("v_nop\nds_nop", v, s), v, s),
        (Case(through, v, s), written(v, 0, v[:, 2], enabled), s),
        (Case(constant + all_lanes, v, s), whole, s),
    ]


def cases() -> list[Wanted]:
    found = [one for seed in range(6) for one in (*single_lanes(seed), *permuted(seed), *counted(seed), *moves(seed))]
    return found + swizzled(7) + swizzled(8)


def test_lanes() -> None:
    chosen = cases()
    wrong = []
    for (one, want_v, want_s), outcome in zip(chosen, harness.run([c for c, _, _ in chosen]), strict=True):
        if (outcome.v != want_v).any() or (outcome.s != want_s).any():
            wrong.append(
                (one.text, np.argwhere(outcome.v != want_v)[:2].tolist(), np.argwhere(outcome.s != want_s)[:2].tolist())
            )
    assert not wrong, "\n".join(map(str, wrong[:30]))
