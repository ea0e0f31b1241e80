"""Edits of the mapping from programs to tiles: grouped order, XCD swizzle, persistent grid, split along k.

Sources: knowledge/xcd-swizzling.md, knowledge/mi300-gemm-practice.md.
"""

import ast
import re

from kernel_scientist.scientist.playbook.transformation import Variant
from kernel_scientist.scientist.playbook.triton_file import (
    CONSTANT,
    Edit,
    TritonFile,
    assignments,
    bound,
    calls,
    dotted,
    keyword,
    loops,
    read,
    terms,
)

UNITS = 304
"""Compute units of an MI300X; kernels are correct with any number."""
GROUPED = """\
# Groups of GROUP_M rows of tiles, column by column: concurrent tiles share row and column panels.
in_group = GROUP_M * grid_n
first_row = tl.program_id(0) // in_group * GROUP_M
rows_here = tl.minimum(grid_m - first_row, GROUP_M)
pid_m = first_row + tl.program_id(0) % in_group % rows_here
pid_n = tl.program_id(0) % in_group // rows_here"""
SWIZZLED = """\
# Programs are assigned to the eight XCDs round-robin. Give each XCD consecutive tiles: they share its L2.
xcd = tl.program_id(0) % 8
per_xcd = tl.num_programs(0) // 8
longer = tl.minimum(xcd, tl.num_programs(0) % 8)  # the first XCDs have one more program
position = xcd * per_xcd + longer + tl.program_id(0) // 8"""
ADD_PARTS = '''\
@triton.jit
def add_parts_kernel(parts_ptr, out_ptr, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(parts_ptr + part * size.to(tl.int64) + offsets, mask=inside, other=0.0)
    tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=inside)


def add_parts(parts: torch.Tensor, out: torch.Tensor) -> None:
    """Write the sum of the parts, fp32 [parts, size], into `out`."""
    count, size = parts.shape
    add_parts_kernel[(triton.cdiv(size, 1024),)](parts, out, size, PARTS=count, BLOCK=1024)


'''


def grouped_order(file: TritonFile) -> list[Variant]:
    """Replace a two-dimensional grid of tiles by a one-dimensional one, ordered in groups of rows."""
    if len(file.grid) != 2 or file.axes() != {0, 1} or not calls(file.kernel, "tl.dot"):
        return []
    if file.names & {"GROUP_M", "grid_m", "pid_m", "pid_n"}:
        return []
    rows, columns = (file.code(d) for d in file.grid)
    variants: list[Variant] = []
    for group in (8, 4):
        edits = [
            *(file.replaced(c, "pid_m") for c in file.programs(0)),
            *(file.replaced(c, "pid_n") for c in file.programs(1)),
            file.before(file.kernel.body[0], *GROUPED.splitlines(), ""),
            *file.passed("grid_m", rows),
            *file.passed("grid_n", columns),
            *file.passed("GROUP_M", str(group), CONSTANT),
            *_dimensions(file, [f"({rows}) * ({columns})"]),
        ]
        rubric = ("launch a one-dimensional grid", f"walk the tiles in groups of {group} rows, column by column")
        variants.append(Variant(f"groups of {group} rows", rubric, file.edited(*edits)))
    return variants


def xcd_swizzle(file: TritonFile) -> list[Variant]:
    """Give each of eight XCDs contiguous tiles; a bijection for any number of programs."""
    if len(file.grid) != 1 or file.axes() != {0} or not calls(file.kernel, "tl.dot"):
        return []
    if file.names & {"xcd", "per_xcd", "longer", "position"}:
        return []
    edits = [*(file.replaced(c, "position") for c in file.programs(0))]
    edits.append(file.before(file.kernel.body[0], *SWIZZLED.splitlines(), ""))
    rubric = ("use (i % 8) * (n // 8) + min(i % 8, n % 8) + i // 8 as the id of program i of n",)
    return [Variant("8 XCDs", rubric, file.edited(*edits))]


def persistent(file: TritonFile) -> list[Variant]:
    """Launch as many programs as run concurrently; each loops over tiles."""
    if len(file.grid) != 1 or file.axes() != {0} or file.names & {"tile_id", "all_tiles", "turn"}:
        return []
    if any(isinstance(n, ast.Return) for n in ast.walk(file.kernel)) or bound(file.kernel) & set(file.parameters):
        return []  # the next tile would start from modified pointers
    per_unit = (1, 2) if calls(file.kernel, "tl.dot") else (4, 8)  # streaming needs more waves in flight
    return [_persistent(file, count) for count in per_unit]


