"""Inputs that nobody can read before the gate opens on them, and a sweep that nobody can leave out. A GPU's worker.

A GPU's worker has to copy its inputs itself, so they are there before the call. They come masked, and the two keys come
when the worker stands before the gate: what is done with the values from then on is on the verifier's clock. Then the
worker reads more memory than the GPU's caches hold and says, before the gate opens, a sum that depends on all of it and
on a third key; the reference's worker, which has the same memory, says what is right.

With torch's own operations, which are there for every GPU and need no compiler. `shim.cpp` computes the same pad.
Imports only the standard library and torch.
"""

from collections.abc import Sequence

import torch

PLACE, PAD = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
CHUNK = 1 << 24
"""Words that are worked on at once: what is in between takes three times as much memory, and few launches are quick."""
WORD = 8
SWEEP_BYTES = 768 << 20
"""Three times MI300X's Infinity Cache; 256 MB would just equal it."""


def signed(word: int) -> int:
    """Return 64 bits as torch holds them."""
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)


class Masks:
    """The pad, and the sum, on one device. Work is queued on the current stream; nothing is awaited."""

    def __init__(self, device: str, words: int = CHUNK) -> None:
        self._order = torch.arange(words, dtype=torch.int64, device=device).mul_(signed(PLACE))
        self._pad, self._shifted = torch.empty_like(self._order), torch.empty_like(self._order)

    def turn(self, blocks: Sequence[torch.Tensor], keys: tuple[int, int]) -> None:
        """Make int64 words readable with the keys that they were masked with, or unreadable.

        No part of the pad is used for two of the blocks: of one of them the values may be known.
        """
        place, chunk = 0, self._order.numel()
        for words in (part for block in blocks for part in block.split(chunk)):
            z = torch.add(self._order[: words.numel()], signed(place * PLACE + keys[0]), out=self._pad[: words.numel()])
            self._stir(z)
            z.add_(signed(keys[1]))
            self._stir(z)
            words.bitwise_xor_(z)
            place += words.numel()

    def sum(self, memory: torch.Tensor, key: int) -> torch.Tensor:
        """Return one int64 that depends on every word and on the key, and on no order."""
        sums: list[torch.Tensor] = []
        for words in memory.split(self._order.numel()):
            z = torch.bitwise_xor(words, signed(key), out=self._pad[: words.numel()])
            self._stir(z)
            sums.append(z.mul_(z).sum())
        return torch.stack(sums).sum()

    def _stir(self, z: torch.Tensor) -> None:
        """Do a round of `pad` in `shim.cpp`; torch's shift keeps the sign, which the mask takes away."""
        shifted = self._shifted[: z.numel()]
        torch.bitwise_right_shift(z, 32, out=shifted)
        z.bitwise_xor_(shifted.bitwise_and_((1 << 32) - 1)).mul_(signed(PAD))
        torch.bitwise_right_shift(z, 29, out=shifted)
        z.bitwise_xor_(shifted.bitwise_and_((1 << 35) - 1))


class Trash:
    """Memory that no cache holds, the same in all workers of a laboratory, of which nobody knows how it came about."""

    def __init__(self, masks: Masks, device: str, size: int, seed: tuple[int, int]) -> None:
        self._masks = masks
        self._words = torch.zeros(size // WORD, dtype=torch.int64, device=device)
        masks.turn([self._words], seed)

    def sweep(self, key: int) -> int:
        """Read it all; return the sum that tells it."""
        return int(self._masks.sum(self._words, key).item()) % (1 << 64)
