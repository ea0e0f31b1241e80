"""Compiles each Triton kernel of a file by itself, with invented arguments.

The report names all assumptions. Runs in untrusted processes: imports the standard library, torch, triton, and modules
of this package that need no more.
"""

import ast
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from kernel_scientist.gpu.capture.files import guesses, launch_sites, missing, uses
from kernel_scientist.gpu.capture.files.trials import Setting, Trials, chain
from kernel_scientist.gpu.capture.limits import cpu_seconds
from kernel_scientist.gpu.fake.facts import Facts

KERNEL_S = 20.0
"""CPU seconds for the compilation of one kernel."""
OPTIONS = ("num_warps", "num_stages")
"""Options of a launch that are taken from the file's own launches, where these give numbers."""
FORMATS = (torch.float8_e4m3fnuz, torch.float8_e4m3fn)
"""MI300's format and that of the other GPUs."""
_UNITS = {"LDS": "B of LDS", "threads": "threads"}
WRAPPERS = 8
"""Most decorators of a kernel."""


@dataclass(frozen=True)
class TritonKernel:
    """A kernel of the file."""

    name: str
    function: Any
    configs: list[Any]
    heuristics: list[Mapping[str, Any]]
    prune: Any
    """The autotuner's function that says which configurations suit the arguments, or None."""
    line: int


def compiled(
    kernel: TritonKernel,
    module: ModuleType,
    text: str,
    deadline: float,
    facts: Facts,
    words: Callable[[Exception], str],
    small: bool = False,
) -> Iterator[tuple[Any, str]]:
    """Compile a kernel of a module with this text; yield its code, and a sentence about the assumptions.

    The code is None if it does not compile, and the sentence says why. `words` describes an error with its line.
    `small`: with small tiles. Where the file says that a tensor is fp8 and not of which format, there is one for each.
    """
    tree = ast.parse(text)
    for fp8 in FORMATS if launch_sites.of_fp8(tree, kernel.name) else FORMATS[:1]:
        yield _compiled(kernel, _trials(kernel, module, tree, deadline, facts, fp8), words, small)


def _compiled(kernel: TritonKernel, trials: Trials, words: Callable[[Exception], str], small: bool) -> tuple[Any, str]:
    if time.monotonic() > trials.deadline:
        return None, f"kernel.py, line {kernel.line}: {kernel.name} was not compiled: the time was over"
    try:
        with cpu_seconds(KERNEL_S, kernel.name):
            code, setting = trials.best(small)
        told = "; ".join([_told(setting, kernel.configs), *_refused(trials, setting, kernel.configs)])
        return code, f"{kernel.name} was compiled by itself: {told}"
    except Exception as error:
        lacks = lacking(kernel.function)
        where = f"{kernel.name} does not compile by itself: "
        return None, lacks or words_at(kernel, words(error), error, where)


def words_at(kernel: TritonKernel, told: str, error: Exception, where: str) -> str:
    """Return an error's words with the kernel's name, after the line if they begin with one."""
    if "\n" in told:  # the compiler quotes the source; what is wrong is in the last line of the innermost error
        lines = (line.strip() for one in reversed(chain(error)) for line in reversed(str(one).splitlines()))
        told = (
            f"{told.splitlines()[0].rpartition(': at ')[0]}: {next((line for line in lines if line.strip('^ ')), '')}"
        )
    place, colon, rest = told.partition(": ")
    if place.startswith("kernel.py, line"):
        return f"{place}{colon}{where}{rest}"
    return f"kernel.py, line {kernel.line}: {where}{told}"


def kernels(module: ModuleType) -> list[TritonKernel]:
    """Return the kernels that a module defines; if it defines none, those that it imports from its own package.

    Functions that kernels call, and functions that return a value, are no kernels.
    """
    found: dict[str, Any] = {}
    for name, value in _values(module):
        if (function := unwrapped(value)) is not None and not any(function is other for other, _ in found.values()):
            found[name] = (function, value)
    own = {n: both for n, both in found.items() if both[0].fn.__globals__ is vars(module)}
    top = module.__name__.split(".")[0]
    near = {n: both for n, both in found.items() if both[0].fn.__module__.split(".")[0] == top}
    chosen = own or near
    called = {id(one) for function, _ in chosen.values() for one in _called(function)}
    return [
        _kernel(name, function, value)
        for name, (function, value) in chosen.items()
        if id(function) not in called and not _returns(function)
    ]


def _kernel(name: str, function: Any, value: Any) -> TritonKernel:
    tuner = _tuner(value)
    configs, prune = list(getattr(tuner, "configs", ())), getattr(tuner, "early_config_prune", None)
    return TritonKernel(name, function, configs, _heuristics(value), prune, uses.line(function))