def _persistent(file: TritonFile, per_unit: int) -> Variant:
    tiles = file.code(file.grid[0])
    edits = [
        *(file.replaced(c, "tile_id") for c in file.programs(0)),
        *(file.replaced(c, "all_tiles") for c in calls(file.kernel, "tl.num_programs")),
        *file.passed("all_tiles", tiles),
        *_dimensions(file, [f"min({tiles}, {per_unit} * UNITS)"]),
        *_units(file),
    ]
    looping = TritonFile.of(file.edited(*edits))
    assert looping is not None
    rubric = (
        f"launch at most {per_unit} programs per compute unit ({UNITS} of them)",
        "loop over tiles: program i does i, i + n, i + 2 n, ... of n programs",
    )
    return Variant(f"{per_unit} per unit", rubric, looping.edited(_in_a_loop(looping)))


def _in_a_loop(file: TritonFile) -> Edit:
    """Return the edit that puts a kernel's body into a loop over tiles."""
    lines = file.source.text.encode().splitlines(keepends=True)
    first = file.kernel.args.args[-1].end_lineno or 1
    while not re.search(rb":\s*(#.*)?$", lines[first - 1]):
        first += 1
    last = file.kernel.end_lineno or first
    margin = file.margin(file.kernel.body[0])
    head = (
        f"{margin}for turn in range(tl.cdiv(all_tiles - tl.program_id(0), tl.num_programs(0))):\n"
        f"{margin}    tile_id = tl.program_id(0) + turn * tl.num_programs(0)\n"
    )
    body = "".join("    " + line if line.strip() else line for line in (raw.decode() for raw in lines[first:last]))
    start = sum(map(len, lines[:first]))
    return Edit(start, start + sum(map(len, lines[first:last])), head + body)


def split_k(file: TritonFile) -> list[Variant]:
    """Split the sum over k among programs if the tiles are too few to fill the GPU; fp32 parts are added afterwards."""
    if not 1 <= len(file.grid) <= 2 or file.axes() != set(range(len(file.grid))):
        return []
    if file.names & {"SPLIT_K", "parts", "first_step", "last_step", "add_parts"}:
        return []
    inner, stores = loops(file.kernel, "tl.dot"), calls(file.kernel, "tl.store")
    if len(inner) != 1 or len(stores) != 1 or calls(file.kernel, "tl.atomic_add"):
        return []
    if not _is_sum(inner[0], stores[0]):
        return []
    splits = [(count, _split(file, inner[0], stores[0], count)) for count in (4, 2, 8)]
    rubric = (
        "split the steps of k among SPLIT_K programs if tiles are few",
        "write fp32 parts; a second kernel adds them",
    )
    return [Variant(f"SPLIT_K {n}", (*rubric, f"SPLIT_K = {n}"), file.edited(*e)) for n, e in splits if e]


def _is_sum(loop: ast.For, store: ast.Call) -> bool:
    """Whether what is stored, but for its rounding, is a sum over the loop's steps: parts of it can be added.

    The running maximum of attention's softmax, for example, makes later steps rescale earlier ones.
    """
    value = store.args[1] if len(store.args) == 2 else None
    total = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    if not isinstance(total, ast.Name):
        return False
    set_anew = [v for n, v in assignments(loop) if n == total.id]
    added = [n for n in ast.walk(loop) if isinstance(n, ast.AugAssign) and bound(n) == {total.id}]
    return all(isinstance(n.op, ast.Add) for n in added) and all(_adds(v, total.id) for v in set_anew)


def _adds(value: ast.expr, total: str) -> bool:
    """Whether a value is `tl.dot(..., acc=total)`."""
    accumulator = keyword(value, "acc") if isinstance(value, ast.Call) and dotted(value.func) == "tl.dot" else None
    return isinstance(accumulator, ast.Name) and accumulator.id == total


