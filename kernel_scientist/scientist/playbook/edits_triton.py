"""Edits of numbers in a Triton file: tile sizes and launch options.

A declared tunable is set to one of its choices. Otherwise a tile size is a module constant that the launch passes under
the same name, and an option is a keyword of the launch.
"""

import ast
from collections.abc import Sequence

from kernel_scientist.compilers.source import KernelSource, Value
from kernel_scientist.scientist.playbook.transformation import Apply, Variant
from kernel_scientist.scientist.playbook.triton_file import TritonFile, calls, has_several_products, keyword
from kernel_scientist.scientist.roles import CpuInfo

WARPS, STAGES = [1, 2, 4, 8, 16], [1, 2, 3]
DEFAULTS: dict[str, int] = {"num_warps": 4, "num_stages": 2, "waves_per_eu": 0, "matrix_instr_nonkdim": 0, "kpack": 1}
"""The defaults of AMD's backend (Triton 3.7, `HIPOptions`)."""
CHOICES: dict[str, list[Value]] = {
    "num_warps": [*WARPS],
    "num_stages": [*STAGES],
    "waves_per_eu": [0, 2, 3, 4],
    "matrix_instr_nonkdim": [0, 16, 32],
    "kpack": [1, 2],
}
LDS_BYTES = 64 << 10
"""Local memory of a workgroup on CDNA3."""
ITERATION_BYTES = 128
"""Bytes of each row per iteration of the loop over k: 128 fp8 values, or 64 of two bytes."""
AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
"""Options that NVIDIA's backend rejects; they are passed only if torch is built for HIP."""
PRODUCTS_ONLY = ("num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack")
"""Options without effect on a kernel without `tl.dot` on AMD: nothing is pipelined, few registers are used."""
DOT_TILE: list[Value] = [32, 64, 128]
"""Choices for an undeclared tile of `tl.dot`: below 32 the matrix units idle, above 128 registers spill."""
FLAT_BLOCK: list[Value] = [256, 512, 1024, 2048, 4096, 8192]
"""Choices for an undeclared block of a streaming kernel: 1 to 32 elements per lane of four waves."""


def larger(*names: str) -> Apply:
    """Return the edit that moves each of these numbers one choice up."""
    return lambda source, cpu: [v for n in names for v in _steps(source, n, 1)]


def smaller(*names: str) -> Apply:
    """Return the edit that moves each of these numbers one choice down."""
    return lambda source, cpu: [v for n in names for v in _steps(source, n, -1)]


def others(name: str) -> Apply:
    """Return the edit that sets a launch option to each of its other choices."""

    def apply(source: KernelSource, cpu: CpuInfo) -> Sequence[Variant]:
        current, choices = _present(source, name)
        return [v for c in choices if c != current for v in _set(source, name, current, c)]

    return apply


def _steps(source: KernelSource, name: str, by: int) -> list[Variant]:
    current, choices = _present(source, name)
    if current is None or current not in choices:
        return []
    index = choices.index(current) + by
    return _set(source, name, current, choices[index]) if 0 <= index < len(choices) else []


def _present(source: KernelSource, name: str) -> tuple[Value | None, list[Value]]:
    """Return a number's value and its choices; the value is None if the file has no place for the number."""
    if name in source.tunables:
        return source.tunables[name], source.choices.get(name, [])
    file = TritonFile.of(source)
    if file is None or (name in PRODUCTS_ONLY and not calls(file.kernel, "tl.dot")):
        return None, []
    if name == "num_stages" and has_several_products(file.kernel):
        return None, []  # whether another copy of their tiles fits is not known
    if name in DEFAULTS:
        value = _option(file, name)
        return (DEFAULTS[name] if value is None else _integer(value)), CHOICES[name]
    value = _constant(file, name)
    return _integer(value), DOT_TILE if calls(file.kernel, "tl.dot") else FLAT_BLOCK


