"""Edits of how a Triton kernel reads and writes memory: masks, hints, caches, addresses, the contiguous dimension.

Sources: knowledge/triton-on-amd.md (buffer instructions, masks), knowledge/mi300-gemm-practice.md (transposed inputs).
"""

import ast
from collections.abc import Iterator

from kernel_scientist.scientist.playbook.transformation import Apply, Variant
from kernel_scientist.scientist.playbook.tritonfile import (
    CONSTANT,
    TritonFile,
    assignments,
    calls,
    dotted,
    keyword,
    structural,
)

ACCESSES = ("tl.load", "tl.store")


def even_masks(file: TritonFile) -> list[Variant]:
    """Compile a second kernel without masks for sizes that blocks divide; the masked one stays for the others."""
    masked = [(c, m) for c in calls(file.kernel, *ACCESSES) if (m := keyword(c, "mask")) is not None]
    conditions = [_divides(file, mask) for _, mask in masked]
    if not masked or "EVEN" in file.names or not all(conditions):
        return []
    even = " and ".join(dict.fromkeys(c for found in conditions for c in found))
    edits = file.passed("EVEN", even, CONSTANT)
    for call, mask in masked:
        values = [mask, other] if (other := keyword(call, "other")) else [mask]
        edits += [file.replaced(v, f"None if EVEN else {file.code(v)}") for v in values]
    rubric = ("pass EVEN, whether blocks divide the sizes, as a compile-time constant", "mask only if it is not set")
    return [Variant("EVEN", rubric, file.edited(*edits))]


def _divides(file: TritonFile, mask: ast.expr) -> list[str]:
    """Return what the host must check so that a mask is true everywhere; empty when that cannot be told."""
    compared = [n for n in _reach(file, mask) if isinstance(n, ast.Compare)]
    found = [_multiple(file, c) for c in compared]
    return [f for f in found if f] if all(found) else []


def _multiple(file: TritonFile, bound: ast.Compare) -> str:
    """For `offsets < size`, return the check that the blocks of `offsets` divide `size`."""
    size = bound.comparators[0]
    if not isinstance(bound.ops[0], ast.Lt) or not isinstance(size, ast.Name) or not (given := file.argument(size.id)):
        return ""
    ranges = [a for a in _reach(file, bound.left) if isinstance(a, ast.Call) and dotted(a.func) == "tl.arange"]
    extents = [_extent(file, a) for a in ranges]
    if not extents or any(e is None for e in extents):
        return ""
    product = " * ".join(_atom(file, e) for e in extents if e is not None)
    return f"{_atom(file, given)} % ({product}) == 0"


def _extent(file: TritonFile, lanes: ast.Call) -> ast.expr | None:
    """Return what the host passes as the end of `tl.arange(0, end)`, or the number that it is."""
    end = lanes.args[1] if len(lanes.args) == 2 else None
    return end if end is None or isinstance(end, ast.Constant) else file.argument(file.code(end))


def _reach(file: TritonFile, node: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes of an expression and of all that its names were assigned in the kernel, each once."""
    values, seen, todo = list(assignments(file.kernel)), set[ast.AST](), [node]
    while todo:
        for child in ast.walk(todo.pop()):
            if child in seen:
                continue
            seen.add(child)
            yield child
            if isinstance(child, ast.Name):
                todo += [v for n, v in values if n == child.id and v not in seen]


def _atom(file: TritonFile, node: ast.expr) -> str:
    code = file.code(node)
    return code if isinstance(node, (ast.Name, ast.Constant, ast.Subscript, ast.Call, ast.Attribute)) else f"({code})"


def contiguity(file: TritonFile) -> list[Variant]:
    """Say of `start * BLOCK + tl.arange(0, BLOCK)` what is so: BLOCK numbers in a row from a multiple of it."""
    edits = [
        file.replaced(value, f"tl.max_contiguous(tl.multiple_of({file.code(value)}, {block}), {block})")
        for _, value in assignments(file.kernel)
        if (block := _run(file, value))
    ]
    rubric = ("wrap block offsets in tl.max_contiguous(tl.multiple_of(..., BLOCK), BLOCK)",)
    return [Variant("offsets of blocks", rubric, file.edited(*edits))] if edits else []


def _run(file: TritonFile, value: ast.expr) -> str:
    """Return the block of `start * BLOCK + tl.arange(0, BLOCK)`; empty for anything else."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return ""
    start, lanes = value.left, value.right
    if not isinstance(lanes, ast.Call) or dotted(lanes.func) != "tl.arange" or not isinstance(start, ast.BinOp):
        return ""
    if len(lanes.args) != 2:
        return ""
    block = file.code(lanes.args[1])
    return block if isinstance(start.op, ast.Mult) and file.code(start.right) == block else ""


def assumed(file: TritonFile) -> list[Variant]:
    """Say that the sizes behind the masks are positive, so that offsets made of them are known not to be negative."""
    masks = [m for c in calls(file.kernel, *ACCESSES) if (m := keyword(c, "mask")) is not None]
    compared = [n.comparators[0] for m in masks for n in _reach(file, m) if isinstance(n, ast.Compare)]
    sizes = dict.fromkeys(c.id for c in compared if isinstance(c, ast.Name) and c.id in file.parameters)
    if not sizes or calls(file.kernel, "tl.assume"):
        return []
    lines = [f"tl.assume({size} > 0)" for size in sizes]
    rubric = (f"state with tl.assume that {', '.join(sizes)} are positive",)
    return [Variant("positive sizes", rubric, file.edited(file.before(file.kernel.body[0], *lines)))]


def cached(call: str, modifier: str) -> Apply:
    """Return the edit that gives every load or store a cache modifier."""

    def change(file: TritonFile) -> list[Variant]:
        plain = [c for c in calls(file.kernel, call) if keyword(c, "cache_modifier") is None]
        edited = file.edited(*(file.appended(c, f'cache_modifier="{modifier}"') for c in plain))
        rubric = (f'add cache_modifier="{modifier}" to every {call}',)
        return [Variant(f"{call} {modifier}", rubric, edited)] if plain else []

    return structural(change)


def narrow_offsets(file: TritonFile) -> list[Variant]:
    """Compute offsets in 32 bits where the tensors are small enough, which the host checks."""
    wide = [n for n in ast.walk(file.kernel) if isinstance(n, ast.Attribute) and dotted(n) == "tl.int64"]
    tensors = [a for p, a in zip(file.parameters, file.launch.args, strict=False) if "ptr" in p.lower()]
    if not wide or not tensors or "WIDE" in file.names or not all(isinstance(t, ast.Name) for t in tensors):
        return []
    largest = ", ".join(f"{file.code(t)}.numel()" for t in tensors)
    edits = [file.replaced(n, "(tl.int64 if WIDE else tl.int32)") for n in wide]
    edits += file.passed("WIDE", f"max({largest}) >= 2**31", CONSTANT)
    rubric = ("use int32 offsets unless WIDE, a compile-time constant: a tensor has 2**31 elements or more",)
    return [Variant("32 bits", rubric, file.edited(*edits))]
