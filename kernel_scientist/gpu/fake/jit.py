"""What a launch or an autotuner of Triton is given, by name.

Runs in untrusted processes: imports the standard library and triton only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.errors import OutOfResources, PTXASError

Known = tuple[str, Mapping[str, str]]
"""Kernel and constants of a launch that an autotuner made where times were predicted."""


def bound(kernel: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a launch's arguments by name."""
    names = [p.name for p in kernel.params]
    given = dict(zip(names, args, strict=False))
    given |= {k: v for k, v in options.items() if k in names}
    defaults = {n: p.default for n, p in kernel.signature.parameters.items() if p.default is not p.empty}
    return {n: given.get(n, defaults.get(n)) for n in names}


@dataclass(frozen=True)
class Configuration:
    """One of an autotuner's configurations, with which it launched."""

    kernel: str
    numbers: tuple[int, ...]
    """Its number, after those of configurations that cannot be launched."""
    of: int
    """How many there are."""
    words: str


def launch_tuned(tuner: Any, tuned: Sequence[Known], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Launch with the configuration that a launch of this kernel is known to have, else with the first one."""
    found = (dict(constants) for name, constants in tuned if name == tuner.base_fn.__name__)
    constants = next(found, {})

    def differences(config: Any) -> int:
        return sum(constants.get(name, str(value)) != str(value) for name, value in config.all_kwargs().items())

    return _launch(tuner, min(_configurations(tuner, args, options), key=differences), args, options)


def launch_in_turn(
    tuner: Any, turn: int, args: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[Any, Configuration]:
    """Launch with the configuration whose turn it is; those that cannot be launched are passed over, as by Triton."""
    configs = _configurations(tuner, args, options)
    numbers: list[int] = []
    while True:
        numbers.append((turn + len(numbers)) % len(configs))
        config = configs[numbers[-1]]
        try:
            result = _launch(tuner, config, args, options)
        except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
            if len(numbers) == len(configs):
                raise
        else:
            return result, Configuration(tuner.base_fn.__name__, tuple(numbers), len(configs), str(config))


def _configurations(tuner: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> list[Any]:
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    return list(tuner.prune_configs(options))


def _launch(tuner: Any, config: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    tuner.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**tuner.nargs, **options, **config.all_kwargs()})
    return tuner.fn.run(*args, **options, **config.all_kwargs())
