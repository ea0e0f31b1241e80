"""Vector memory: loads and stores of all widths through buffers, global, flat and scratch addresses, and to LDS."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from kernel_scientist.gpu.machine.launch import Fault
from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, LANES, M0, SCC, Array, Case, active, random_image, set_mask

WAVES, BYTES = 3, 4096
LOADS = {
    "ubyte": (1, False, ""), "sbyte": (1, True, ""), "ushort": (2, False, ""), "sshort": (2, True, ""),
    "dword": (4, False, ""), "dwordx2": (8, False, ""), "dwordx3": (12, False, ""), "dwordx4": (16, False, ""),
    "ubyte_d16": (1, False, "low"), "ubyte_d16_hi": (1, False, "high"), "sbyte_d16": (1, True, "low"),
    "sbyte_d16_hi": (1, True, "high"), "short_d16": (2, False, "low"), "short_d16_hi": (2, False, "high"),
}  # fmt: skip
"""Bytes, whether the sign is extended, and which half of the register they come to; the other half becomes 0."""
STORES = {
    "byte": (1, 0), "byte_d16_hi": (1, 16), "short": (2, 0), "short_d16_hi": (2, 16), "dword": (4, 0),
    "dwordx2": (8, 0), "dwordx3": (12, 0), "dwordx4": (16, 0),
}  # fmt: skip
"""Bytes, and the bit of the register from which they come."""
SWIZZLED = ("s_mov_b32 s93, 0x80000000\ns_mov_b32 s95, 0", "s_mov_b32 s93, 0\ns_mov_b32 s95, 0x800000")
"""Descriptors whose addresses are swizzled, or get the lane's number added."""