def _split(file: TritonFile, loop: ast.For, store: ast.Call, count: int) -> list[Edit]:
    assert isinstance(loop.iter, ast.Call)
    out = _output(file, store)
    if out is None or len(loop.iter.args) != 1 or len(store.args) != 2:
        return []
    pointer, argument = out
    host, axis = file.code(argument), len(file.grid)
    steps, tiles = file.code(loop.iter.args[0]), " * ".join(f"({file.code(d)})" for d in file.grid)
    value = store.args[1]
    assert isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    partial = f"{file.code(value.func.value)}.to({pointer.id}.dtype.element_ty)"
    return [
        file.before(
            loop,
            f"per_part = tl.cdiv({steps}, SPLIT_K)",
            f"first_step = tl.program_id({axis}) * per_part",
            f"last_step = tl.minimum(first_step + per_part, {steps})",
            *_advanced(file, loop),
        ),
        file.replaced(loop.iter.args[0], "first_step, last_step"),
        file.replaced(value, partial),
        file.replaced(pointer, f"({pointer.id} + tl.program_id({axis}).to(tl.int64) * part_size)"),
        *file.passed("part_size", f"{host}.numel()"),
        *file.passed("SPLIT_K", "splits", CONSTANT),
        file.replaced(argument, "parts"),
        *_dimensions(file, [*(file.code(d) for d in file.grid), "splits"]),
        file.before(
            _sized(file),
            f"splits = {count} if 2 * {tiles} <= UNITS else 1  # only if half of the units would idle",
            f"parts = {host} if splits == 1 else torch.empty(",
            f"    (splits, {host}.numel()), dtype=torch.float32, device={host}.device",
            ")",
        ),
        file.after(file.statement, "if splits > 1:", f"    add_parts(parts, {host})"),
        file.before(file.host, *ADD_PARTS.splitlines(), "", ""),
        *_units(file),
    ]


def _output(file: TritonFile, store: ast.Call) -> tuple[ast.Name, ast.Name] | None:
    """Return the pointer of a store of rounded sums, and the launch's tensor for it."""
    value = store.args[1] if len(store.args) == 2 else None
    rounded = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to"
    pointers = (
        [t for t in terms(store.args[0]) if isinstance(t, ast.Name) and t.id in file.parameters] if rounded else []
    )
    argument = file.argument(pointers[0].id) if len(pointers) == 1 else None
    if not isinstance(argument, ast.Name) or file.statement not in file.host.body:
        return None
    return pointers[0], argument


def _advanced(file: TritonFile, loop: ast.For) -> list[str]:
    """Return lines that move the pointers advanced by a loop to the start of a part."""
    inside, lines = bound(loop), list[str]()
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and not read(node.value) & inside:
            times = "".join(f" * ({n})" for n in _repeats(file, loop, node))
            lines.append(f"{file.code(node.target)} += first_step{times} * ({file.code(node.value)})")
    return lines


def _repeats(file: TritonFile, loop: ast.For, node: ast.AST) -> list[str]:
    """Return the iteration counts of the static loops around a statement of a loop."""
    around = [n for n in ast.walk(loop) if isinstance(n, ast.For) and n is not loop and node in ast.walk(n)]
    iters = [n.iter for n in around if isinstance(n.iter, ast.Call) and len(n.iter.args) == 1]
    return [file.code(i.args[0]) for i in iters if dotted(i.func) in ("tl.static_range", "range", "tl.range")]


def _sized(file: TritonFile) -> ast.stmt:
    """Return the host's statement that sets the grid: an assignment, or the launch."""
    assert isinstance(file.launch.func, ast.Subscript)
    index = file.launch.func.slice
    named = [s for s in file.host.body if isinstance(index, ast.Name) and index.id in dict(assignments(s))]
    return named[0] if named else file.statement


def _dimensions(file: TritonFile, sizes: list[str]) -> list[Edit]:
    """Set the grid at its definition."""
    assert isinstance(file.launch.func, ast.Subscript)
    index = file.launch.func.slice
    grid = next(v for n, v in assignments(file.host) if n == index.id) if isinstance(index, ast.Name) else index
    return [file.replaced(grid, f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})")]


def _units(file: TritonFile) -> list[Edit]:
    """Define the number of compute units, unless it is defined."""
    if "UNITS" in file.names:
        return []
    return [file.before(file.kernel, f"UNITS = {UNITS}  # compute units of an MI300X", "", "")]
