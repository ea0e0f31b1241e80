"""Parts of an output: the inputs that they depend on."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kernel_scientist.problems import trees
from kernel_scientist.records import layout

Parts = Sequence[Mapping[int, tuple[int, int]]]
"""See `Problem.parts`."""


def part(
    parts: Parts, writes: Collection[int], data: Any, box: Sequence[slice], shape: Sequence[int]
) -> tuple[Any, tuple[slice, ...]]:
    """Return the inputs that a box of the output depends on, and the box widened to whole blocks of inputs.

    shape: of the output. Buffers to be written are replaced, so that the reference does not change `data`.
    """
    widened = [slice(0, size) for size in shape]
    if not isinstance(data, (tuple, list)):
        return data, tuple(widened)
    items = [trees.changed(x, layout.like) if i in writes else x for i, x in enumerate(trees.items(data))]
    for dim, sources in enumerate(parts):
        block = max(each for _, each in sources.values())
        first, end = box[dim].start // block * block, min(-(-box[dim].stop // block) * block, shape[dim])
        widened[dim] = slice(first, end)
        for position, (source, each) in sources.items():
            items[position] = items[position].narrow(source, first // each, -(-end // each) - first // each)
    return trees.with_items(data, items), tuple(widened)  # pyright: ignore[reportUnknownArgumentType]


def agree(parts: Parts, data: Any, shape: Sequence[int]) -> bool:
    """Whether each input has as many indices as an output of this shape needs, and no more."""
    if not isinstance(data, (tuple, list)):
        return True
    items = trees.items(data)
    return len(shape) >= len(parts) and all(
        items[position].shape[source] == -(-shape[dim] // each)
        for dim, sources in enumerate(parts)
        for position, (source, each) in sources.items()
    )
