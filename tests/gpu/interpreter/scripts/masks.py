"""The masks of a GPU's worker against the verifier's, by Triton's interpreter: a program, silent if all is well."""

import random
import sys

import torch

from kernel_scientist.workers.native import Keys, NativeHarness
from kernel_scientist.workers.untrusted import input_masking
from kernel_scientist.workers.untrusted.buffers import MASKED_BYTES, block


def main() -> None:
    native, rng = NativeHarness(sys.argv[1]), random.Random(7)

    def keys() -> Keys:
        return rng.choice((0, 2**64 - 1, rng.getrandbits(64))), rng.getrandbits(64)

    for size in (
        0,
        1,
        15,
        16,
        17,
        4096,
        input_masking.GROUPS.value * MASKED_BYTES,
        2 * input_masking.GROUPS.value * MASKED_BYTES + 5,
    ):
        plain, own = [block(rng.randbytes(n), rng.randbytes(1024)) for n in (size, 3)], [keys(), keys()]
        masked = [bytearray(part) for part in plain]
        for part, pair in zip(masked, own, strict=True):
            native.mask(part, pair)
        assert all(
            a[i : i + 16] != b[i : i + 16] for a, b in zip(plain, masked, strict=True) for i in range(0, len(a), 16)
        )
        words = [torch.frombuffer(part, dtype=torch.int64).clone() for part in masked]
        input_masking.crypt(words, own)
        assert [part.numpy().tobytes() for part in words] == plain, size

    zeros, other = bytearray(1 << 20), bytearray(1 << 20)
    native.mask(zeros, (3, 4))
    native.mask(other, (3, 5))
    words, others = (torch.frombuffer(part, dtype=torch.int64) for part in (zeros, other))
    bits = torch.stack([(words >> i) & 1 for i in range(64)]).float().mean(dim=1)
    assert len(set(words.tolist())) == words.numel() and bits.min() > 0.48 and bits.max() < 0.52
    assert not torch.isin(others, words).any()

    trash, same = (input_masking.SweepMemory("cpu", 80_000, (1, 2)) for _ in range(2))
    told = trash.sweep(5)
    assert (
        told == same.sweep(5)
        and 0 <= told < 2**64
        and told != trash.sweep(6) != input_masking.SweepMemory("cpu", 80_000, (1, 3)).sweep(6)
    )
    for place in (0, 8191, 8192, 9999):
        trash._words[place] ^= 1
        assert trash.sweep(5) != told
        trash._words[place] ^= 1
    assert trash.sweep(5) == told


if __name__ == "__main__":
    main()
