"""Messages between evaluator and worker: a JSON header and raw buffers over a stream socket.

Nothing is ever unpickled: what comes from a worker is data of declared length, or a `WireError`.

A message is `<u32 header length><header JSON><buffer 0><buffer 1>...`; the header's `buffers` lists their lengths.
"""

from __future__ import annotations

import ctypes
import json
import math
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch  # it takes seconds, and a pool starts its fork server before

    Values = bytearray | torch.Tensor
    """Bytes of a tensor: on the host, or as a tensor of bytes on a GPU."""

MAX_HEADER = 9 << 20
"""Most bytes of a header. It holds a source (`request.MOST_SOURCE`), and JSON may escape a character as two."""
MAX_BUFFERS, MOST_BUFFERS = 1 << 32, 1024
"""Most bytes of a message's buffers in total, and most buffers."""

Header = dict[str, Any]
Buffer = bytes | bytearray | memoryview


class WireError(Exception):
    """Received data are not a valid message."""


class WireSizeError(WireError):
    """A message is larger than the receiver accepts."""


def send(sock: socket.socket, header: Header, buffers: list[Buffer] | None = None) -> None:
    """Send one message. Raises ConnectionError if the connection is closed, TimeoutError after the socket's timeout."""
    parts = [memoryview(b).cast("B") for b in buffers or []]
    text = json.dumps({**header, "buffers": [len(p) for p in parts]}).encode()
    sock.sendall(struct.pack("<I", len(text)) + text)
    for part in parts:
        sock.sendall(part)


def receive(sock: socket.socket, timeout_s: float | None, limit: int = MAX_BUFFERS) -> tuple[Header, list[bytearray]]:
    """Receive one message within `timeout_s` seconds (None: no limit), with at most `limit` bytes of buffers.

    Raises WireSizeError before it receives larger buffers; also WireError, TimeoutError, ConnectionError.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    (length,) = struct.unpack("<I", read(sock, 4, deadline))
    if length > MAX_HEADER:
        raise WireError(f"the header has {length} bytes, which is not allowed")
    try:
        header = json.loads(bytes(read(sock, length, deadline)))
        sizes = [int(n) for n in header["buffers"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise WireError(f"not a message: {error}") from error
    if len(sizes) > MOST_BUFFERS or any(not 0 <= n <= MAX_BUFFERS for n in sizes):
        raise WireError("not a message: too many buffers, or invalid lengths")
    if sum(sizes) > limit:
        raise WireSizeError(f"{sum(sizes)} bytes, at most {limit} are accepted")
    return header, [read(sock, n, deadline) for n in sizes]


def read(sock: socket.socket, count: int, deadline: float | None) -> bytearray:
    """Read so many bytes before the deadline (`time.monotonic`). Raises TimeoutError, ConnectionError."""
    data = bytearray(count)
    view = memoryview(data)
    while view:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError("timed out")
        sock.settimeout(left)
        got = sock.recv_into(view)
        if got == 0:
            raise ConnectionError("the other side has closed the connection")
        view = view[got:]
    return data


@dataclass(frozen=True)
class DenseLayout:
    """The layout of a dense tensor in memory, with its dimensions in `order` from slowest to fastest."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    def shaped(self, flat: torch.Tensor) -> torch.Tensor:
        """Return flat memory as a tensor of this form."""
        inverse = [self.order.index(d) for d in range(len(self.order))]
        return flat.reshape([self.shape[d] for d in self.order]).permute(inverse)

    def header(self) -> Header:
        """Return the form as part of a message."""
        name = str(self.dtype).removeprefix("torch.")
        return {"kind": "tensor", "dtype": name, "shape": list(self.shape), "order": list(self.order)}

    @staticmethod
    def read(spec: Header) -> DenseLayout:
        """Return the form that a message describes. Raises WireError if it is invalid."""
        import torch

        dtype = getattr(torch, spec["dtype"])
        shape, order = tuple(int(n) for n in spec["shape"]), tuple(int(n) for n in spec["order"])
        if not isinstance(dtype, torch.dtype) or min(shape, default=0) < 0 or sorted(order) != list(range(len(shape))):
            raise WireError(f"not a tensor: {spec['dtype']} {shape} {order}")
        return DenseLayout(dtype, shape, order)


