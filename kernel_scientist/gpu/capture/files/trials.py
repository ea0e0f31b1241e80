"""Compiles a kernel for invented arguments; where the compiler refuses some, tries others.

The compiler names the line where it fails. Arguments behind that line are changed one by one, and a change is kept if
the compiler gets further with it. Runs in untrusted processes: imports the standard library, torch and triton only.
"""

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from kernel_scientist.gpu.capture.files.guesses import FLOATS, Descriptor
from kernel_scientist.gpu.capture.files.uses import Uses
from kernel_scientist.gpu.capture.limits import TimeLimitError
from kernel_scientist.gpu.fake.facts import Excess, Facts

TRIALS = 80
SEARCH_S = 12.0
"""CPU seconds after which no further arguments are tried for a kernel."""
ELEMENTS = 1 << 20
"""Number of elements of an invented tensor."""
SIDE = 1024
END = 1 << 20
"""The line of an error after the compiler's front end."""
_TENSORS: dict[torch.dtype, torch.Tensor] = {}


@dataclass
class Setting:
    """Arguments by parameter; `config` is one of the autotuner's configurations."""

    arguments: dict[str, Any]
    config: Any = None
    derived: dict[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    """Arguments and options that the file's heuristics, or the configuration's hook, gave instead."""

    def changed(self, **changes: Any) -> "Setting":
        """Return the setting with other arguments."""
        return Setting({**self.arguments, **changes}, self.config)


@dataclass
class Trials:
    """The trials of one kernel."""

    kernel: Any
    uses: Uses
    alternatives: Mapping[str, list[Any]]
    configs: list[Any]
    heuristics: list[Mapping[str, Any]]
    prune: Any
    """What the file gives its autotuner to leave configurations out, or None."""
    deadline: float
    """On the clock of `time.monotonic()`."""
    facts: Facts
    options: Mapping[str, Any]
    """What the file's own launches say of options such as `num_warps`."""
    too_large: list[tuple[Any, Excess]] = field(default_factory=list[tuple[Any, Excess]])
    """Configurations whose workgroup the GPU refuses, and what it lacks."""
    _tried: set[str] = field(default_factory=set[str])
    _until: float = 0.0

    def best(self, small: bool = False) -> tuple[Any, Setting]:
        """Return the compiled kernel and its arguments. Raises the compiler's error about the best arguments.

        `small`: begin with small tiles.
        """
        self._until = time.process_time() + SEARCH_S
        first = {name: values[0] for name, values in self.alternatives.items()}
        self.configs = self._suitable(first)
        setting = Setting(first, self.configs[0] if self.configs else None)
        if small:
            self.configs.sort(key=lambda config: prod(v for v in config.kwargs.values() if type(v) is int and v > 1))
            setting = Setting(first | {name: max(16, first[name] // 4) for name in self._tiles(setting)})
            setting.config = self.configs[0] if self.configs else None
        compiled, error = self._try(setting)
        while compiled is None:
            assert error is not None
            found = self._better(setting, error)
            if found is None:
                raise error
            setting, compiled, error = found
        return self._fitting(compiled, setting)

    def _suitable(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the configurations that the file itself takes for these arguments; all of them if it cannot say."""
        if self.prune is None:
            return self.configs
        try:
            kept = self.prune(self.configs, {name: realised(value) for name, value in arguments.items()})
            return [config for config in self.configs if config in kept] or self.configs
        except TimeLimitError:
            raise
        except Exception:
            return self.configs

    def _better(self, setting: Setting, error: Exception) -> tuple[Setting, Any, Exception | None] | None:
        """Return a setting with which the compiler gets further, and its result."""
        for other in self._moves(setting, error):
            if self._over():
                return None
            compiled, new = self._try(other)
            if compiled is not None or (new is not None and progress(new) > progress(error)):
                return other, compiled, new
        return None

    def _over(self) -> bool:
        late = time.process_time() > self._until or time.monotonic() > self.deadline
        return late or len(self._tried) >= TRIALS

    def _moves(self, setting: Setting, error: Exception) -> Iterator[Setting]:
        names = self._suspects(error)
        words = " ".join(str(one) for one in chain(error)).lower()
        if "not defined" in words or "static_assert" in words or "assertion" in words:
            yield from self._toggled(setting, self.alternatives)
        if "dtype" in words or "type" in words or "bitcast" in words:
            yield from self._uniform(setting)
        for rank in range(1, max((len(values) for values in self.alternatives.values()), default=1)):
            for name in names:
                if rank < len(self.alternatives[name]):
                    yield setting.changed(**{name: self.alternatives[name][rank]})
        for config in self.configs[1:6]:
            yield Setting(setting.arguments, config)
        yield from self._uniform(setting)
        yield from self._toggled(setting, [name for name in self.alternatives if name not in names])

    def _toggled(self, setting: Setting, names: Collection[str]) -> Iterator[Setting]:
        """Yield settings with one of the flags changed."""
        for name in names:
            if self.alternatives[name][:2] in ([True, False], [False, True]):
                yield setting.changed(**{name: not setting.arguments[name]})

    def _uniform(self, setting: Setting) -> Iterator[Setting]:
        """Yield settings with one type for all tensors of floats, or with all flags off."""
        floats = [name for name, value in setting.arguments.items() if value in FLOATS]
        for kind in (*FLOATS, torch.int8):
            yield setting.changed(**dict.fromkeys(floats, kind))
        flags = [name for name, value in setting.arguments.items() if value is True]
        if flags:
            yield setting.changed(**dict.fromkeys(flags, False))

    def _suspects(self, error: Exception) -> list[str]:
        """Return the parameters behind the place where the compiler fails, likely ones first."""
        found: list[str] = []
        for one in chain(error):
            node = getattr(one, "node", None)
            if node is not None and getattr(one, "src", None) == self.kernel.src:
                found += self.uses.behind(node)
        names = list(dict.fromkeys(name for name in found if len(self.alternatives[name]) > 1))
        return names or [name for name, values in self.alternatives.items() if len(values) > 1]

    def _try(self, setting: Setting) -> tuple[Any, Exception | None]:
        key = repr(setting)
        if key in self._tried:
            return None, _UselessError()
        self._tried.add(key)
        try:
            return self._compiled(setting), None
        except TimeLimitError:
            raise
        except Exception as error:
            return None, error

    def _compiled(self, setting: Setting) -> Any:
        given = {name: realised(value) for name, value in setting.arguments.items()}
        invented, options = dict(given), dict(self.options)
        if setting.config is not None:
            options |= {k: v for k, v in setting.config.all_kwargs().items() if v is not None}
            given |= {name: options.pop(name) for name in list(options) if name in given}
            invented = dict(given)
            if setting.config.pre_hook is not None:
                with contextlib.suppress(Exception):
                    setting.config.pre_hook(given)
        for values in self.heuristics:
            for name, function in values.items():
                with contextlib.suppress(Exception):
                    value = function({**given, **options})
                    (given if name in given else options)[name] = value
                    setting.derived[name] = value
        setting.derived |= {name: value for name, value in given.items() if value is not invented[name]}
        return self.kernel.run(*given.values(), grid=(1, 1, 1), warmup=True, **options)

    def _fitting(self, compiled: Any, setting: Setting) -> tuple[Any, Setting]:
        """Return a kernel that the GPU starts, by other configurations or smaller tiles; else the given one."""
        if (excess := self._excess(compiled)) is None:
            return compiled, setting
        self.too_large.append((setting.config, excess))
        others = [Setting(setting.arguments, config) for config in self.configs if config is not setting.config][:4]
        tiles = self._tiles(setting)
        for factor in (2, 4):
            smaller = {name: max(16, setting.arguments[name] // factor) for name in tiles}
            others.append(setting.changed(**smaller))
        for other in others:
            if self._over():
                break
            found, _ = self._try(other)
            if found is not None and (excess := self._excess(found)) is None:
                return found, other
            if found is not None:
                self.too_large.append((other.config, excess))
        return compiled, setting

    def _excess(self, compiled: Any) -> Excess | None:
        metadata = compiled.metadata
        return self.facts.excess(metadata.name, metadata.num_warps, metadata.shared)

    def _tiles(self, setting: Setting) -> list[str]:
        """Return the parameters that are sizes of tiles."""
        return [name for name, use in self.uses.params.items() if use.block and type(setting.arguments[name]) is int]


class _UselessError(Exception):
    """These arguments were tried before."""


def realised(value: Any) -> Any:
    """Return the argument that an alternative stands for."""
    if isinstance(value, torch.dtype):
        if value not in _TENSORS:
            _TENSORS[value] = torch.empty(ELEMENTS, dtype=value)
        return _TENSORS[value]
    if isinstance(value, Descriptor):
        base = torch.empty(ELEMENTS, dtype=torch.bfloat16)
        shape = [SIDE] * len(value.block)
        strides = [SIDE] * (len(value.block) - 1) + [1]
        return TensorDescriptor(base, shape, strides, list(value.block))
    return value


def chain(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, the outermost first."""
    found: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in found:
        found.append(one)
        one = one.__cause__ or one.__context__
    return found


def progress(error: BaseException) -> tuple[int, ...]:
    """Return how far the compiler got: the lines where it failed, from the kernel to the functions that it calls."""
    if isinstance(error, _UselessError):
        return (-1,)
    lines = [one.node.lineno for one in chain(error) if getattr(one, "node", None) is not None]  # pyright: ignore
    return tuple(lines) or (END,)
