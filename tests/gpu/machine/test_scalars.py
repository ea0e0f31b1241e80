"""Scalar instructions: results, SCC, EXEC; operands of all kinds, 64-bit pairs, overlapping registers."""

import functools
from random import Random

import numpy as np

from tests.gpu.machine import harness
from tests.gpu.machine.harness import EXEC, M0, SCC, VCC, Array, Case, random_image
from tests.gpu.machine.scalar_rows import M32, M64, SAVES, WRITES, Scalar, rows
from tests.gpu.machine.values import tuples

WAVES = 96
Wanted = tuple[Case, Array]
SPECIAL = {"vcc": VCC, "exec": EXEC}


def read(s: Array, place: int, bits: int) -> list[int]:
    low = [int(x) for x in s[:, place]]
    return [a | int(b) << 32 for a, b in zip(low, s[:, place + 1], strict=True)] if bits == 64 else low


def write(s: Array, place: int, bits: int, values: list[int | None]) -> None:
    for wave, value in enumerate(values):
        if value is not None:
            s[wave, place] = value & M32
            if bits == 64:
                s[wave, place + 1] = value >> 32 & M32


def register(first: int, bits: int) -> str:
    return f"s[{first}:{first + 1}]" if bits == 64 else f"s{first}"


def case(name: str, row: Scalar, seed: int) -> Wanted:
    random = Random(f"{name}{seed}")
    v, s = random_image(WAVES, random.randrange(1 << 30))
    kinds = tuple("u64" if bits == 64 else "u32" for bits in row.sources)
    values = tuples(kinds, WAVES, random.randrange(1 << 30))
    names, operands = [], []
    for k, bits in enumerate(row.sources):
        place, wide = 4 + 2 * k, bits == 64
        if bits == -16:
            constant = random.choice((0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x1234))
            names.append(hex(constant))
            operands.append([constant] * WAVES)
            continue
        plain = seed == 0 or -16 in row.sources
        if not plain and random.random() < 0.3:
            constant = (
                random.choice((0, 1, 64, -1, -16, 0x40000000)) if not wide else random.choice((0, 1, 64, -1, -16))
            )
            names.append(str(constant) if constant != 0x40000000 else "2.0")
            operands.append([constant & (M64 if wide else M32)] * WAVES)
            continue
        if not plain and not wide and random.random() < 0.2 and not any("0x" in x for x in names):
            names.append(hex(literal := random.choice((0x12345678, 0xFFFFFF00, 0x80000001))))
            operands.append([literal] * WAVES)
            continue
        text = register(place, bits)
        if seed and random.random() < 0.15:
            text, place = ("vcc", VCC) if wide else ("m0", M0)
        write(s, place, bits, [int(x) for x in values[k]])
        names.append(text)
        operands.append(read(s, place, bits))
    s[:, SCC + 1 :] = s[:, M0, None]
    want = s.copy()
    for k in range(len(operands)):  # a later operand may have changed the register of an earlier one
        if names[k] in ("m0", "vcc"):
            operands[k] = read(s, M0 if names[k] == "m0" else VCC, row.sources[k])
    target = 4 if seed == 2 else 0
    arguments = [*operands, [int(x) for x in s[:, SCC]]]
    if row.onto:
        arguments.append(read(s, target, row.to))
    results = [row.compute(*x) for x in zip(*arguments, strict=True)]
    if row.to:
        write(want, target, row.to, results)
    if row.scc == "result":
        want[:, SCC] = [(x or 0) & ((1 << row.to) - 1) != 0 for x in results]
    elif not isinstance(row.scc, str):
        want[:, SCC] = [row.scc(*x) for x in zip(*arguments, strict=True)]
    written = [register(target, row.to)] if row.to else []
    return Case(f"{name} {', '.join([*written, *names])}", v, s), want


def saving(name: str, seed: int) -> Wanted:
    v, s = random_image(WAVES, seed)
    random = np.random.default_rng(seed)
    s[:, EXEC : EXEC + 2] = random.integers(0, 1 << 32, (WAVES, 2), np.uint32)
    s[:3, EXEC : EXEC + 2], s[:3, 4:6] = 0, 0
    want = s.copy()
    kind = "saveexec" if name in SAVES and seed < 10 else "wrexec"
    source, target = (4, 4) if seed % 2 else (4, 0)
    old = read(s, EXEC, 64)
    new = [SAVES[name](a, e) & M64 for a, e in zip(read(s, source, 64), old, strict=True)]
    write(want, target, 64, list(old if kind == "saveexec" else new))
    write(want, EXEC, 64, list(new))
    want[:, SCC] = [x != 0 for x in new]
    return Case(f"s_{name}_{kind}_b64 {register(target, 64)}, s[4:5]", v, s), want


def special() -> list[Wanted]:
    """Instructions whose operands are VCC, EXEC and their halves."""
    v, s = random_image(WAVES, 5)
    s[:, EXEC : EXEC + 2] = np.random.default_rng(5).integers(0, 1 << 32, (WAVES, 2), np.uint32)
    both, half, mode, literal = s.copy(), s.copy(), s.copy(), s.copy()
    both[:, EXEC : EXEC + 2] = s[:, VCC : VCC + 2] & s[:, EXEC : EXEC + 2]
    both[:, SCC] = both[:, EXEC : EXEC + 2].any(1)
    half[:, VCC] = s[:, EXEC + 1]
    mode[:, 0] = 0x2F
    literal[:, 0], literal[:, 1] = 0x12345678, 0
    return [
        (Case("s_and_b64 exec, vcc, exec", v, s), both),
        (Case("s_mov_b32 vcc_lo, exec_hi", v, s), half),
        (Case("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 2\ns_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 6)\n"
              "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\ns_or_b32 s0, s0, 15\ns_cmp_lg_u32 s7, s7", v, s),
         _scc(mode, 0)),
        (Case("s_mov_b64 s[0:1], 0x12345678", v, s), literal),
    ]  # fmt: skip


def _scc(s: Array, value: int) -> Array:
    s[:, SCC] = value
    return s


@functools.cache
def cases() -> list[Wanted]:
    found = [case(name, row, seed) for name, row in rows().items() for seed in range(4)]
    found += [saving(name, seed) for name in SAVES for seed in range(2)]
    return found + [saving(name, 10 + seed) for name in WRITES for seed in range(2)] + special()


def test_scalar_instructions() -> None:
    chosen, wrong = cases(), []
    for start in range(0, len(chosen), 50):
        batch = chosen[start : start + 50]
        for (one, want), outcome in zip(batch, harness.run([c for c, _ in batch]), strict=True):
            want[:, SCC + 1 :] = want[:, M0, None]
            if (outcome.s != want).any() or (outcome.v != one.v).any():
                wave, place = np.argwhere(outcome.s != want)[0]
                seen = [hex(one.s[wave, n]) for n in (4, 5, 6, 7, SCC)]
                wrong.append((one.text, int(place), seen, hex(outcome.s[wave, place]), hex(want[wave, place])))
    assert not wrong, "\n".join(map(str, wrong[:40]))
