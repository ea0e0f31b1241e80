"""Encrypted inputs that are unreadable before timing starts, and a verifiable cache sweep. Worker's side, GPU only.

A GPU's worker has to copy its inputs itself, so they are there before the call. They arrive encrypted, and the keys
arrive at the start barrier, so that the evaluator's clock includes all work on the values. Before the barrier opens,
the worker reads more memory than the GPU's caches hold. It sends a checksum that depends on all of that memory and on
another key. The baseline's worker has the same memory and gives the expected checksum.

The cipher is Philox 4x32-10 (Salmon et al., 2011) with a secret key and a secret half of its counter; `native.cpp`
implements it for the evaluator. There is one launch per tensor, and one for the sum. This module imports torch and
triton; import it only where they are used.
"""

# Triton would interpret annotations of a kernel's arguments.
# ruff: noqa: ANN001, ANN202
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from kernel_scientist.workers.native import Keys

GROUPS = tl.constexpr(1024)
"""Groups of 16 bytes (one counter each) per program."""
WORDS = tl.constexpr(8192)
"""Words of 8 bytes per program of the sum."""
STIR = tl.constexpr(0xD6E8FEB86659FD93 - (1 << 64))


@triton.jit
def _turn(words, facts):
    """Encrypt or decrypt int32 words. `facts`: both keys and the number of groups."""
    key, secret, groups = tl.load(facts), tl.load(facts + 1), tl.load(facts + 2)
    at = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    low, high = (at & 0xFFFFFFFF).to(tl.uint32), (at >> 32).to(tl.uint32)
    third = low * 0 + (secret & 0xFFFFFFFF).to(tl.uint32)
    fourth = low * 0 + ((secret >> 32) & 0xFFFFFFFF).to(tl.uint32)
    a, b, c, d = tl.philox(key, low, high, third, fourth, 10)  # pyright: ignore[reportGeneralTypeIssues]
    inside = at < groups
    place = words + at * 4
    tl.store(place, tl.load(place, mask=inside) ^ a.to(tl.int32, bitcast=True), mask=inside)
    tl.store(place + 1, tl.load(place + 1, mask=inside) ^ b.to(tl.int32, bitcast=True), mask=inside)
    tl.store(place + 2, tl.load(place + 2, mask=inside) ^ c.to(tl.int32, bitcast=True), mask=inside)
    tl.store(place + 3, tl.load(place + 3, mask=inside) ^ d.to(tl.int32, bitcast=True), mask=inside)


@triton.jit
def _sum(words, facts, out):
    """Add up int64 words, each mixed with a key. `facts`: the key and the number of words."""
    key, count = tl.load(facts), tl.load(facts + 1)
    at = tl.program_id(0).to(tl.int64) * WORDS + tl.arange(0, WORDS)
    z = tl.load(words + at, mask=at < count, other=0) ^ key
    z = (z ^ ((z >> 32) & 0xFFFFFFFF)) * STIR
    z = z ^ ((z >> 29) & 0x7FFFFFFFF)
    tl.atomic_add(out, tl.sum(tl.where(at < count, z * z, 0), axis=0))


def crypt(blocks: Sequence[torch.Tensor], keys: Sequence[Keys]) -> None:
    """Encrypt or decrypt blocks of int64 words (an even number each) with their keys.

    Each block is one launch on the current stream.
    """
    for block, (key, secret) in zip(blocks, keys, strict=True):
        words = block.view(torch.int32)
        facts = torch.tensor([_signed(key), _signed(secret), words.numel() // 4]).to(block.device)
        _turn[(triton.cdiv(words.numel() // 4, GROUPS.value),)](words, facts)


class SweepMemory:
    """Memory larger than the caches, with the same secret content in all workers of a pool."""

    def __init__(self, device: str, size: int, seed: Keys) -> None:
        self._words = torch.zeros(size // 8, dtype=torch.int64, device=device)
        crypt([self._words], [seed])

    def sweep(self, key: int) -> int:
        """Read the whole memory; return the checksum that proves it."""
        facts = torch.tensor([_signed(key), self._words.numel(), 0]).to(self._words.device)
        _sum[(triton.cdiv(self._words.numel(), WORDS.value),)](self._words, facts, facts[2:])
        return int(facts[2].item()) % (1 << 64)


def _signed(word: int) -> int:
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)