def _values(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield names and values of a module, then those of its classes."""
    yield from vars(module).items()
    for kind in [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]:
        for name, value in vars(kind).items():
            yield f"{kind.__name__}.{name}", value.__func__ if isinstance(value, staticmethod) else value


def unwrapped(value: Any) -> Any:
    """Return the `JITFunction` below a kernel's decorators; None for other values."""
    for _ in range(WRAPPERS):
        if isinstance(value, JITFunction):
            return value
        value = (
            vars(value).get("fn") if hasattr(value, "__dict__") and not isinstance(value, type | ModuleType) else None
        )
    return None


def _layers(value: Any) -> Iterator[Any]:
    while not isinstance(value, JITFunction):
        yield value
        value = value.fn


def _tuner(value: Any) -> Any:
    """Return the autotuner among a kernel's decorators, or None."""
    return next((layer for layer in _layers(value) if getattr(layer, "configs", None)), None)


def _heuristics(value: Any) -> list[Mapping[str, Any]]:
    found = (getattr(layer, "values", None) for layer in _layers(value))
    return [values for values in found if isinstance(values, dict)]


def _called(function: Any) -> Iterator[Any]:
    for node in ast.walk(uses.tree(function)):
        if isinstance(node, ast.Call) and (other := uses.callee(function, node.func)) is not None:
            yield other


def _returns(function: Any) -> bool:
    """Whether a function returns a value."""
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(uses.tree(function)))


def lacking(function: Any, depth: int = 4) -> str:
    """Return why a kernel cannot be compiled: a name that it or a function that it calls needs is missing."""
    space = function.fn.__globals__
    for node in ast.walk(uses.tree(function)):
        if isinstance(node, ast.Name) and (reason := missing.reason(space.get(node.id))):
            line = uses.line(function) + node.lineno - 1
            place = "kernel.py" if function.fn.__code__.co_filename.endswith("/kernel.py") else function.fn.__module__
            return f"{place}, line {line}: {function.fn.__name__} needs {reason}"
    return next((why for other in _called(function) if depth and (why := lacking(other, depth - 1))), "")


def _trials(
    kernel: TritonKernel, module: ModuleType, tree: ast.Module, deadline: float, facts: Facts, fp8: torch.dtype
) -> Trials:
    function = kernel.function
    names = [p.name for p in function.params]
    tunables = vars(module).get("TUNABLES")
    known = guesses.Known(
        uses=uses.of(function),
        hints=launch_sites.hints(tree, kernel.name, names, vars(module), fp8),
        tunables=tunables if isinstance(tunables, dict) else {},  # pyright: ignore[reportUnknownArgumentType]
        functions=_functions(module),
        units=guesses.units(names),
    )
    values = {param.name: guesses.alternatives(param, known) or [None] for param in function.params}
    said = launch_sites.hints(tree, kernel.name, [], vars(module))
    options = {name: said[name].value for name in OPTIONS if name in said and type(said[name].value) is int}
    configs, heuristics, prune = list(kernel.configs), kernel.heuristics, kernel.prune
    return Trials(function, known.uses, values, configs, heuristics, prune, deadline, facts, options)


def _functions(module: ModuleType) -> dict[int, list[Any]]:
    """Return the file's functions that return a value, by number of arguments."""
    found: dict[int, list[Any]] = {}
    for value in vars(module).values():
        function = unwrapped(value)
        if function is not None and _returns(function):
            found.setdefault(len(function.params), []).append(function)
    return found


def _told(setting: Setting, configs: list[Any]) -> str:
    """Return the invented arguments, those with equal values together, then what the file itself makes of them."""
    given = {} if setting.config is None else setting.config.all_kwargs()
    own = setting.derived.keys() | given.keys()
    said = [_grouped({name: value for name, value in setting.arguments.items() if name not in own})]
    if setting.derived:
        said.append(f"by the file's heuristics {_grouped(setting.derived)}")
    if setting.config is not None:
        chosen = ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
        said.append(f"configuration {configs.index(setting.config) + 1} of {len(configs)}: {chosen}")
    return "; ".join(part for part in said if part)


def _refused(trials: Trials, setting: Setting, configs: list[Any]) -> list[str]:
    """Return which configurations were tried before and are too large."""
    return [
        f"configuration {configs.index(config) + 1} needs {needed} {_UNITS[what.split()[0]]}, there are {most}"
        for config, (needed, most, what) in trials.too_large
        if config is not None and config is not setting.config
    ]


def _grouped(values: Mapping[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for name, value in values.items():
        groups.setdefault(_shown(value), []).append(name)
    return ", ".join(f"{', '.join(names)} {value}" for value, names in groups.items())


def _shown(value: Any) -> str:
    if isinstance(value, torch.dtype):
        return f"-> {str(value).removeprefix('torch.')}"
    if isinstance(value, guesses.Descriptor):
        return f"descriptor of {'x'.join(map(str, value.block))} blocks"
    return str(unwrapped(value).fn.__name__ if unwrapped(value) is not None else value)
