"""Atomic operations on global memory: buffer, global and flat, with and without return of the former value."""

import numpy as np

from tests.gpu.machine import atomics, harness
from tests.gpu.machine.harness import Array, Case, active
from tests.gpu.machine.test_lds import image, registers, words_of
from tests.gpu.machine.test_vector_memory import POINTER, RESOURCE


def cases() -> list[tuple[Case, Array, Array]]:
    found = []
    for name, (kind, rule) in atomics.of_memory().items():
        size = atomics.SIZES[kind]
        for space in ("global", "flat", "buffer"):
            for returns in (False, True):
                v, s, content = image(len(name) + returns, True)
                v[:, 2] += 8
                atomics.corners_into(v, content, kind)
                pair = name.startswith("cmpswap")
                if pair:  # both data lie in one tuple of registers
                    v[:, 4 + size // 4 : 4 + size // 2] = v[:, 6 : 6 + size // 4]
                second = 4 + size // 4 if pair else 6
                before, want, after = content.copy(), content.copy(), v.copy()
                offset = 24
                old = atomics.changed(want, active(s), v[:, 2] + np.uint32(offset), v, (4, second), kind, rule)
                data = registers(4, size * (2 if pair else 1))
                if returns:
                    to = 4 if space == "buffer" else 8
                    for n, word in enumerate(words_of(old)):
                        after[:, to + n] = np.where(active(s), word, v[:, to + n])
                result = [registers(8, size)] if returns and space != "buffer" else []
                operands = {
                    "global": [*result, "v2", data, "s[88:89]"],
                    "flat": [*result, "v[10:11]", data],
                    "buffer": [data, "v2", "s[92:95]", "0 offen"],
                }[space]
                set_up = {"flat": POINTER, "buffer": RESOURCE.format(stride=0, records=4096)}.get(space, "")
                tail = f" offset:{offset}" + (" sc0" if returns else "")
                text = f"{set_up}{space}_atomic_{name} {', '.join(operands)}{tail}"
                found.append((Case(text, v, s, before), after, want))
    return found


def test_atomic_operations() -> None:
    chosen = cases()
    wrong = []
    for (one, want, content), outcome in zip(chosen, harness.run([c for c, _, _ in chosen]), strict=True):
        text = one.text.splitlines()[-1]
        same = outcome.v == want
        same[:, 10:12] = True  # the address
        if not same.all():
            wrong.append((text, np.argwhere(~same)[:2].tolist()))
        if (one.memory != content).any():
            wrong.append((text, "memory", np.argwhere(one.memory != content)[:3].tolist()))
    assert not wrong, "\n".join(map(str, wrong[:30]))
