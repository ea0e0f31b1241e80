"""`triton.autotune` configurations as tunables: the value selects one of a kernel's listed configurations.

If only one configuration is left, Triton does not time them on the first call. Computed lists are left unchanged.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernel_scientist.compile.source import Value

if TYPE_CHECKING:
    import libcst as cst

ALL = "all"
"""Value that leaves a function's list unchanged."""
PREFIX = "autotune."


def choices(text: str) -> dict[str, tuple[Value, ...]]:
    """Return choices by autotuned function (`autotune.NAME`): `ALL`, then the number of each configuration."""
    import libcst as cst

    try:
        module = cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError):
        return {}
    found: dict[str, tuple[Value, ...]] = {}
    for node in module.body:
        configs = _configs(node) if isinstance(node, cst.FunctionDef) else None
        if isinstance(node, cst.FunctionDef) and configs is not None and len(configs.elements) > 1:
            found[PREFIX + node.name.value] = (ALL, *range(len(configs.elements)))
    return found


def with_configuration(text: str, values: Mapping[str, Value]) -> str:
    """Return the file with one configuration left for each function that `values` numbers."""
    import libcst as cst

    class Keeper(cst.CSTTransformer):
        def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
            number = values.get(PREFIX + original_node.name.value, ALL)
            configs = _configs(original_node)
            if not isinstance(number, int) or configs is None:
                return updated_node
            kept = configs.elements[number].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_deep_changes(_configs(updated_node) or configs, elements=[kept])

    return cst.parse_module(text).visit(Keeper()).code


def _configs(function: "cst.FunctionDef") -> Any:
    """Return the list of configurations in a function's `autotune` decorator, if it is written out."""
    import libcst as cst

    for decorator in function.decorators:
        call = decorator.decorator
        if not isinstance(call, cst.Call) or not _is_autotune(call.func):
            continue
        named = [a.value for a in call.args if a.keyword is not None and a.keyword.value == "configs"]
        first = named or [a.value for a in call.args[:1] if a.keyword is None]
        if first and isinstance(first[0], cst.List):
            return first[0]
    return None


def _is_autotune(function: Any) -> bool:
    import libcst as cst

    name = function.attr if isinstance(function, cst.Attribute) else function
    return isinstance(name, cst.Name) and name.value == "autotune"
