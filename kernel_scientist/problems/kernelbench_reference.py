"""Reference of a KernelBench file, in GPU MODE's form. Its file is importable as `kernelbench_model`.

Kernels may import it too: `adapted(ModelNew)` makes a `custom_kernel` of a class.
"""

import ast
import contextlib
import random
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import kernelbench_model  # type: ignore[import-not-found]  # pyright: ignore
import numpy
import torch

OFFICIAL = False
"""Parameters are those of the constructor; otherwise they have other values and come with the inputs."""
DEVICE = "cpu"
PRECISION = torch.float32
"""Type of floating-point inputs and parameters. Integers, such as class indices, keep theirs."""
CONSTRUCTION_SEED = 42
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""Absolute and relative tolerance by output type, as in KernelBench."""
Data = tuple[Any, ...]
_models: dict[tuple[Any, str], tuple[torch.nn.Module, set[str], dict[str, torch.Tensor], set[str]]] = {}
"""Models, names that must be given, tensors of the state by name, names of the buffers among them; by class and
constructor's arguments."""
_seeding = threading.RLock()
"""Held while values are drawn: torch's random state is that of all threads."""


def generate_input(*, seed: int, **sizes: Any) -> Data:
    """Return `(*inputs, parameters, init_inputs)`. sizes: other values of the file's numbers at module level."""
    module = _module(sizes)
    with _seeding:
        _seed(seed)
        inputs = [_cast(_moved(value), PRECISION) for value in module.get_inputs()]
        init_inputs = _moved(list(module.get_init_inputs()))
    if OFFICIAL:
        return (*inputs, {}, init_inputs)
    state = _constructed(module.Model, init_inputs).state_dict(keep_vars=True)  # tied weights are one object
    generator = torch.Generator().manual_seed(seed)
    varied = {id(value): _varied(value.detach(), generator) for value in state.values()}
    return (*inputs, {name: varied[id(value)] for name, value in state.items()}, init_inputs)


def ref_kernel(data: Data) -> Any:
    """Return Model's output."""
    return _called(kernelbench_model.Model, data)


def golden_kernel(data: Data) -> Any:
    """Return Model's output, computed in double precision where the model allows it."""
    right = ref_kernel(data)
    try:
        with _default_type(torch.float64):
            found = _called(kernelbench_model.Model, _cast(data, torch.float64), torch.float64)
    except (RuntimeError, TypeError):
        return right
    return _like(found, right)


def check_implementation(data: Data, output: Any) -> tuple[bool, str]:
    """Return whether an output is Model's within KernelBench's tolerance."""
    return _compared(output, ref_kernel(data))


def adapted(kind: type[torch.nn.Module]) -> Callable[[Data], Any]:
    """Return the `custom_kernel` of a class like `Model`."""
    return lambda data: _called(kind, data)


def _called(kind: Any, data: Data, dtype: torch.dtype | None = None) -> Any:
    *inputs, parameters, init_inputs = data
    key = (kind, repr((init_inputs, dtype)))
    if key not in _models:
        model = _constructed(kind, init_inputs)
        model = model if dtype is None else model.to(dtype)
        kept, buffers = model.state_dict(keep_vars=True), {name for name, _ in model.named_buffers()}
        names = {name for name, _ in model.named_parameters()} | buffers
        _models[key] = (model, names & kept.keys(), kept, buffers)
    model, names, kept, buffers = _models[key]
    with torch.no_grad():
        if not parameters:
            return _forward(model, {}, tuple(inputs))
        if names - set(parameters):
            missing = ", ".join(sorted(names - set(parameters))[:3])
            raise ValueError(
                f"ModelNew has parameters that Model has not ({missing}): name them as Model does, define "
                "custom_kernel(data), or use compat=official, where both are constructed with one seed"
            )
        if not all(_is_plain(tensor) and _is_plain(parameters.get(name, tensor)) for name, tensor in kept.items()):
            given = {n: p.clone() if n in buffers else p for n, p in parameters.items() if n in names}
            return _forward(model, given, tuple(inputs))
        for name, tensor in kept.items():  # the module's tensors stay the same objects: some modules keep lists of them
            if name in parameters:
                tensor.data = parameters[name].clone() if name in buffers else parameters[name]
        return _forward(model, {}, tuple(inputs))