Place = Callable[[DenseLayout, "bytearray | torch.Tensor"], "torch.Tensor"]
"""Function that makes a tensor of a form from bytes."""


def encode(value: object, buffers: list[Buffer]) -> Header:
    """Return the description of a tree of tensors and plain values; tensor bytes are appended to `buffers`.

    A dense tensor keeps its strides (column-major stays column-major); any other is made contiguous.
    """
    import torch

    def encoded(tensor: torch.Tensor) -> Header:
        shape = form(tensor)
        flat = tensor.detach().to("cpu").permute(shape.order).contiguous().reshape(-1)
        flat = flat.as_strided(flat.shape, (1,))  # one element may carry any stride and still count as contiguous
        buffers.append(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
        return {**shape.header(), "buffer": len(buffers) - 1}

    return described(value, encoded)


def described(value: object, describe: Callable[[torch.Tensor], Header]) -> Header:
    """Return the description of a tree, with `describe` applied to each tensor."""
    import torch

    if isinstance(value, torch.Tensor):
        return describe(value)
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"  # torch's named tuples are tuples
        return {"kind": kind, "items": [described(v, describe) for v in value]}  # pyright: ignore
    if isinstance(value, dict):
        items = {str(k): described(v, describe) for k, v in value.items()}  # pyright: ignore
        return {"kind": "dict", "items": items}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"kind": "value", "value": value}
    raise WireError(f"{type(value).__name__} cannot be sent to or from a worker; tensors and plain values can")


def form(tensor: torch.Tensor) -> DenseLayout:
    """Return the layout of a tensor once it is dense."""
    order = dense_order(tensor) or list(range(tensor.dim()))
    return DenseLayout(tensor.dtype, tuple(tensor.shape), tuple(order))


def decode(spec: Header, buffers: Sequence[Values], place: Place | None = None) -> Any:
    """Return the tree that `encode` described. Raises WireError if description and bytes do not match."""
    return rebuilt(spec, "tensor", lambda leaf: (place or tensor)(DenseLayout.read(leaf), buffers[leaf["buffer"]]))


def rebuilt(spec: Header, leaf: str, make: Callable[[Header], torch.Tensor]) -> Any:
    """Return the tree that a message describes, its parts of kind `leaf` made by `make`. Raises WireError."""
    try:
        kind = spec["kind"]
        if kind == leaf:
            return make(spec)
        if kind == "value":
            return spec["value"]
        if kind == "dict":
            return {k: rebuilt(v, leaf, make) for k, v in spec["items"].items()}
        if kind in ("list", "tuple"):
            items = [rebuilt(v, leaf, make) for v in spec["items"]]
            return tuple(items) if kind == "tuple" else items
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise WireError(f"description and bytes do not match: {error}") from error
    raise WireError(f"unknown kind {kind!r}")


def tensor(form: DenseLayout, data: Values) -> torch.Tensor:
    """Return a tensor in memory allocated by torch; on a GPU over the bytes that are given.

    Raises WireError for a wrong number of bytes.
    """
    if len(data) != form.bytes:
        raise WireError(f"{len(data)} bytes for {form.dtype} {form.shape}")
    import torch

    if isinstance(data, torch.Tensor):
        return form.shaped(data.view(form.dtype))

    flat = torch.empty(math.prod(form.shape), dtype=form.dtype)
    if flat.nbytes:
        # torch's copy would start a thread pool that keeps spinning next to the kernel
        ctypes.memmove(flat.data_ptr(), (ctypes.c_char * len(data)).from_buffer(data), len(data))
    return form.shaped(flat)


def dense_order(tensor: torch.Tensor) -> list[int] | None:
    """Return the dimensions from slowest to fastest if the tensor fills its memory without gaps, else None."""
    return order_of(tuple(tensor.shape), tensor.stride())


def order_of(shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """Return the same for a tensor of this shape and these strides."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    expected = 1
    for dimension in reversed(order):
        if shape[dimension] != 1 and strides[dimension] != expected and 0 not in shape:
            return None
        expected *= shape[dimension]
    return order
