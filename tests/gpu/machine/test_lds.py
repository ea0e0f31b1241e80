"""LDS: loads and stores of all widths, of two places at once, and atomic operations with and without return."""

from collections.abc import Callable
from functools import partial

import numpy as np

from tests.gpu.machine import atomics, harness
from tests.gpu.machine.harness import EXEC, LANES, LDS_BYTES, Array, Case, active, random_image, set_mask

WAVES = 2
READS = {
    "b32": (4, False, ""), "b64": (8, False, ""), "b96": (12, False, ""), "b128": (16, False, ""), "u8": (1, False, ""),
    "i8": (1, True, ""), "u16": (2, False, ""), "i16": (2, True, ""), "u8_d16": (1, False, "low"),
    "u8_d16_hi": (1, False, "high"), "i8_d16": (1, True, "low"), "i8_d16_hi": (1, True, "high"),
    "u16_d16": (2, False, "low"), "u16_d16_hi": (2, False, "high"),
}  # fmt: skip
WRITES = {
    "b8": (1, 0),
    "b8_d16_hi": (1, 16),
    "b16": (2, 0),
    "b16_d16_hi": (2, 16),
    "b32": (4, 0),
    "b64": (8, 0),
    "b96": (12, 0),
    "b128": (16, 0),
}
STEPS = {"2": 1, "2st64": 64}
_PARTS = (0, 1024, 2048, 3072)
_FILL = [
    f"global_load_dwordx4 v[244:247], v250, s[88:89] offset:{n}\nds_write_b128 v250, v[244:247] offset:{n}"
    for n in _PARTS
]
_SAVE = [
    f"ds_read_b128 v[244:247], v250 offset:{n}\nglobal_store_dwordx4 v250, v[244:247], s[88:89] offset:{n}"
    for n in _PARTS
]
_ALL_LANES = ("s_mov_b64 s[94:95], exec", "s_mov_b64 exec, -1", "v_lshlrev_b32_e32 v250, 2, v255")
BEFORE = "\n".join([*_ALL_LANES, *_FILL, "s_mov_b64 exec, s[94:95]", ""])
AFTER = "\n".join(["", "s_mov_b64 exec, -1", *_SAVE, "s_mov_b64 exec, s[94:95]"])
Content = Array
Change = Callable[[Content, Array, Array], None]


def case(text: str, v: Array, s: Array, content: Array) -> Case:
    """LDS is filled from the case's memory before, and copied there after."""
    return Case(BEFORE + text + AFTER, v, s, content)


def image(seed: int, distinct: bool) -> tuple[Array, Array, Array]:
    """v2: addresses that are multiples of 16; `distinct`: a different one for each lane."""
    v, s = random_image(WAVES, seed)
    random = np.random.default_rng(seed)
    lanes = random.permuted(np.tile(np.arange(LANES), (WAVES, 1)), axis=1)
    v[:, 2] = (lanes if distinct else random.integers(0, 64, (WAVES, LANES))) * 16
    set_mask(s, EXEC, random.random((WAVES, LANES)) < 0.8)
    return v, s, random.integers(0, 256, (WAVES, LDS_BYTES), np.uint8)