def _is_plain(tensor: Any) -> bool:
    """Whether a tensor has values; one without shows the shapes of large cases."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type != "meta"


def _forward(model: torch.nn.Module, given: dict[str, torch.Tensor], inputs: Data) -> Any:
    """Return the model's output. `given`: tensors in place of its own (functional_call takes some 100 us)."""
    return torch.func.functional_call(model, given, inputs) if given else model(*inputs)


def _constructed(kind: Any, init_inputs: list[Any]) -> torch.nn.Module:
    with _seeding, _default_type(torch.float32):  # in double precision torch draws other values
        _seed(CONSTRUCTION_SEED)
        model = kind(*init_inputs)
    if DEVICE == "cpu" and all(t.dtype == PRECISION or not t.is_floating_point() for t in model.state_dict().values()):
        return model  # tensors without values, which show the shapes of large cases, cannot be converted
    return model.to(device=DEVICE, dtype=PRECISION)


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    numpy.random.seed(seed % (1 << 32))
    random.seed(seed)


def _moved(value: Any) -> Any:
    return _each(value, lambda tensor: tensor.to(DEVICE))


def _varied(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return other values of a parameter or buffer: not all of them zeros; positive ones stay positive."""
    if not value.is_floating_point():
        return value.clone()
    factor = 0.75 + 0.5 * torch.rand(value.shape, generator=generator)
    noise = 0.1 * torch.randn(value.shape, generator=generator)
    return (value.cpu() * factor + noise * ~value.cpu().any()).to(value.dtype).to(value.device)


def _module(sizes: dict[str, Any]) -> ModuleType:
    """Return the file as a module with other numbers at module level."""
    path = Path(str(kernelbench_model.__file__))
    tree = ast.parse(TEXT or path.read_text())
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name), *_], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                node.value = _replaced(sizes, name, value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                for place, name in enumerate(names):
                    values[place] = _replaced(sizes, name.id if isinstance(name, ast.Name) else "", values[place])
            case _:
                pass
    module = ModuleType("kernelbench_model")
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), module.__dict__)
    return module


def _replaced(sizes: dict[str, Any], name: str, value: ast.expr) -> ast.expr:
    """Return the expression of a size's other value, or the file's own if it has none."""
    if name not in sizes:
        return value
    other = tuple(sizes[name]) if isinstance(value, ast.Tuple) else sizes[name]
    return ast.copy_location(ast.parse(repr(other), mode="eval").body, value)


TEXT = ""
"""Text of the file for the device; empty: it is read."""


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return _each(value, lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def _each(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return a tree of containers with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _each(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_each(item, change) for item in value)
    return value


def _like(value: Any, right: Any) -> Any:
    if isinstance(right, torch.Tensor):
        return value.to(right.dtype)
    if isinstance(right, dict):
        return {key: _like(value[key], item) for key, item in right.items()}
    if isinstance(right, (list, tuple)):
        return type(right)(_like(v, r) for v, r in zip(value, right, strict=True))
    return value


@contextlib.contextmanager
def _default_type(dtype: torch.dtype) -> Generator[None]:
    """Let new tensors be of this type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _compared(output: Any, right: Any) -> tuple[bool, str]:
    if isinstance(right, dict):
        if not isinstance(output, dict) or output.keys() != right.keys():
            return False, f"expected a dict with the keys {', '.join(map(str, right))}"
        output, right = [output[key] for key in right], list(right.values())
    if isinstance(right, (list, tuple)):
        if not isinstance(output, (list, tuple)) or len(output) != len(right):
            return False, f"expected {len(right)} outputs"
        pairs = zip(output, right, strict=True)
        return next((found for found in (_compared(*pair) for pair in pairs) if not found[0]), (True, ""))
    if not isinstance(right, torch.Tensor):
        return output == right, f"expected {right!r}, got {output!r}"
    if output.shape != right.shape:
        return False, f"expected shape {tuple(right.shape)}, got {tuple(output.shape)}"
    tolerance = TOLERANCES.get(right.dtype, 1e-4)
    if torch.allclose(output, right, rtol=tolerance, atol=tolerance):
        return True, ""
    wide = right.dtype if right.dtype == torch.float64 else torch.float32
    worst = (output.to(wide) - right.to(wide)).abs().max().item()
    return False, f"differs by up to {worst:.3g}; {tolerance:g} are allowed, absolute and relative"
