"""Inputs arrive as the problem made them: shapes, strides, offsets, gaps, and memory that several tensors share."""

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.problems import trees
from kernel_scientist.records import layout, objects
from kernel_scientist.sandbox import protocol, storages

DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fnuz, torch.int64, torch.bool, torch.complex64]


@st.composite
def views(draw: st.DrawFn, flat: torch.Tensor) -> torch.Tensor:
    """A view of a flat tensor; any strides, also 0 and such that elements overlap."""
    if flat.numel() == 0:
        return flat
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    stride = draw(st.lists(st.integers(0, 5), min_size=len(shape), max_size=len(shape)))
    reach = sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if all(shape) else 0
    if reach >= flat.numel():
        return flat[draw(st.integers(0, flat.numel() - 1)) :]
    return flat.as_strided(shape, stride, draw(st.integers(0, flat.numel() - 1 - reach)))


@st.composite
def inputs(draw: st.DrawFn) -> Any:
    """A tree of views of a few storages, with plain values."""
    flats = [torch.randint(0, 2, (draw(st.integers(0, 60)),)).to(draw(st.sampled_from(DTYPES))) for _ in range(2)]
    tensor = st.sampled_from(flats).flatmap(views)
    leaf = st.one_of(tensor, st.integers(-5, 5), st.none(), st.text(max_size=3))
    some = st.one_of(leaf, st.lists(tensor, max_size=2), st.dictionaries(st.text(max_size=2), tensor, max_size=2))
    return tuple(draw(st.lists(some, max_size=5)))


@settings(max_examples=200)
@given(inputs())
def test_layouts_arrive_and_what_shared_memory_does_so(data: Any) -> None:
    buffers: list[protocol.Buffer] = []
    message = json.loads(json.dumps(storages.encode(data, trees.tensors(data), buffers)))
    found = storages.restored(message, [bytearray(one) for one in buffers])
    for got in (found, trees.cloned(data)):
        assert shapes(got) == shapes(data)
        assert layout.numbers(trees.tensors(got)) == layout.numbers(trees.tensors(data))
        for one, other in zip(trees.tensors(got), trees.tensors(data), strict=True):
            assert torch.equal(layout.raw(one), layout.raw(other)) and layout.identity(one) != layout.identity(other)


def shapes(value: Any) -> Any:
    """A tree with each tensor's view instead of it."""
    if isinstance(value, torch.Tensor):
        return layout.View.of(value)
    if isinstance(value, dict):
        return {key: shapes(item) for key, item in value.items()}
    return type(value)(map(shapes, value)) if isinstance(value, list | tuple) else value


@settings(max_examples=200)
@given(inputs())
def test_bytes_that_tensors_share_count_once(data: Any) -> None:
    touched = 0
    for number in set(numbers := layout.numbers(trees.tensors(data))):
        group = [t for n, t in zip(numbers, trees.tensors(data), strict=True) if n == number]
        marks = layout.raw(group[0]).clone().zero_()
        for tensor in group:
            layout.elements(tensor, marks)[...] = 1
        touched += int(marks.sum())
    assert layout.unique_bytes(trees.tensors(data)) == touched


@given(inputs())
def test_the_layout_of_a_new_tensor_is_that_of_the_old_one(data: Any) -> None:
    for tensor in trees.tensors(data):
        view = layout.View.of(tensor)
        assert not view.is_whole or layout.like(tensor).stride() == tensor.stride()
        if not view.is_whole:
            assert layout.View.of(layout.like(tensor)) == view
        if view.is_distinct and tensor.numel():
            marks = layout.elements(tensor, torch.arange(view.storage_bytes))
            assert marks.unique().numel() == tensor.nbytes


@pytest.mark.parametrize(
    "change", [{"first": 3}, {"stride": [-1]}, {"shape": [2, 2]}, {"storage_bytes": 8}, {"dtype": "Tensor"}]
)
def test_a_view_that_does_not_fit_its_storage_is_refused(change: protocol.Header) -> None:
    buffers: list[protocol.Buffer] = []
    tensor = torch.arange(4.0)
    message = storages.encode(tensor, [tensor], buffers)
    with pytest.raises(protocol.WireError):
        storages.restored(message | change, [bytearray(one) for one in buffers])


class Named(torch.Tensor):
    pass


def with_attribute(tensor: torch.Tensor) -> torch.Tensor:
    tensor.scale = 2.0  # type: ignore[attr-defined]
    return tensor


REFUSED = {
    "a tensor of layout sparse_coo": lambda: torch.eye(2).to_sparse(),
    "a tensor of layout sparse_csr": lambda: torch.eye(2).to_sparse_csr(),
    "a tensor of layout nested": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
    "a quantised tensor": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "a Named, a subclass of torch.Tensor": lambda: torch.ones(2).as_subclass(Named),
    "on the device meta": lambda: torch.ones(2, device="meta"),
    "a lazily conjugated tensor": lambda: torch.ones(2, dtype=torch.complex64).conj(),
    "a lazily negated tensor": lambda: torch.ones(2, dtype=torch.complex64).conj().imag,
    "a tensor that requires a gradient": lambda: torch.ones(2, requires_grad=True),
    "a Parameter, a subclass of torch.Tensor": lambda: torch.nn.Parameter(torch.ones(2)),
    "a module whose parameters require gradients": lambda: torch.nn.Linear(2, 2),
    "a tensor in shared memory": lambda: torch.ones(2).share_memory_(),
    r"a tensor with attributes of its own \(scale\)": lambda: with_attribute(torch.ones(2)),
    "a set among the inputs": lambda: {1},
    "a complex among the inputs": lambda: 1j,
    "a dictionary with the key 1": lambda: {1: torch.ones(1)},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_sent_is_refused_in_a_sentence(words: str) -> None:
    with pytest.raises(objects.ObjectError, match=f"^input 1: {words}|^input 1: .*{words}"):
        objects.plain_inputs((torch.ones(1), [REFUSED[words]()]))


def test_a_module_without_gradients_arrives_as_it_was() -> None:
    module = torch.nn.Linear(2, 3).requires_grad_(False)
    (again,) = objects.revived(objects.plain_inputs((module,), "cpu"), {})
    assert type(again) is torch.nn.Linear and torch.equal(again.weight, module.weight)
    assert type(again.weight) is torch.nn.Parameter and not again.weight.requires_grad
