"""What a launch or an autotuner of Triton is given, by name.

Runs in untrusted processes: imports the standard library only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Known = tuple[str, Mapping[str, str]]
"""Kernel and constants of a launch that an autotuner made where times were predicted."""


def bound(kernel: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a launch's arguments by name."""
    names = [p.name for p in kernel.params]
    given = dict(zip(names, args, strict=False))
    given |= {k: v for k, v in options.items() if k in names}
    defaults = {n: p.default for n, p in kernel.signature.parameters.items() if p.default is not p.empty}
    return {n: given.get(n, defaults.get(n)) for n in names}


def launch_tuned(tuner: Any, tuned: Sequence[Known], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Launch with the configuration that a launch of this kernel is known to have, else with the first one."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    found = (dict(constants) for name, constants in tuned if name == tuner.base_fn.__name__)
    constants = next(found, {})

    def differences(config: Any) -> int:
        return sum(constants.get(name, str(value)) != str(value) for name, value in config.all_kwargs().items())

    config = tuner.best_config = min(tuner.prune_configs(options), key=differences)
    return tuner.fn.run(*args, **options, **config.all_kwargs())
