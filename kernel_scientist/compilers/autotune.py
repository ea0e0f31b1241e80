"""`triton.autotune` configurations as tunables: the value selects one of a kernel's listed configurations.

If only one configuration is left, Triton does not time them on the first call. Computed lists are left unchanged.
"""

import ast
from collections.abc import Mapping

from kernel_scientist.compilers.source import KernelSource, Value, replaced

ALL = "all"
"""Value that leaves a function's list unchanged."""
PREFIX = "autotune."


def choices(text: str) -> dict[str, tuple[Value, ...]]:
    """Return choices by autotuned function (`autotune.NAME`): `ALL`, then the number of each configuration."""
    return {name: (ALL, *range(len(f.elts))) for name, f in _configurations(text).items() if len(f.elts) > 1}


def with_configuration(text: str, values: Mapping[str, Value]) -> str:
    """Return the file with one configuration left for each function that `values` numbers."""
    numbered = [(found, values.get(name, ALL)) for name, found in _configurations(text).items()]
    return replaced(
        text,
        [(found, f"[{ast.get_source_segment(text, found.elts[n])}]") for found, n in numbered if isinstance(n, int)],
    )


def _configurations(text: str) -> dict[str, ast.List]:
    """Return the list in each function's first `autotune` decorator where it is written out, by `autotune.NAME`."""
    found: dict[str, ast.List] = {}
    functions = [node for node in KernelSource(text).tree().body if isinstance(node, ast.FunctionDef)]
    for function, decorator in ((one, decorator) for one in functions for decorator in one.decorator_list):
        match decorator:
            case ast.Call(func=ast.Attribute(attr="autotune") | ast.Name(id="autotune"), args=args, keywords=named):
                given = [*(n.value for n in named if n.arg == "configs"), *args[:1]]
                if given and isinstance(given[0], ast.List):
                    found.setdefault(f"{PREFIX}{function.name}", given[0])
            case _:
                pass
    return found