@dataclass
class Access:
    """A way to address memory: its text, and each lane's offset in the case's memory, -1 where nothing is read."""

    space: str
    before: str
    address: str
    offsets: Array
    tail: str = ""
    limit: int = 1 << 40
    """Where the range ends; each word of an access lies in it or not."""

    def inside(self, size: int) -> Array:
        """Whether bytes are accessed. Shape (waves, 64, size)."""
        ends = np.minimum(np.arange(size) // 4 * 4 + 4, size)
        return (self.offsets[..., None] >= 0) & (self.offsets[..., None] + ends <= self.limit)


def registers(first: int, size: int) -> str:
    words = max(size // 4, 1)
    return f"v{first}" if words == 1 else f"v[{first}:{first + words - 1}]"


RESOURCE = (
    "s_mov_b32 s92, s88\ns_pack_ll_b32_b16 s93, s89, {stride}\ns_mov_b32 s94, {records}\ns_mov_b32 s95, 0x27000\n"
)
NEGATIVE = "v_and_b32_e32 v10, 63, v2\nv_add_u32_e32 v10, 0xffffff80, v10\n"
"""v10 becomes v2 % 64 - 128. An offset wraps at 32 bits, before it is compared."""
POINTER = "v_mov_b32_e32 v11, s89\nv_add_co_u32_e32 v10, vcc, s88, v2\nv_addc_co_u32_e32 v11, vcc, 0, v11, vcc\n"


def accesses(size: int, v: Array, s: Array) -> list[Access]:
    """v2 holds byte offsets below 2048, v6 indices below 40; s4 is 64."""
    offset, index = v[:, 2].astype(np.int64), v[:, 6].astype(np.int64)
    resource = RESOURCE.format(stride=0, records=1200)
    strided = RESOURCE.format(stride=48, records=24)

    both = 48 * index + 64 + np.arange(LANES) % 8 * 4
    return [
        Access("global", POINTER, "v[10:11], off", offset),
        Access("global", POINTER, "v[10:11], off", offset - 64, " offset:-64"),
        Access("global", "", "v2, s[88:89]", offset + 128, " offset:128"),
        Access("flat", POINTER, "v[10:11]", offset),
        Access("flat", POINTER, "v[10:11]", offset + 2047, " offset:2047"),
        Access("buffer", resource, "off, s[92:95], 0", np.full(offset.shape, 20), " offset:20"),
        Access("buffer", resource, "v2, s[92:95], 0", offset, " offen", 1200),
        Access("buffer", resource, "v2, s[92:95], s4", offset + 64 + 12, " offen offset:12", 1200),
        Access("buffer", f"{resource}{NEGATIVE}", "v10, s[92:95], 0", offset % 64 + 4, " offen offset:132", 1200),
        Access("buffer", strided, "v6, s[92:95], 0", np.where(index < 24, 48 * index + 4, -1), " idxen offset:4"),
        Access("buffer", strided, "v[6:7], s[92:95], s4", np.where(index < 24, both, -1), " idxen offen"),
    ]  # fmt: skip


def image(seed: int) -> tuple[Array, Array]:
    v, s = random_image(WAVES, seed)
    random = np.random.default_rng(seed)
    v[:, 2] = random.integers(16, 500, (WAVES, LANES)) * 4
    v[:, 6] = random.integers(0, 40, (WAVES, LANES))
    v[:, 7] = np.arange(LANES) % 8 * 4
    s[:, 4], s[:, M0], s[:, SCC + 1 :] = 64, 512, 512
    set_mask(s, EXEC, random.random((WAVES, LANES)) < 0.8)
    return v, s


def memory(seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (WAVES, BYTES), np.uint8)


def bytes_at(content: Array, access: Access, size: int) -> Array:
    """Shape (waves, 64, size); zeros where nothing is read."""
    at = access.offsets[..., None] + np.arange(size)
    found = np.take_along_axis(content, np.clip(at, 0, BYTES - 1).reshape(WAVES, -1), 1).reshape(at.shape)
    return np.where(access.inside(size), found, 0).astype(np.uint8)


def loaded_words(data: Array, size: int, signed: bool, half: str) -> list[Array]:
    """Registers after a load."""
    if size >= 4:
        return [np.ascontiguousarray(data[..., 4 * n : 4 * n + 4]).view(np.uint32)[..., 0] for n in range(size // 4)]
    value = np.ascontiguousarray(data).view(f"<u{size}")[..., 0].astype(np.int64)
    if signed:
        value = value - ((value >> (8 * size - 1)) << 8 * size)
    word = (value & 0xFFFFFFFF).astype(np.uint32)
    if half == "low":
        word = word & 0xFFFF
    elif half == "high":
        word = word << 16
    return [word]


def load_cases() -> list[tuple[Case, Array, str]]:
    found = []
    for name, (size, signed, half) in LOADS.items():
        v, s = image(size)
        for access in accesses(size, v, s):
            content = memory(size)
            text = f"{access.space}_load_{name} {registers(12, size)}, {access.address}{access.tail}"
            words = loaded_words(bytes_at(content, access, size), size, signed, half)
            want = v.copy()
            for n, word in enumerate(words):
                want[:, 12 + n] = np.where(active(s), word, v[:, 12 + n])
            found.append((Case(access.before + text, v, s, content), want, text))
    return found


def store_cases() -> list[tuple[Case, Array, str]]:
    """Lanes have addresses of their own here, so that their order does not matter."""
    found = []
    for name, (size, shift) in STORES.items():
        v, s = image(size)
        random = np.random.default_rng(1)
        v[:, 2] = random.permuted(np.tile(np.arange(LANES), (WAVES, 1)), axis=1) * 20 + 64
        v[:, 6] = random.permuted(np.tile(np.arange(LANES), (WAVES, 1)), axis=1)
        v[:, 7] = 0
        for access in accesses(size, v, s):
            if access.address.startswith("off"):
                continue
            if "v[6:7]" in access.address:
                access.offsets = np.where(v[:, 6] < 24, 48 * v[:, 6].astype(np.int64) + 64, -1)
            content = memory(size)
            want = content.copy()
            words = np.ascontiguousarray(np.moveaxis(v[:, 12:16], 1, 2))
            data = words.view(np.uint8).reshape(WAVES, LANES, 16)[..., shift // 8 : shift // 8 + size]
            inside = access.inside(size)
            for wave, lane in np.argwhere(active(s)):
                at = access.offsets[wave, lane] + np.flatnonzero(inside[wave, lane])
                want[wave, at] = data[wave, lane][inside[wave, lane]]
            operands = f"{access.address.split(', ')[0]}, {registers(12, size)}" + "".join(
                f", {x}" for x in access.address.split(", ")[1:]
            )
            if access.space == "buffer":
                operands = f"{registers(12, size)}, {access.address}"
            text = f"{access.space}_store_{name} {operands}{access.tail}"
            found.append((Case(access.before + text, v, s, content), want, text))
    return found


@functools.cache
def scratch_texts() -> dict[str, tuple[str, int, bool, str]]:
    """For each scratch instruction a text that stores v12 to v15 and loads v8 to v11, with what the load does."""
    found = {}
    for name, (size, signed, half) in LOADS.items():
        to = registers(8, size)
        for address, fill, tail in (
            ("v4, off", "v4, {}, off", ""),
            ("off, s5", "off, {}, s5", " offset:4"),
            ("off, off", "off, {}, off", " offset:16"),
            ("v4, s5", "v4, {}, s5", ""),
        ):
            store = f"scratch_store_dwordx4 {fill.format('v[12:15]')}{tail}\n"
            found[f"{store}scratch_load_{name} {to}, {address}{tail}"] = (name, size, signed, half)
    return found


def test_loads() -> None:
    chosen = load_cases()
    wrong = []
    for (one, want, text), outcome in zip(chosen, harness.run([c for c, _, _ in chosen]), strict=True):
        if (outcome.v[:, 12:] != want[:, 12:]).any() or (outcome.v[:, :10] != want[:, :10]).any():
            place = tuple(np.argwhere(outcome.v[:, 12:] != want[:, 12:])[0])
            wrong.append(
                (text, place, hex(outcome.v[:, 12:][place]), hex(want[:, 12:][place]), one.v[place[0], 2:4, place[2]])
            )
    assert not wrong, "\n".join(map(str, wrong[:20]))


def test_stores() -> None:
    chosen = store_cases()
    harness.run([c for c, _, _ in chosen])
    wrong = [
        (text, np.argwhere(one.memory != want)[:2].tolist()) for one, want, text in chosen if (one.memory != want).any()
    ]
    assert not wrong, "\n".join(map(str, wrong[:20]))


def test_scratch_is_each_lane_s_own() -> None:
    v, s = image(9)
    v[:, 4], s[:, 5] = np.arange(LANES) % 4 * 4, 8
    outcomes = harness.run([Case(text, v, s) for text in scratch_texts()])
    for (text, (_, size, signed, half)), outcome in zip(scratch_texts().items(), outcomes, strict=True):
        words = np.ascontiguousarray(np.moveaxis(v[:, 12:16], 1, 2)).view(np.uint8).reshape(WAVES, LANES, 16)
        want = v.copy()
        for n, word in enumerate(loaded_words(words[..., :size], size, signed, half)):
            want[:, 8 + n] = np.where(active(s), word, v[:, 8 + n])
        np.testing.assert_array_equal(outcome.v, want, text)


def scratch_stores() -> list[str]:
    before, after = "scratch_store_dwordx4 off, v[4:7], s5\n", "\nscratch_load_dwordx4 v[8:11], off, s5"
    return [f"{before}scratch_store_{name} off, {registers(12, size)}, s5{after}" for name, (size, _) in STORES.items()]


def test_stores_to_scratch() -> None:
    v, s = image(9)
    s[:, 5] = 8
    for text, (size, shift) in zip(scratch_stores(), STORES.values(), strict=True):
        (outcome,) = harness.run([Case(text, v, s)])
        data = np.ascontiguousarray(np.moveaxis(v[:, 4:8], 1, 2)).view(np.uint8).reshape(WAVES, LANES, 16).copy()
        stored = np.ascontiguousarray(np.moveaxis(v[:, 12:16], 1, 2)).view(np.uint8).reshape(WAVES, LANES, 16)
        data[..., :size] = stored[..., shift // 8 : shift // 8 + size]
        for n in range(4):
            word = np.ascontiguousarray(data[..., 4 * n : 4 * n + 4]).view(np.uint32)[..., 0]
            np.testing.assert_array_equal(outcome.v[:, 8 + n], np.where(active(s), word, v[:, 8 + n]), text)


FLAT = {
    "src_shared_base": "ds_write_b32 v2, v12\ns_waitcnt lgkmcnt(0)\n",
    "src_private_base": "scratch_store_dword v2, v12, off\n",
}


@pytest.mark.parametrize("base", FLAT)
def test_flat_addresses_reach_lds_and_scratch(base: str) -> None:
    v, s = image(9)
    v[:, 2] = np.arange(LANES) * 4 if base == "src_shared_base" else np.arange(LANES) % 60 * 4
    high = f"s_mov_b64 s[6:7], {base}\nv_mov_b32_e32 v3, s7\n"
    texts = [
        FLAT[base] + high + "flat_load_dword v13, v[2:3]",
        high + "flat_store_dword v[2:3], v12\nflat_load_ushort v13, v[2:3]",
    ]
    loaded, stored = harness.run([Case(text, v, s) for text in texts])
    np.testing.assert_array_equal(loaded.v[:, 13], np.where(active(s), v[:, 12], v[:, 13]))
    np.testing.assert_array_equal(stored.v[:, 13], np.where(active(s), v[:, 12] & 0xFFFF, v[:, 13]))


def test_an_atomic_operation_out_of_range_returns_zero() -> None:
    v, s = image(9)
    content = memory(3)
    v[:, 12] = 0xFFFFFFFF  # so that memory stays
    text = RESOURCE.format(stride=0, records=1200) + "buffer_atomic_umin v12, v2, s[92:95], 0 offen sc0"
    (outcome,) = harness.run([one := Case(text, v, s, content.copy())])
    access = Access("", "", "", v[:, 2].astype(np.int64), limit=1200)
    (wanted,) = loaded_words(bytes_at(content, access, 4), 4, False, "")
    np.testing.assert_array_equal(outcome.v[:, 12], np.where(active(s), wanted, v[:, 12]))
    np.testing.assert_array_equal(one.memory, content)


TO_LDS = {
    "global_load_lds_dword v[10:11], off": (4, 0, POINTER),
    "global_load_lds_dword v2, s[88:89] offset:16": (4, 16, ""),
    "global_load_lds_dwordx3 v[10:11], off": (12, 0, POINTER),
    "global_load_lds_dwordx4 v[10:11], off": (16, 0, POINTER),
    "global_load_lds_ushort v[10:11], off": (2, 0, POINTER),
    "global_load_lds_ubyte v[10:11], off": (1, 0, POINTER),
    "buffer_load_dword v2, s[92:95], 0 offen lds": (4, 0, RESOURCE.format(stride=0, records=4096)),
    "buffer_load_dword v2, s[92:95], s4 offen offset:32 lds": (4, 96, RESOURCE.format(stride=0, records=4096)),
    "buffer_load_sbyte v2, s[92:95], 0 offen lds": (1, 0, RESOURCE.format(stride=0, records=4096)),
    "buffer_load_sshort v2, s[92:95], 0 offen lds": (2, 0, RESOURCE.format(stride=0, records=4096)),
}
"""Text, bytes, what is added to v2 in memory, and what goes before."""


@pytest.mark.parametrize("text", TO_LDS)
def test_loads_to_lds(text: str) -> None:
    """M0 plus the instruction's offset plus four bytes per lane, whatever the lanes' addresses are."""
    size, added, before = TO_LDS[text]
    v, s = image(9)
    content = memory(2)
    offset = int(text.split("offset:")[1].split()[0]) if "offset:" in text else 0
    step = max(size, 4)
    v[:, 5] = np.arange(LANES) * step + 512 + offset
    read = "\ns_mov_b64 exec, -1\ns_waitcnt vmcnt(0)\n" + "\n".join(
        f"ds_read_b32 v{12 + n}, v5 offset:{4 * n}" for n in range(step // 4)
    )
    (outcome,) = harness.run([Case(before + text + read, v, s, content)])
    data = bytes_at(content, Access("", "", "", v[:, 2].astype(np.int64) + added), size)
    for n, word in enumerate(loaded_words(data, size, "_sbyte" in text or "_sshort" in text, "")):
        np.testing.assert_array_equal(outcome.v[:, 12 + n][active(s)], word[active(s)])


OUTSIDE = {
    "global_load_dword v12, v2, s[4:5]": Fault.READ_OUTSIDE,
    "global_store_dword v2, v12, s[4:5]": Fault.WRITE_OUTSIDE,
    "global_store_dword v2, v12, s[80:81]": Fault.WRITE_READ_ONLY,
    "global_atomic_add v2, v12, s[4:5]": Fault.WRITE_OUTSIDE,
    "scratch_load_dword v12, off, off offset:256": Fault.SCRATCH_OUTSIDE,
    "ds_read_b32 v12, v2 offset:65532": Fault.LDS_OUTSIDE,
    "ds_write_b64 v2, v[12:13] offset:4092": Fault.LDS_OUTSIDE,
    "ds_add_u32 v2, v12 offset:65000": Fault.LDS_OUTSIDE,
}


@pytest.mark.parametrize("text", OUTSIDE)
def test_what_lies_outside_is_a_finding(text: str) -> None:
    v, s = random_image(1, 9)
    v[:, 2], s[:, 4:6] = 0, (0x1000, 0)
    _, result = harness.findings([Case(text, v, s)])
    assert [(f.fault, f.statement.mnemonic) for f in result.findings] == [(OUTSIDE[text], text.split()[0])]
    assert result.findings[0].times == LANES


@pytest.mark.parametrize("words", SWIZZLED)
def test_swizzled_buffers_are_refused(words: str) -> None:
    v, s = random_image(1, 9)
    text = f"s_mov_b32 s92, 0\ns_mov_b32 s94, 0\n{words}\nbuffer_load_dword v12, v2, s[92:95], 0 offen"
    _, result = harness.findings([Case(text, v, s)])
    assert [f.fault for f in result.findings] == [Fault.REFUSED]