def registers(first: int, size: int, file: str = "v") -> str:
    """The registers of some bytes."""
    words = max(size // 4, 1)
    return f"{file}{first}" if words == 1 else f"{file}[{first}:{first + words - 1}]"


def at(content: Array, offsets: Array, size: int) -> Array:
    places = offsets.astype(np.int64)[..., None] + np.arange(size)
    return np.take_along_axis(content, places.reshape(WAVES, -1), 1).reshape(places.shape)


def words_of(data: Array) -> list[Array]:
    return [
        np.ascontiguousarray(data[..., 4 * n : 4 * n + 4]).view(np.uint32)[..., 0] for n in range(data.shape[-1] // 4)
    ]


def read_cases() -> list[tuple[Case, Array, Array]]:
    found = []
    for name, (size, signed, half) in READS.items():
        for offset in (0, 48):
            v, s, content = image(size, False)
            value = at(content, v[:, 2] + offset, size)
            if size < 4:
                number = np.ascontiguousarray(value).view(f"{'i' if signed else 'u'}{size}")[..., 0].astype(np.int64)
                word = (number & 0xFFFFFFFF).astype(np.uint32)
                halves = {"low": word & 0xFFFF, "high": word << 16}  # the other half becomes 0
                words = [halves.get(half, word)]
            else:
                words = words_of(value)
            want = v.copy()
            for n, word in enumerate(words):
                want[:, 4 + n] = np.where(active(s), word, v[:, 4 + n])
            tail = f" offset:{offset}" if offset else ""
            found.append((case(f"ds_read_{name} {registers(4, size)}, v2{tail}", v, s, content), want, content.copy()))
    for (two, step), size in ((pair, size) for pair in STEPS.items() for size in (4, 8)):
        for first, second in ((0, 1), (3, 2), (5, 0)) if step == 1 else ((0, 1), (2, 1)):
            v, s, content = image(size + first, False)
            want = v.copy()
            for n, place in enumerate((first, second)):
                for m, word in enumerate(words_of(at(content, v[:, 2] + place * step * size, size))):
                    register = 2 + n * size // 4 + m  # over the address
                    want[:, register] = np.where(active(s), word, v[:, register])
            text = f"ds_read{two}_b{8 * size} {registers(2, 2 * size)}, v2 offset0:{first} offset1:{second}"
            found.append((case(text, v, s, content), want, content.copy()))
    return found


def stored(v: Array, first: int, size: int, shift: int) -> Array:
    data = np.ascontiguousarray(np.moveaxis(v[:, first : first + 4], 1, 2)).view(np.uint8).reshape(WAVES, LANES, 16)
    return data[..., shift // 8 : shift // 8 + size]


def put_bytes(content: Array, enabled: Array, places: Array, data: Array) -> None:
    for wave, lane in np.argwhere(enabled):
        start = int(places[wave, lane])
        content[wave, start : start + data.shape[-1]] = data[wave, lane]


def write_cases() -> list[tuple[Case, Array, Array]]:
    found = []
    for name, (size, shift) in WRITES.items():
        v, s, content = image(size, True)
        want = content.copy()
        put_bytes(want, active(s), v[:, 2] + np.uint32(32), stored(v, 4, size, shift))
        found.append((case(f"ds_write_{name} v2, {registers(4, size)} offset:32", v, s, content), v, want))
    for (two, step), size in ((pair, size) for pair in STEPS.items() for size in (4, 8)):
        v, s, content = image(size, True)
        first, second = (0, 1) if step == 1 else (32 // size, 0)
        want = content.copy()
        for place, register in ((first, 4), (second, 8)):
            put_bytes(want, active(s), v[:, 2] + np.uint32(place * step * size), stored(v, register, size, 0))
        tail = f" offset0:{first} offset1:{second}"
        text = f"ds_write{two}_b{8 * size} v2, {registers(4, size)}, {registers(8, size)}{tail}"
        found.append((case(text, v, s, content), v, want))
    return found


def atomic_cases() -> list[tuple[Case, Array, Array]]:
    """Without return the lanes share places, with return each has its own."""
    found = []
    for name, (kind, rule) in atomics.of_lds().items():
        what, _, suffix = name.rpartition("_")
        for returns in (False, True):
            if what == "wrxchg" and not returns:
                continue
            v, s, content = image(len(name), True)
            size = atomics.SIZES[kind]
            v[:, 2] += 8
            atomics.corners_into(v, content, kind)
            want, after = content.copy(), v.copy()
            old = atomics.changed(want, active(s), v[:, 2] + np.uint32(16), v, (4, 6), kind, partial(rule))
            if returns:
                for n, word in enumerate(words_of(old)):
                    after[:, 8 + n] = np.where(active(s), word, v[:, 8 + n])
            operands = [registers(8, size)] if returns else []
            operands += ["v2", registers(4, size)] + ([registers(6, size)] if what in ("cmpst", "mskor") else [])
            mnemonic = f"ds_{what}_rtn_{suffix}" if returns else f"ds_{name}"
            found.append((case(f"{mnemonic} {', '.join(operands)} offset:16", v, s, content), after, want))
    return found


def cases() -> list[tuple[Case, Array, Array]]:
    return read_cases() + write_cases() + atomic_cases()


def test_lds() -> None:
    chosen = cases()
    wrong = []
    for (one, want, content), outcome in zip(chosen, harness.run([c for c, _, _ in chosen]), strict=True):
        text = one.text[len(BEFORE) : -len(AFTER)]
        if (outcome.v != want).any():
            place = tuple(np.argwhere(outcome.v != want)[0])
            wrong.append((text, place, hex(outcome.v[place]), hex(want[place])))
        if (one.memory != content).any():
            wrong.append((text, "memory", np.argwhere(one.memory != content)[:3].tolist()))
    assert not wrong, "\n".join(map(str, wrong[:30]))


def test_atomic_operations_on_one_place_all_count() -> None:
    v, s, content = image(3, False)
    v[:, 2], v[:, 4] = 64, 1
    content[:, 64:68] = 0
    harness.run([one := case("ds_add_u32 v2, v4", v, s, content)])
    assert one.memory is not None
    np.testing.assert_array_equal(np.ascontiguousarray(one.memory[:, 64:68]).view(np.uint32)[:, 0], active(s).sum(1))