def _set(source: KernelSource, name: str, current: Value | None, value: Value) -> list[Variant]:
    """Return the variant with a number set; none if the file has no place for it or the tiles do not fit."""
    edited = source.with_tunables({name: value}) if name in source.tunables else _undeclared(source, name, value)
    if edited is None or not fits(edited):
        return []
    return [Variant(f"{name} {current} -> {value}", (f"set {name} to {value}",), edited)]


def fits(source: KernelSource) -> bool:
    """Whether the operand tiles of `tl.dot` fit in local memory, if the file gives their sizes.

    A pipelined loop holds `num_stages - 1` copies of every unrolled iteration. Undeclared tiles may not fill the memory
    completely, because layouts and reductions need a little of it.
    """
    file = TritonFile.of(source)
    if file is None or not calls(file.kernel, "tl.dot"):
        return True
    rows = (
        [_size(file, n) for n in ("BLOCK_M", "BLOCK_N")] if "BLOCK_M" in file.parameters else [_size(file, "BLOCK")] * 2
    )
    ranges = calls(file.kernel, "tl.range")
    stages = [_size(file, "num_stages") or DEFAULTS["num_stages"], *_numbers(ranges, "num_stages")]
    copies = (max(stages) - 1) * max([1, *_numbers(ranges, "loop_unroll_factor")])
    needed = sum(rows) * ITERATION_BYTES * max(1, copies)
    return needed < LDS_BYTES or (needed == LDS_BYTES and bool(source.tunables))


def _size(file: TritonFile, name: str) -> int:
    """Return the value of a declared tunable, an option or a constant; 0 for anything else."""
    declared = file.source.tunables.get(name)
    undeclared = _integer(_option(file, name) if name in DEFAULTS else _constant(file, name))
    return declared if isinstance(declared, int) else undeclared or 0


def _numbers(heads: list[ast.Call], option: str) -> list[int]:
    return [n for h in heads if (n := _integer(keyword(h, option)))]


def _undeclared(source: KernelSource, name: str, value: Value) -> KernelSource | None:
    file = TritonFile.of(source)
    if file is None:
        return None
    place = _option(file, name) if name in DEFAULTS else _constant(file, name)
    if place is not None:
        return file.edited(file.replaced(place, str(value))) if _integer(place) is not None else None
    if name not in DEFAULTS or any(k.arg is None and _amd(k.value) is None for k in file.launch.keywords):
        return None  # options defined elsewhere may contain it already
    return _new_option(file, name, value)


def _new_option(file: TritonFile, name: str, value: Value) -> KernelSource:
    amd_options = next((d for k in file.launch.keywords if k.arg is None and (d := _amd(k.value))), None)
    if name not in AMD_ONLY:
        return file.edited(file.appended(file.launch, f"{name}={value}"))
    if amd_options is not None:
        text = file.code(amd_options).removesuffix("}") + f', "{name}": {value}}}'
        return file.edited(file.replaced(amd_options, text))
    options = f'**({{"{name}": {value}}} if torch.version.hip else {{}})'
    return file.edited(file.appended(file.launch, options))


def _option(file: TritonFile, name: str) -> ast.expr | None:
    """Return the value of an option in the launch, as a keyword or among AMD's options."""
    for argument in file.launch.keywords:
        if argument.arg == name:
            return argument.value
        if argument.arg is None and (options := _amd(argument.value)):
            for key, value in zip(options.keys, options.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return value
    return None


def _amd(value: ast.expr) -> ast.Dict | None:
    """Return the dict of `{...} if torch.version.hip else {}`."""
    return value.body if isinstance(value, ast.IfExp) and isinstance(value.body, ast.Dict) else None


def _constant(file: TritonFile, name: str) -> ast.expr | None:
    """Return the value of a module constant that the launch passes under the same name."""
    argument = file.argument(name)
    if not isinstance(argument, ast.Name) or argument.id != name or name.endswith("_K"):
        return None  # scales may depend on the depth of a block of k: only declared choices are safe
    if has_several_products(file.kernel):
        return None  # the choices are for one product: attention's two need twice the registers and local memory
    for node in file.tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return node.value
    return None


def _integer(value: ast.expr | None) -> int | None:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None
