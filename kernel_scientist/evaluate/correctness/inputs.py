"""What a kernel is called on: values nobody has seen, at times at old addresses, at times almost the old ones."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from kernel_scientist.problems.taskfolder import Problem, Profile, secret_seed
from kernel_scientist.records.kernel import Case
from kernel_scientist.sandbox import protocol
from kernel_scientist.workers.native import Keys, NativeHarness
from kernel_scientist.workers.shared_memory import SharedMemory
from kernel_scientist.workers.untrusted.buffers import GUARD_BYTES, block, pieces
from kernel_scientist.workers.untrusted.outputs import tensors

POISONS = (0xFF, 0x5A, 0x3C)
"""Bytes a buffer is filled with before it is written: not-a-number, large garbage, and garbage near one."""
RUN_BYTES = 512
"""Length of the piece that is changed to make a neighbour: more than a fingerprint of samples can rely on to see."""


@dataclass(frozen=True)
class Delivery:
    """Inputs for one call of every contestant."""

    case: Case
    data: Any
    """The verifier's own copy; a kernel never sees its memory."""
    fresh: bool
    """Whether they are put at new addresses."""
    poison: int
    keys: tuple[Keys, ...] = ()
    """What each tensor that is only read is masked with on its way to a GPU's worker (`masks`)."""
    sweep: int = 0
    """The key of the sweep before a call on them, there."""

    @property
    def bytes(self) -> int:
        """Size of all inputs together."""
        items = self.data if isinstance(self.data, tuple) else (self.data,)
        return sum(x.nbytes for x in items if isinstance(x, torch.Tensor))


