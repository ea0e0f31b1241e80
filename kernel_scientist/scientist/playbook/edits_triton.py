"""Edits of numbers in a Triton file: tile sizes and launch options.

A declared tunable moves along its choices. Else a tile size is a constant of the module that the launch passes under
the same name, and an option is a keyword of the launch.
"""

import ast
from collections.abc import Sequence

from kernel_scientist.compile.source import KernelSource, Value
from kernel_scientist.scientist.playbook.transformation import Apply, Variant
from kernel_scientist.scientist.playbook.tritonfile import TritonFile, calls, keyword
from kernel_scientist.scientist.roles import Facts

WARPS, STAGES = [1, 2, 4, 8, 16], [1, 2, 3]
DEFAULTS: dict[str, int] = {"num_warps": 4, "num_stages": 2, "waves_per_eu": 0, "matrix_instr_nonkdim": 0, "kpack": 1}
"""What AMD's backend takes when a launch says nothing (Triton 3.7, `HIPOptions`)."""
CHOICES: dict[str, list[Value]] = {
    "num_warps": [*WARPS],
    "num_stages": [*STAGES],
    "waves_per_eu": [0, 2, 3, 4],
    "matrix_instr_nonkdim": [0, 16, 32],
    "kpack": [1, 2],
}
LDS_BYTES = 64 << 10
"""Local memory of a workgroup on CDNA3."""
ROUND_BYTES = 128
"""What a round of the loop over k takes of each row: 128 fp8 values, or 64 of two bytes."""
AMD_ONLY = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
"""Options that NVIDIA's backend refuses, so they are passed only where torch is built for HIP."""
PRODUCTS_ONLY = ("num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack")
"""Options that leave the code of a kernel without `tl.dot` as it is on AMD: it pipelines nothing, registers abound."""
DOT_TILE: list[Value] = [32, 64, 128]
"""Of an undeclared tile of `tl.dot`: below 32 the matrix units idle, above 128 registers spill."""
FLAT_BLOCK: list[Value] = [256, 512, 1024, 2048, 4096, 8192]
"""Of an undeclared block of a streaming kernel: 1 to 32 elements per lane of four waves."""


def larger(*names: str) -> Apply:
    """Return the edit that moves the first choice up of each of these sizes."""
    return lambda source, facts: [v for n in names for v in _steps(source, n, 1)]


def smaller(*names: str) -> Apply:
    """Return the edit that moves each of these sizes one choice down."""
    return lambda source, facts: [v for n in names for v in _steps(source, n, -1)]


def others(name: str) -> Apply:
    """Return the edit that sets a launch option to each of its other choices."""

    def apply(source: KernelSource, facts: Facts) -> Sequence[Variant]:
        now, choices = _present(source, name)
        return [v for c in choices if c != now for v in _set(source, name, now, c)]

    return apply


def _steps(source: KernelSource, name: str, by: int) -> list[Variant]:
    now, choices = _present(source, name)
    if now is None or now not in choices:
        return []
    at = choices.index(now) + by
    return _set(source, name, now, choices[at]) if 0 <= at < len(choices) else []


def _present(source: KernelSource, name: str) -> tuple[Value | None, list[Value]]:
    """Return a number's value and what it may be set to; None for what the file has no place for."""
    if name in source.tunables:
        return source.tunables[name], source.choices.get(name, [])
    file = TritonFile.of(source)
    if file is None or (name in PRODUCTS_ONLY and not calls(file.kernel, "tl.dot")):
        return None, []
    if name in DEFAULTS:
        value = _option(file, name)
        return (DEFAULTS[name] if value is None else _integer(value)), CHOICES[name]
    value = _constant(file, name)
    return _integer(value), DOT_TILE if calls(file.kernel, "tl.dot") else FLAT_BLOCK


def _set(source: KernelSource, name: str, now: Value | None, value: Value) -> list[Variant]:
    """Return the variant with a number set, as one element; none when the file has no place for it."""
    edited = source.with_tunables({name: value}) if name in source.tunables else _undeclared(source, name, value)
    if edited is None or not fits(edited):
        return []
    return [Variant(f"{name} {now} -> {value}", (f"set {name} to {value}",), edited)]


def fits(source: KernelSource) -> bool:
    """Whether the tiles of a product's operands have room in local memory, as far as the file tells their sizes.

    `num_stages - 1` copies lie there of every round that a pipelined loop unrolls. A tile that nobody declared may
    not fill it: layouts and reductions take a little beside.
    """
    file = TritonFile.of(source)
    if file is None or not calls(file.kernel, "tl.dot"):
        return True
    rows = (
        [_size(file, n) for n in ("BLOCK_M", "BLOCK_N")] if "BLOCK_M" in file.parameters else [_size(file, "BLOCK")] * 2
    )
    ranges = calls(file.kernel, "tl.range")
    stages = [_size(file, "num_stages") or DEFAULTS["num_stages"], *_numbers(ranges, "num_stages")]
    rounds = (max(stages) - 1) * max([1, *_numbers(ranges, "loop_unroll_factor")])
    taken = sum(rows) * ROUND_BYTES * max(1, rounds)
    return taken < LDS_BYTES or (taken == LDS_BYTES and bool(source.tunables))


def _size(file: TritonFile, name: str) -> int:
    """Return a number that is declared, an option, or a constant; 0 for what is none of them."""
    declared = file.source.tunables.get(name)
    found = _integer(_option(file, name) if name in DEFAULTS else _constant(file, name))
    return declared if isinstance(declared, int) else found or 0


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
        return None  # options that come from elsewhere may hold it already
    return _new_option(file, name, value)


def _new_option(file: TritonFile, name: str, value: Value) -> KernelSource:
    held = next((d for k in file.launch.keywords if k.arg is None and (d := _amd(k.value))), None)
    if name not in AMD_ONLY:
        return file.edited(file.appended(file.launch, f"{name}={value}"))
    if held is not None:
        return file.edited(file.replaced(held, file.code(held).removesuffix("}") + f', "{name}": {value}}}'))
    options = f'**({{"{name}": {value}}} if torch.version.hip else {{}})'
    return file.edited(file.appended(file.launch, options))


def _option(file: TritonFile, name: str) -> ast.expr | None:
    """Return the value that a launch gives an option, in a keyword or among AMD's."""
    for given in file.launch.keywords:
        if given.arg == name:
            return given.value
        if given.arg is None and (options := _amd(given.value)):
            for key, value in zip(options.keys, options.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return value
    return None


def _amd(value: ast.expr) -> ast.Dict | None:
    """Return the dict of `{...} if torch.version.hip else {}`."""
    return value.body if isinstance(value, ast.IfExp) and isinstance(value.body, ast.Dict) else None


def _constant(file: TritonFile, name: str) -> ast.expr | None:
    """Return the value of a module's constant that the launch passes under the same name."""
    given = file.argument(name)
    if not isinstance(given, ast.Name) or given.id != name or name.endswith("_K"):
        return None  # what is scaled per block of k may depend on the depth: only a declared choice is safe
    for node in file.tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return node.value
    return None


def _integer(value: ast.expr | None) -> int | None:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None
