"""Edits of the loops of a Triton kernel: order of loads, stages, unrolling, one pass instead of two."""

import ast

from kernel_scientist.scientist.playbook.edits_triton import fits
from kernel_scientist.scientist.playbook.transformation import Variant
from kernel_scientist.scientist.playbook.triton_file import (
    CONSTANT,
    Edit,
    TritonFile,
    bound,
    calls,
    dotted,
    has_several_products,
    keyword,
    loops,
    read,
)

ONE_TILE_MOST = 16384
"""Most columns that stay in registers: 64 per lane of four waves."""


def early_loads(file: TritonFile) -> list[Variant]:
    """Move small loads (scales) from after the product to before it, which hides their latency."""
    inner = loops(file.kernel, "tl.dot")
    late = _late(inner[0]) if len(inner) == 1 else None
    if late is None:
        return []
    name, line = ast.unparse(late.targets[0]), file.code(late)
    edits = [file.before(inner[0].body[0], line), file.removed(late)]
    return [Variant(f"{name} first", (f"load {name} at the start of the loop over k",), file.edited(*edits))]


def _late(loop: ast.For) -> ast.Assign | None:
    """Return the first load after a product that depends on nothing computed in the same iteration."""
    assigned, used, after_product = set[str](), set[str](), False
    for statement in loop.body:
        movable = isinstance(statement, ast.Assign) and bool(calls(statement, "tl.load"))
        if after_product and movable and not read(statement) & assigned and not bound(statement) & (assigned | used):
            return statement if isinstance(statement, ast.Assign) else None
        assigned, used = assigned | bound(statement), used | read(statement)
        after_product = after_product or bool(calls(statement, "tl.dot"))
    return None


def hoisted_loads(file: TritonFile) -> list[Variant]:
    """Move loop-invariant loads before their loop."""
    for loop in (n for n in ast.walk(file.kernel) if isinstance(n, ast.For)):
        inside = bound(loop)
        loads = [s for s in loop.body if isinstance(s, ast.Assign) and calls(s, "tl.load") and not read(s) & inside]
        if loads:
            names = ", ".join(ast.unparse(s.targets[0]) for s in loads)
            edits = [file.before(loop, *(file.code(s) for s in loads)), *(file.removed(s) for s in loads)]
            rubric = (f"move the load of {names} before the loop, which does not change what it reads",)
            return [Variant(f"{names} out of the loop", rubric, file.edited(*edits))]
    return []


def loop_stages(file: TritonFile) -> list[Variant]:
    """Set the number of pipeline stages of each loop."""
    return [v for n in (2, 3) for v in _ranged(file, "num_stages", n, f"pipeline the loops with {n} stages")]


def unrolled(file: TritonFile) -> list[Variant]:
    """Unroll loops by a factor of 2."""
    return _ranged(file, "loop_unroll_factor", 2, "unroll the loops by a factor of 2")


def _ranged(file: TritonFile, option: str, value: int, rubric: str) -> list[Variant]:
    heads = [n.iter for n in loops(file.kernel, "tl.load") if isinstance(n.iter, ast.Call)]
    if has_several_products(file.kernel):
        return []  # whether another copy of their tiles fits is not known
    if not heads or any(keyword(h, option) is not None for h in heads):
        return []
    edits = [file.replaced(h.func, "tl.range") for h in heads] + [file.appended(h, f"{option}={value}") for h in heads]
    edited = file.edited(*edits)
    return [Variant(f"{option} {value}", (rubric, "loop over tl.range"), edited)] if fits(edited) else []


def one_pass(file: TritonFile) -> list[Variant]:
    """If two loops read the same row, read a row that fits one block once and keep it in registers."""
    pairs = [n for n in file.kernel.body if isinstance(n, ast.For)]
    if len(pairs) != 2 or file.names & {"ONE_TILE", "EVEN"}:
        return []
    first, second = pairs
    repeated = [s for s in second.body if any(_same_load(s, other) for other in first.body)]
    sizes = _bounds(first, second)
    size = file.argument(sizes[0]) if sizes else None
    block = file.argument(sizes[1]) if sizes else None
    is_simple = all(isinstance(s, (ast.Assign, ast.AugAssign, ast.Expr)) for pair in pairs for s in pair.body)
    if not repeated or size is None or block is None or not is_simple:
        return []
    columns = file.code(size)
    edits = [
        *_branches(file, first, second, repeated),
        file.replaced(
            block, f"triton.next_power_of_2({columns}) if {columns} <= {ONE_TILE_MOST} else {file.code(block)}"
        ),
        *file.passed("ONE_TILE", f"{columns} <= {ONE_TILE_MOST}", CONSTANT),
    ]
    rubric = (f"rows of up to {ONE_TILE_MOST} columns: one block, read once", "longer rows: two loops as before")
    return [Variant("rows in registers", rubric, file.edited(*edits))]


def _branches(file: TritonFile, first: ast.For, second: ast.For, repeated: list[ast.stmt]) -> list[Edit]:
    """Return the edits that add a branch with the bodies of both loops, without the loops."""
    between = file.kernel.body[file.kernel.body.index(first) + 1 : file.kernel.body.index(second)]
    once = [*first.body, *between, *(s for s in second.body if s not in repeated)]
    lines = ["if ONE_TILE:", f"    {ast.unparse(first.target)} = 0", *(f"    {file.code(s)}" for s in once), "else:"]
    edits = [file.before(first, *lines)]
    return edits + [e for s in (first, *between, second) for e in file.indented(s)]


def _same_load(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements load the same addresses into the same name."""
    if not isinstance(one, ast.Assign) or not isinstance(other, ast.Assign):
        return False
    loads, others = calls(one, "tl.load"), calls(other, "tl.load")
    if len(loads) != 1 or len(others) != 1 or ast.dump(one.targets[0]) != ast.dump(other.targets[0]):
        return False
    return ast.dump(loads[0].args[0]) == ast.dump(others[0].args[0])


def _bounds(first: ast.For, second: ast.For) -> tuple[str, str] | None:
    """Return the names of size and step if both loops are `for start in range(0, size, BLOCK)`."""
    heads = [n.iter for n in (first, second) if isinstance(n.iter, ast.Call) and len(n.iter.args) == 3]
    if len(heads) != 2 or [ast.dump(a) for a in heads[0].args] != [ast.dump(a) for a in heads[1].args]:
        return None
    _, size, block = heads[0].args
    plain = (
        dotted(heads[0].func) in ("range", "tl.range") and isinstance(size, ast.Name) and isinstance(block, ast.Name)
    )
    return (size.id, block.id) if plain else None  # type: ignore[union-attr]
