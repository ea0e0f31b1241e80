"""Edits of the memory accesses of a Triton kernel: masks, hints, cache modifiers, address width.

Source: knowledge/triton-on-amd.md (buffer instructions, masks).
"""

import ast
from collections.abc import Iterator

from kernel_scientist.scientist.playbook.transformation import Apply, Variant
from kernel_scientist.scientist.playbook.triton_file import (
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
    """Specialise the kernel for sizes that blocks divide, without masks; other sizes use the masked version."""
    masked = [(c, m) for c in calls(file.kernel, *ACCESSES) if (m := keyword(c, "mask")) is not None]
    conditions = [_divides(file, mask) for _, mask in masked]
    if not masked or "EVEN" in file.names or not all(conditions):
        return []
    even = " and ".join(dict.fromkeys(c for checks in conditions for c in checks))
    edits = file.passed("EVEN", even, CONSTANT)
    for call, mask in masked:
        values = [mask, other] if (other := keyword(call, "other")) else [mask]
        edits += [file.replaced(v, f"None if EVEN else {file.code(v)}") for v in values]
    rubric = ("pass EVEN (blocks divide the sizes) as a compile-time constant", "use masks only if it is false")
    return [Variant("EVEN", rubric, file.edited(*edits))]


def _divides(file: TritonFile, mask: ast.expr) -> list[str]:
    """Return the host's checks under which a mask is true everywhere; empty if they cannot be derived."""
    checks = [_multiple(file, n) for n in _reach(file, mask) if isinstance(n, ast.Compare)]
    return checks if all(checks) else []


def _multiple(file: TritonFile, bound: ast.Compare) -> str:
    """Return the check that the blocks of `offsets` divide `size`, for `offsets < size`; empty for anything else."""
    size = bound.comparators[0]
    if (
        not isinstance(bound.ops[0], ast.Lt)
        or not isinstance(size, ast.Name)
        or not (argument := file.argument(size.id))
    ):
        return ""
    ranges = [a for a in _reach(file, bound.left) if isinstance(a, ast.Call) and dotted(a.func) == "tl.arange"]
    extents = [_extent(file, a) for a in ranges]
    if not extents or any(e is None for e in extents):
        return ""
    product = " * ".join(_atom(file, e) for e in extents if e is not None)
    return f"{_atom(file, argument)} % ({product}) == 0"


def _extent(file: TritonFile, lanes: ast.Call) -> ast.expr | None:
    """Return the end of `tl.arange(0, end)`: a number, or the host's argument for it."""
    end = lanes.args[1] if len(lanes.args) == 2 else None
    return end if end is None or isinstance(end, ast.Constant) else file.argument(file.code(end))


def _reach(file: TritonFile, node: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes of an expression and of the values that the kernel assigns to its names, each once."""
    values, visited, queue = list(assignments(file.kernel)), set[ast.AST](), [node]
    while queue:
        for child in ast.walk(queue.pop()):
            if child in visited:
                continue
            visited.add(child)
            yield child
            if isinstance(child, ast.Name):
                queue += [v for n, v in values if n == child.id and v not in visited]


def _atom(file: TritonFile, node: ast.expr) -> str:
    code = file.code(node)
    return code if isinstance(node, (ast.Name, ast.Constant, ast.Subscript, ast.Call, ast.Attribute)) else f"({code})"


def contiguity(file: TritonFile) -> list[Variant]:
    """Annotate `start * BLOCK + tl.arange(0, BLOCK)`: BLOCK contiguous offsets from a multiple of BLOCK."""
    edits = [
        file.replaced(value, f"tl.max_contiguous(tl.multiple_of({file.code(value)}, {block}), {block})")
        for _, value in assignments(file.kernel)
        if (block := _run(file, value))
    ]
    rubric = ("wrap block offsets in tl.max_contiguous(tl.multiple_of(..., BLOCK), BLOCK)",)
    return [Variant("block offsets", rubric, file.edited(*edits))] if edits else []


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
    """State that the sizes in masks are positive, so that the compiler knows that offsets are not negative."""
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
    """Compute offsets in 32 bits if the tensors are small enough; the host checks their sizes."""
    wide = [n for n in ast.walk(file.kernel) if isinstance(n, ast.Attribute) and dotted(n) == "tl.int64"]
    tensors = [a for p, a in zip(file.parameters, file.launch.args, strict=False) if "ptr" in p.lower()]
    if not wide or not tensors or "WIDE" in file.names or not all(isinstance(t, ast.Name) for t in tensors):
        return []
    largest = ", ".join(f"{file.code(t)}.numel()" for t in tensors)
    edits = [file.replaced(n, "(tl.int64 if WIDE else tl.int32)") for n in wide]
    edits += file.passed("WIDE", f"max({largest}) >= 2**31", CONSTANT)
    rubric = ("use int32 offsets unless the compile-time constant WIDE is set: a tensor has 2**31 elements or more",)
    return [Variant("32 bits", rubric, file.edited(*edits))]
