"""Hostile replies and broken submissions by the thousand: every one is a verdict, in time, and none of them is `ok`."""

import contextlib
import ctypes
import json
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
import torch

from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox import protocol
from kernel_scientist.workers import channel, client
from kernel_scientist.workers.client import SO_PASSCRED, WorkerClient
from kernel_scientist.workers.native import NativeHarness
from kernel_scientist.workers.shared_memory import SharedMemory
from kernel_scientist.workers.worker_pool import WorkerPool, native_library
from tests.conftest import ROOT, cpu_seconds

REPLIES = 10_000
"""Mutated replies in all, spread over hostile workers that each get a few in."""
SUBMISSIONS = 150
CASES = (Case(sizes={"size": 64}, seed=1),)
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1 << 70,
    1e308,
    float("nan"),
    "",
    "x",
    [],
    [[]],
    {},
    {"a": {}},
    [None] * 9,
    "float32",
]


class HostileWorker:
    """Speaks the protocol, answers with zeros where a kernel's output is asked for, and mutates some replies."""

    def __init__(self, sock: socket.socket, rng: random.Random, memory: SharedMemory) -> None:
        self.sock, self.rng, self.memory = sock, rng, memory
        self.shape: list[int] = []
        self.mutated = 0

    def serve(self) -> None:
        with contextlib.suppress(OSError, protocol.WireError, ValueError), self.sock:
            self.send({"op": "hello", "sandbox": ["none"]}, [])
            while True:
                request, _ = protocol.receive(self.sock, 5)
                self.answer(request)

    def answer(self, request: protocol.Header) -> None:
        reply, buffers = self.honest(request)
        if self.rng.random() < 0.25:
            self.mutated += 1
            self.rng.choice([self.odd_field, self.odd_bytes, self.other_buffers, self.noise, self.lie])(reply, buffers)
        else:
            self.send(reply, buffers)

    def honest(self, request: protocol.Header) -> tuple[protocol.Header, list[bytes]]:
        match request["op"]:
            case "load":
                return {"op": "loaded"}, []
            case "prepare":
                self.shape = request["items"][0]["data"]["items"][0]["shape"]
                return {"op": "ready"}, []
            case "go":
                self.wait_at_the_barrier()
                return {"op": "done", "reading": [1000, 1000, 0, 0], "outputs": [self.output()], "inputs": []}, [
                    bytes(2 * self.shape[0])
                ]
            case _:
                found = {"operations": {}, "native_calls": 1}
                return {"op": "observed", **found, "outputs": [self.output()]}, [bytes(2 * self.shape[0])]

    def output(self) -> protocol.Header:
        data = {"kind": "tensor", "dtype": "float16", "shape": self.shape, "order": [0], "buffer": 0}
        place = {"strides": [1], "first": 0, "storage_bytes": 2 * self.shape[0], "input": 1, "storage": 64}
        return {**data, **place, "device": "cpu"}

    def wait_at_the_barrier(self) -> None:
        """Behave as the native part does, in the memory that is shared."""
        alive, is_open = (ctypes.c_uint32.from_address(self.memory.address + at) for at in (0, 4))
        is_open.value, deadline = 0, time.monotonic() + 1
        self.sock.sendall(b"r")
        while not is_open.value and time.monotonic() < deadline:
            alive.value += 1
            time.sleep(0.0001)
        self.sock.sendall(struct.pack("<q", -1))
        self.sock.recv(1)

    def odd_field(self, reply: protocol.Header, buffers: list[bytes]) -> None:
        """Something odd in place of some value, at any depth."""
        spots: list[tuple[Any, Any]] = []

        def walk(node: Any) -> None:
            for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []:
                spots.append((node, key))
                walk(node[key])

        walk(reply)
        node, key = self.rng.choice(spots)
        node[key] = self.rng.choice(ODD)
        self.send(reply, buffers)

    def odd_bytes(self, reply: protocol.Header, buffers: list[bytes]) -> None:
        text = bytearray(json.dumps({**reply, "buffers": [len(b) for b in buffers]}).encode())
        for _ in range(self.rng.randrange(1, 4)):
            text[self.rng.randrange(len(text))] = self.rng.randrange(256)
        self.sock.sendall(struct.pack("<I", len(text)) + text + b"".join(buffers))

    def other_buffers(self, reply: protocol.Header, _buffers: list[bytes]) -> None:
        self.send(reply, [self.rng.randbytes(self.rng.randrange(200)) for _ in range(self.rng.randrange(4))])

    def noise(self, _reply: protocol.Header, _buffers: list[bytes]) -> None:
        deep = b'{"op":' + b"[" * 100_000
        choices = [
            self.rng.randbytes(self.rng.randrange(60)),
            struct.pack("<I", 1 << 31),
            struct.pack("<I", len(deep)) + deep,
        ]
        self.sock.sendall(self.rng.choice(choices))
        self.sock.close()

    def lie(self, reply: protocol.Header, _buffers: list[bytes]) -> None:
        reply["op"] = self.rng.choice(
            ["loaded", "ready", "done", "output", "quiet", "failed", "build", "hello", "pong"]
        )
        self.send(reply, [])

    def send(self, header: protocol.Header, buffers: list[bytes]) -> None:
        protocol.send(self.sock, header, list(buffers))