class Inputs:
    """Draws deliveries for one problem. Chance comes from the system, so no kernel can foresee it."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self._rng = problem, random.SystemRandom()
        self._static: dict[str, dict[int, Any]] = {}

    def renew(self) -> None:
        """Forget the static inputs: the next ones drawn are new."""
        self._static = {}

    def draw(self, case: Case, seed: int | None = None) -> Delivery:
        """Make new inputs, from a secret seed if none is given; those the problem calls static stay until `renew`."""
        data = self.problem.generate(case, secret_seed(self._rng) if seed is None else seed)
        if positions := self.problem.policy.static:
            kept = self._static.setdefault(case.name, {i: data[i] for i in positions})
            data = tuple(kept.get(i, x) for i, x in enumerate(data))
        return self._delivery(case, data)

    def secret(self, profile: Profile) -> Case | None:
        """Draw a case off the list."""
        return profile.secret(self._rng)

    def stressed(self, case: Case, scales: dict[int, float]) -> Delivery:
        """Make new inputs with some of them scaled (lab.yml: stress)."""
        items = list(self.problem.generate(case, secret_seed(self._rng)))
        for position, scale in scales.items():
            items[position] = (items[position].to(torch.float32) * scale).to(items[position].dtype)
        return self._delivery(case, tuple(items))

    def neighbour(self, delivery: Delivery) -> Delivery:
        """Change a short piece of one input: a cache keyed by a sample of the values takes it for the old one."""
        if not isinstance(delivery.data, tuple):
            return self._delivery(delivery.case, delivery.data)
        items = list(delivery.data)  # pyright: ignore[reportUnknownArgumentType]
        fixed = (*self.problem.writes, *self.problem.policy.static)
        choices = [i for i, x in enumerate(items) if i not in fixed and _can_vary(x)]
        if choices:
            position = self._rng.choice(choices)
            items[position] = self._turned(items[position])
        return self._delivery(delivery.case, tuple(items))

    def another(self, delivery: Delivery) -> Delivery:
        """Make other inputs of the same form; where a form depends on chance, almost the same ones."""
        drawn = self.draw(delivery.case)
        forms, theirs = ([protocol.form(t) for t, _, _ in self._tensors(one)] for one in (drawn, delivery))
        return drawn if forms == theirs else self.neighbour(delivery)

    def verified(self, fraction: float) -> bool:
        """Whether this call's output is to be compared; nobody can tell beforehand."""
        return self._rng.random() < fraction

    def lot(self, count: int, most: int) -> list[int]:
        """Draw up to `most` numbers below `count`; nobody can tell beforehand which."""
        return sorted(self._rng.sample(range(count), min(count, most)))

    def placed(self, delivery: Delivery, memory: SharedMemory, slot: int) -> protocol.Header:
        """Return the message that tells a worker where its inputs will be."""
        places = iter(enumerate(self._tensors(delivery)))

        def describe(value: Any) -> protocol.Header:
            if not isinstance(value, torch.Tensor):
                return _tree(value, describe)
            index, (tensor, writable, static) = next(places)
            spot = memory.place(slot, index, tensor.nbytes, delivery.fresh and not static)
            return {**protocol.form(tensor).header(), "writable": writable, "place": spot}

        return describe(delivery.data)

    def write(self, delivery: Delivery, memory: SharedMemory, slot: int, native: NativeHarness) -> None:
        """Put the values where they were announced; what is to be written is garbage."""
        for index, (tensor, writable, _) in enumerate(self._tensors(delivery)):
            memory.write(native, slot, index, delivery.poison if writable else tensor)

    def message(self, delivery: Delivery) -> tuple[protocol.Header, list[protocol.Buffer]]:
        """Return inputs as a message; what is to be written is garbage."""
        buffers: list[protocol.Buffer] = []
        found = iter(self._tensors(delivery))

        def describe(value: Any) -> protocol.Header:
            if not isinstance(value, torch.Tensor):
                return _tree(value, describe)
            tensor, writable, _ = next(found)
            return {
                **protocol.encode(_filled(tensor, delivery.poison) if writable else tensor, buffers),
                "writable": writable,
            }

        return describe(delivery.data), buffers

    def masked(self, delivery: Delivery, native: NativeHarness) -> tuple[protocol.Header, Sequence[bytearray], int]:
        """Return inputs as a message that nobody can read without the delivery's keys, and their digest.

        The digest tells what a kernel may not write: inputs that are only to be read, and what lies beside them all.
        What is to be written is garbage that anybody may know, so it is not masked: that would give the pad away.
        """
        header, buffers = self.message(delivery)
        blocks: list[bytearray] = []
        places: list[tuple[int, int]] = []
        secret: list[bytearray] = []
        for (_, writable, _), data in zip(self._tensors(delivery), buffers, strict=True):
            one = block(data, self._rng.randbytes(2 * GUARD_BYTES))
            places += pieces(one, len(data), writable)
            blocks.append(one)
            secret += [] if writable else [one]
        digest = native.pin(places)
        for one, keys in zip(secret, delivery.keys, strict=True):
            native.mask(one, keys)
        return header, blocks, digest

    def _tensors(self, delivery: Delivery) -> list[tuple[torch.Tensor, bool, bool]]:
        """Return tensor, whether it is to be written, whether it stays from call to call, in the order of the tree."""
        items = delivery.data if isinstance(delivery.data, tuple) else (delivery.data,)
        writes, static = self.problem.writes, self.problem.policy.static
        return [(t, i in writes, i in static) for i, item in enumerate(items) for t in tensors(item)]

    def _delivery(self, case: Case, data: Any) -> Delivery:
        fresh, poison = self._rng.random() < 0.5, self._rng.choice(POISONS)
        plain = Delivery(case, data, fresh, poison)
        keys = tuple((self._word(), self._word()) for _, writable, _ in self._tensors(plain) if not writable)
        return replace(plain, keys=keys, sweep=self._word())

    def _word(self) -> int:
        return self._rng.getrandbits(64)

    def _turned(self, tensor: torch.Tensor) -> torch.Tensor:
        """Rotate a short run of elements: values that were valid stay valid."""
        order = protocol.dense_order(tensor) or list(range(tensor.dim()))
        copy = tensor.clone(memory_format=torch.preserve_format)
        flat = copy.permute(order).reshape(-1)
        length = min(flat.numel(), max(2, RUN_BYTES // tensor.element_size()))
        start = self._rng.randrange(flat.numel() - length + 1)
        run = flat.view(_raw(tensor.dtype))[start : start + length]
        run.copy_(run.roll(1 + self._rng.randrange(length - 1)))
        return copy


def _tree(value: Any, describe: Callable[[Any], protocol.Header]) -> protocol.Header:
    """Describe what is no tensor."""
    if isinstance(value, (list, tuple)):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return {"kind": "tuple" if isinstance(value, tuple) else "list", "items": [describe(v) for v in items]}
    if isinstance(value, dict):
        named: dict[Any, Any] = value
        return {"kind": "dict", "items": {str(k): describe(v) for k, v in named.items()}}
    return protocol.encode(value, [])


def _filled(tensor: torch.Tensor, byte: int) -> torch.Tensor:
    return torch.full((tensor.nbytes,), byte, dtype=torch.uint8).view(tensor.dtype).reshape(tensor.shape)


def _can_vary(value: object) -> bool:
    """Whether a piece may be moved: floating-point values mean the same anywhere, an index may not."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return False
    return value.numel() > 1 and protocol.dense_order(value) is not None


def _raw(dtype: torch.dtype) -> torch.dtype:
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(dtype.itemsize, dtype)
