"""The protocol: what is sent arrives; what is garbage is refused."""

import json
import socket
import struct
import threading

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel_scientist.sandbox import protocol
from kernel_scientist.workers import validation

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fnuz, torch.int64, torch.uint8, torch.bool]


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    tensor = torch.randint(0, 2, shape).to(draw(st.sampled_from(DTYPES)))
    if tensor.dim() > 1 and draw(st.booleans()):
        tensor = tensor.permute(draw(st.permutations(range(tensor.dim()))))
    if tensor.dim() and tensor.shape[0] > 1 and draw(st.booleans()):
        tensor = tensor[::2]
    return tensor


plain = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text(max_size=8)
)
trees = st.recursive(
    st.one_of(tensors(), plain),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=150)
@given(trees)
@example(torch.zeros(2)[::2])
@example(torch.zeros(3, 2, dtype=torch.bfloat16)[::2, ::2].T)
def test_what_is_sent_arrives(value: object) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        buffers: list[protocol.Buffer] = []
        header = {"op": "x", "data": protocol.encode(value, buffers)}
        sender = threading.Thread(target=protocol.send, args=(ours, header, buffers))
        sender.start()
        got, raw = protocol.receive(theirs, 5)
        sender.join()
    assert got["op"] == "x"
    assert_same(protocol.decode(got["data"], raw), value)


def assert_same(got: object, want: object) -> None:
    if isinstance(want, torch.Tensor):
        assert isinstance(got, torch.Tensor) and got.dtype == want.dtype and got.shape == want.shape
        assert torch.equal(got.float(), want.float())
        dense = protocol.dense_order(want) is not None
        sizes_above_one = [d for d in range(want.dim()) if want.shape[d] > 1]
        if dense and want.numel():
            assert [got.stride(d) for d in sizes_above_one] == [want.stride(d) for d in sizes_above_one]
    elif isinstance(want, (list, tuple)):
        assert type(got) is type(want) and len(got) == len(want)  # type: ignore[arg-type]
        for a, b in zip(got, want, strict=True):  # type: ignore[arg-type]
            assert_same(a, b)
    elif isinstance(want, dict):
        assert isinstance(got, dict) and list(got) == list(want)
        for key in want:
            assert_same(got[key], want[key])
    else:
        assert got == want and type(got) is type(want)


@given(st.binary(max_size=60))
def test_garbage_is_refused(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(data)
        ours.close()
        with pytest.raises((protocol.WireError, ConnectionError)):
            protocol.receive(theirs, 2)
            raise protocol.WireError("an empty but valid message is not in 60 random bytes")


@pytest.mark.parametrize(
    "header",
    [
        {"op": "x"},
        {"buffers": "many"},
        {"buffers": [-1]},
        {"buffers": [1 << 40]},
        [],
        "x",
        {"buffers": [10**4200] * 2},
        {"buffers": [0] * 5000},
    ],
)
def test_a_header_that_lies_about_its_buffers_is_refused(header: object) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        text = json.dumps(header).encode()
        ours.sendall(struct.pack("<I", len(text)) + text)
        with pytest.raises(protocol.WireError):
            protocol.receive(theirs, 2, limit=1 << 20)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"kind": "tensor", "dtype": "float32", "shape": [4], "order": [0], "buffer": 3},
        {"kind": "tensor", "dtype": "float32", "shape": [5], "order": [0], "buffer": 0},
        {"kind": "tensor", "dtype": "Tensor", "shape": [4], "order": [0], "buffer": 0},
        {"kind": "tensor", "dtype": "float32", "shape": [-4], "order": [0], "buffer": 0},
        {"kind": "tensor", "dtype": "float64", "shape": [1], "order": [0], "buffer": 1},
        {"kind": "tensor", "dtype": "float32", "shape": [4], "order": [9], "buffer": 0},
        {"kind": "pickle", "value": "x"},
        {"kind": "list"},
        {"kind": "list", "items": 3},
    ],
)
def test_a_description_that_does_not_fit_its_bytes_is_refused(spec: protocol.Header) -> None:
    with pytest.raises(protocol.WireError):
        protocol.decode(spec, [bytearray(16), bytearray(7)])


def test_a_source_as_long_as_may_be_built_arrives_and_no_endless_one() -> None:
    source = ("x\n" * validation.MOST_SOURCE)[: validation.MOST_SOURCE]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=protocol.send, args=(ours, {"op": "build", "source": source}))
        sender.start()
        assert protocol.receive(theirs, 5)[0]["source"] == source
        sender.join()
        ours.sendall(struct.pack("<I", 1 << 24))
        with pytest.raises(protocol.WireError, match="which is not allowed"):
            protocol.receive(theirs, 2)


def test_silence_ends_in_a_timeout_and_objects_are_not_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        protocol.receive(theirs, 0.05)
    with pytest.raises(protocol.WireError, match="object cannot be sent"):
        protocol.encode([object()], [])