class HostilePool(WorkerPool):
    """A pool whose workers are threads of this test."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(Harness(call_timeout_s=0.3, import_timeout_s=0.3, stages=1, blocks=2, noise_runs=0))
        self.rng = rng
        self.mutated = 0
        self.native = NativeHarness(str(native_library()))

    @contextlib.contextmanager
    def worker(self, timing: bool = False, observed: bool = False) -> Generator[WorkerClient]:
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, SO_PASSCRED, 1)
        inputs = SharedMemory(1 << 20, self.native)
        worker = HostileWorker(theirs, self.rng, inputs)
        thread = threading.Thread(target=worker.serve)
        thread.start()
        read, write = os.pipe()
        log = os.memfd_create("log")
        os.write(write, b"-9")
        try:
            found = WorkerClient(ours, log, read, self.harness, threading.Event(), 0, inputs, inputs, self.native)
            found.greet()
            yield found
        finally:
            ours.close()
            thread.join()
            self.mutated += worker.mutated
            inputs.close()
            for descriptor in (read, write, log):
                os.close(descriptor)


@pytest.mark.slow
def test_no_reply_breaks_the_evaluator_or_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (channel, client):
        monkeypatch.setattr(module, "TRANSFER_TIMEOUT_S", 0.3)
    rng = random.Random(20251120)
    seen: dict[Verdict, int] = {}
    with HostilePool(rng) as shop:
        evaluator = Evaluator(problems.load(ROOT / "problems/identity"), "cpu", shop.harness, shop)
        kernel = Kernel(name="k", language="cpp", source="def custom_kernel(d): ...")
        start = time.monotonic()
        while shop.mutated < REPLIES:
            evaluation = evaluator.check(kernel, Evaluation(verdict=Verdict.OK), CASES)
            seen[evaluation.verdict] = seen.get(evaluation.verdict, 0) + 1
        assert time.monotonic() - start < 240
    assert Verdict.OK not in seen, seen
    assert {Verdict.INCORRECT, Verdict.REJECTED} <= set(seen)


def test_mutated_outputs_are_never_right() -> None:
    """Whatever a description says, only the right bytes in the right form pass."""
    problem = problems.load(ROOT / "problems/identity")
    rng = random.Random(7)
    from kernel_scientist.evaluation.comparison import Comparison, described
    from kernel_scientist.evaluation.inputs import InputGenerator
    from kernel_scientist.sandbox.failure import KernelFailure

    comparison, inputs = Comparison(problem), InputGenerator(problem)
    passed = 0
    for _ in range(2000):
        drawn = inputs.draw(CASES[0])
        right = drawn.data[0]
        header = {**described(right), "first": 0, "storage_bytes": right.nbytes, "input": 1, "storage": 64}
        data = bytearray(right.numpy().tobytes())
        comparison.require(drawn, header, [data])
        broken, bytes_ = dict(header), bytearray(data)
        if rng.random() < 0.5:
            broken[rng.choice(["kind", "dtype", "shape", "order", "strides", "first", "device"])] = rng.choice(ODD)
        else:
            bytes_[rng.randrange(len(bytes_))] ^= 1 << rng.randrange(8)
        try:
            comparison.require(drawn, broken, [bytes_])
            passed += 1
            # a float16 zero has two representations
            assert bytes_ == data or torch.equal(protocol.decode(broken, [bytes_]), right)
        except KernelFailure as failure:
            assert failure.verdict in (Verdict.INCORRECT, Verdict.REJECTED)
    assert passed < 100


@pytest.mark.slow
def test_broken_submissions_are_verdicts() -> None:
    """Seeds with lines and characters gone, doubled, swapped or replaced, and plain garbage."""
    rng = random.Random(5)
    seeds = [p.read_text() for p in sorted((ROOT / "problems/identity/seeds").glob("cpp_*.py"))]
    limits = Harness(
        call_timeout_s=1, import_timeout_s=2, build_timeout_s=20, memory_mib=256, output_mib=1, noise_runs=0
    )
    with WorkerPool(limits) as shop:
        evaluator = Evaluator(problems.load(ROOT / "problems/identity"), "cpu", limits, shop)
        right = 0
        for number in range(SUBMISSIONS):
            source = rng.choice(MUTATIONS)(rng, rng.choice(seeds))
            kernel = Kernel(name=f"k{number}", language="cpp", source=source)
            before_s = cpu_seconds()
            evaluation = evaluator.check(kernel, evaluator.compile(kernel), CASES)
            assert cpu_seconds() - before_s < 30
            assert evaluation.verdict is not Verdict.INFRASTRUCTURE
            right += evaluation.verdict is Verdict.OK
        assert 0 < right < SUBMISSIONS  # a comment may go without harm


def cut(rng: random.Random, source: str) -> str:
    a, b = sorted(rng.randrange(len(source)) for _ in range(2))
    return source[:a] + source[min(b, a + 30) :]


def flip(rng: random.Random, source: str) -> str:
    letters = list(source)
    for _ in range(rng.randrange(1, 6)):
        letters[rng.randrange(len(letters))] = chr(rng.choice([0, 9, 10, 34, 39, 40, 92, 123, 255, 0x202E, 0x1F600]))
    return "".join(letters)


def swap(rng: random.Random, source: str) -> str:
    lines = source.splitlines()
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def double(rng: random.Random, source: str) -> str:
    lines = source.splitlines()
    at = rng.randrange(len(lines))
    return "\n".join(lines[:at] + [lines[at]] * rng.randrange(2, 50) + lines[at:])


def number(rng: random.Random, source: str) -> str:
    digits = [i for i, c in enumerate(source) if c.isdigit()]
    at = rng.choice(digits)
    return source[:at] + rng.choice(["0", "-1", "99999999999", "1.5", "x"]) + source[at + 1 :]


def garbage(rng: random.Random, _source: str) -> str:
    return rng.randbytes(rng.randrange(300)).decode("latin-1")


MUTATIONS: list[Callable[[random.Random, str], str]] = [cut, flip, swap, double, number, garbage]
