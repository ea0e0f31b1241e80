"""Edits of the operands of `tl.dot` in a Triton kernel: type, orientation, addresses.

An operand is a load in the loop over k whose address is the sum of a pointer, an offset along k and one along the
tile: `a_ptr + offs_k[None, :] * m + offs_m[:, None]`.
"""

import ast
from dataclasses import dataclass

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

NATIVE = '''\
def has_native_fp8(device: torch.device) -> bool:
    """True on gfx94x: only CDNA3 multiplies e4m3fnuz."""
    if torch.version.hip is None:
        return False
    return torch.cuda.get_device_properties(device).gcnArchName.startswith("gfx94")


'''
K_MAJOR = '''\
@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    # bytes; x: memory [cols][rows], out: memory [rows][cols]
    offs_r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (offs_r < rows)[:, None] & (offs_c < cols)[None, :]
    tile = tl.load(x_ptr + offs_c[None, :] * rows + offs_r[:, None], mask=inside)
    tl.store(out_ptr + offs_r[:, None] * cols + offs_c[None, :], tile, mask=inside)


def k_major(x: torch.Tensor) -> torch.Tensor:
    """Return a column-major matrix of bytes as a row-major one."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 64), triton.cdiv(cols, 64))
    transpose_kernel[grid](x.view(torch.uint8), out.view(torch.uint8), rows, cols, BLOCK=64)
    return out


'''


@dataclass(frozen=True)
class DotOperand:
    """A load in the loop over k that feeds `tl.dot`."""

    load: ast.Call
    address: ast.expr
    """The sum; outside the loop if the loop advances the pointers."""
    pointers: str
    """The name of the advanced pointers; empty if the load computes its addresses."""
    parameter: str
    """The kernel's pointer parameter."""


def operands(file: TritonFile) -> list[DotOperand]:
    """Return the operands of the kernel's only loop with `tl.dot`."""
    inner = loops(file.kernel, "tl.dot")
    if len(inner) != 1:
        return []
    used = {n for c in calls(inner[0], "tl.dot") for a in c.args[:2] for n in read(a)}
    every = calls(file.kernel, "tl.load")
    loads = [v for n, v in assignments(inner[0]) if n in used and isinstance(v, ast.Call) and v in every]
    return [o for load in loads if (o := _operand(file, load))]


def _operand(file: TritonFile, load: ast.Call) -> DotOperand | None:
    address, pointers = load.args[0], ""
    if isinstance(address, ast.Name):
        pointers = address.id
        values = [v for n, v in assignments(file.kernel) if n == pointers]
        if len(values) != 1:
            return None
        address = values[0]
    base = [t for t in terms(address) if isinstance(t, ast.Name) and t.id in file.parameters]
    return DotOperand(load, address, pointers, base[0].id) if len(base) == 1 else None


def native_fp8(file: TritonFile) -> list[Variant]:
    """Multiply fp8 natively if the matrix units can; otherwise decode bytes as before."""
    dots = [c for c in calls(file.kernel, "tl.dot") if len(_decoded(c)) == 2]
    views = [(a, t) for a in file.launch.args if (t := _viewed(a)) is not None]
    if not dots or not views or file.names & {"NATIVE_FP8", "native"}:
        return []
    edits = [file.replaced(c, _either(file, c)) for c in dots]
    edits += [file.replaced(a, f"{file.code(t)} if native else {file.code(a)}") for a, t in views]
    for load in calls(file.kernel, "tl.load"):  # an integer constant does not convert to fp8
        zeros = [n for n in ast.walk(keyword(load, "other") or ast.Pass()) if isinstance(n, ast.Constant)]
        edits += [file.replaced(z, "0.0") for z in zeros if z.value == 0 and isinstance(z.value, int)]
    edits += [
        *file.passed("NATIVE_FP8", "native", CONSTANT),
        file.before(file.statement, f"native = has_native_fp8({file.code(views[0][1])}.device)"),
        file.before(file.host, *NATIVE.splitlines()),
    ]
    rubric = ("pass fp8 tensors if the GPU multiplies e4m3fnuz, else bytes", "tl.dot without decoding for fp8 tensors")
    return [Variant("fp8 operands", rubric, file.edited(*edits))]


def _decoded(dot: ast.Call) -> list[ast.expr]:
    """Return the encoded operands of a product."""
    decoders = [
        a for a in dot.args[:2] if isinstance(a, ast.Call) and isinstance(a.func, ast.Name) and len(a.args) == 1
    ]
    return [a.args[0] for a in decoders if "decode" in a.func.id]  # type: ignore[attr-defined]


def _either(file: TritonFile, dot: ast.Call) -> str:
    a, b = (file.code(x) for x in _decoded(dot))
    rest = "".join(f", {k.arg}={file.code(k.value)}" for k in dot.keywords)
    return f"(tl.dot({a}, {b}{rest}) if NATIVE_FP8 else {file.code(dot)})"


def _viewed(argument: ast.expr) -> ast.expr | None:
    """Return the tensor of `tensor.view(torch.uint8)`."""
    if isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and argument.func.attr == "view":
        return argument.func.value if [ast.unparse(a) for a in argument.args] == ["torch.uint8"] else None
    return None


def transposed_tiles(file: TritonFile) -> list[Variant]:
    """Load an operand along its contiguous dimension and transpose it in registers."""
    strided = [o for o in operands(file) if any(_slice(t) == ":, None" for t in terms(o.address))]
    edits: list[Edit] = []
    for operand in strided:
        if operand.pointers:
            edits.append(file.replaced(operand.address, _swapped(file.code(operand.address))))
        edits.append(file.replaced(operand.load, f"tl.trans({_swapped(file.code(operand.load))})"))
    names = " and ".join(o.parameter.removesuffix("_ptr") for o in strided)
    rubric = (f"load the tile of {names} with its contiguous dimension last and transpose it with tl.trans",)
    return [Variant(f"tl.trans of {names}", rubric, file.edited(*edits))] if edits else []


def _swapped(code: str) -> str:
    return code.replace("[:, None]", "\0").replace("[None, :]", "[:, None]").replace("\0", "[None, :]")


def _slice(node: ast.expr) -> str:
    """Return `:, None` for `x[:, None]`; empty for anything but a subscript."""
    return ast.unparse(node.slice).strip("()") if isinstance(node, ast.Subscript) else ""


def k_major_inputs(file: TritonFile) -> list[Variant]:
    """Transpose column-major inputs in a separate kernel, so that the product reads along k."""
    depth = next((p for p in file.parameters if p in ("k", "K")), "")
    inputs = [(o, h, s) for o in operands(file) if (h := _tensor(file, o)) and (s := _stride(o))]
    inputs = [i for i in inputs if i[2] != depth]  # a row-major operand has its tile multiplied by k
    if len(inputs) != 2 or not depth or file.names & {"k_major", "transpose_kernel"}:
        return []
    edits = [file.before(file.host, *K_MAJOR.splitlines())]
    for operand, host, stride in inputs:
        edits.append(file.before(file.statement, f"{host} = k_major({host})"))
        edits += _along_k(file, operand, stride, depth)
    rubric = ("transpose both inputs first, tile by tile", "address them with k contiguous")
    return [Variant("both inputs", rubric, file.edited(*edits))]


def _along_k(file: TritonFile, operand: DotOperand, stride: str, depth: str) -> list[Edit]:
    """Return the edits that remove the stride along k and multiply the offsets along the tile by `depth`."""
    steps = [n for n in ast.walk(file.kernel) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
    moved = [n.value for n in steps if dotted(n.target) == operand.pointers]
    strided = [n for place in (operand.address, *moved) for n in ast.walk(place) if _times(n, stride)]
    unit = next(t for t in terms(operand.address) if _slice(t))
    edits = [file.replaced(n, file.code(n.left)) for n in strided if isinstance(n, ast.BinOp)]
    return [*edits, file.replaced(unit, f"{file.code(unit)} * {depth}")]


def _times(node: ast.AST, stride: str) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and dotted(node.right) == stride


def _stride(operand: DotOperand) -> str:
    """Return the stride along k of a column-major operand: the name that its other terms are multiplied by."""
    along = [t for t in terms(operand.address) if _slice(t)]
    strided = [t for t in terms(operand.address) if isinstance(t, ast.BinOp) and isinstance(t.right, ast.Name)]
    names = {t.right.id for t in strided if isinstance(t.right, ast.Name) and isinstance(t.op, ast.Mult)}
    return names.pop() if len(along) == 1 and len(names) == 1 and len(strided) >= 1 else ""


def _tensor(file: TritonFile, operand: DotOperand) -> str:
    """Return the name of the launch's tensor for an operand, passed directly or viewed as bytes."""
    argument = file.argument(operand.parameter)
    if isinstance(argument, ast.IfExp):
        argument = argument.body
    tensor = (_viewed(argument) or argument) if argument is not None else None
    return tensor.id if isinstance(tensor, ast.Name) else ""


def scalar_bases(file: TritonFile) -> list[Variant]:
    """Advance a scalar along k and keep a tile's offsets fixed: no vector arithmetic for addresses in the loop."""
    inner = loops(file.kernel, "tl.dot")
    addresses = [(o, text) for o in operands(file) if not o.pointers and (text := _based(file, inner[0], o))]
    if not addresses:
        return []
    edits = [file.replaced(o.address, text) for o, text in addresses]
    names = " and ".join(o.parameter.removesuffix("_ptr") for o, _ in addresses)
    rubric = (f"address {names} by an advancing scalar and fixed offsets",)
    return [Variant(f"offsets of {names}", rubric, file.edited(*edits))]


def _based(file: TritonFile, loop: ast.For, operand: DotOperand) -> str:
    """Return an address as `pointer + scalar + (offsets)`; empty if the row numbers are not `scalar + vector`."""
    inside = bound(loop)
    row = next((t for t in terms(operand.address) if read(t) & inside), None)
    rows = row.left if isinstance(row, ast.BinOp) else row
    if not isinstance(rows, ast.Subscript) or not isinstance(rows.value, ast.Name) or row is None:
        return ""
    numbers = [v for n, v in assignments(loop) if n == rows.value.id]
    parts = terms(numbers[0]) if len(numbers) == 1 else []
    steps, lanes = [p for p in parts if read(p) & inside], [p for p in parts if not read(p) & inside]
    rest = [t for t in terms(operand.address) if t is not row and file.code(t) != operand.parameter]
    if len(steps) != 1 or len(lanes) != 1 or not isinstance(lanes[0], ast.Name) or any(read(t) & inside for t in rest):
        return ""
    stride = file.code(row).removeprefix(file.code(rows))  # ` * m`, or nothing where k is contiguous
    offsets = [file.code(lanes[0]) + file.code(rows).removeprefix(rows.value.id) + stride, *map(file.code, rest)]
    return f"{operand.parameter} + {file.code(steps[0])}{stride} + ({' + '.join(offsets)})"
