"""Search the values that a kernel declares as tunable, by measured time.

The Scientist decides on a kernel's structure; the kernel declares in `TUNABLES` and `CHOICES` which values may vary.
Small spaces are searched exhaustively, larger ones by Optuna's TPE. No configuration is tried twice.
"""

import itertools
import math
import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from kernel_scientist.compilers import autotune
from kernel_scientist.compilers.source import KernelSource, SourceError, Value
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel, Try, Verdict

MOST_CHOICES, MOST_TUNABLES, MOST_NEAR = 64, 32, 100
"""Choices per tunable, tunables, and fastest kernels among which one is chosen for tuning."""
FAILED = -20.0
"""log2 of the speedup over the untuned kernel that the sampler gets for a configuration that failed."""

Space = dict[str, tuple[Value, ...]]
Measure = Callable[[Mapping[str, Value], str], Try]
"""Function that evaluates a configuration (values, source) against the untuned kernel."""


def space(source: str) -> Space:
    """Return the choices per tunable, its current value first; `triton.autotune`'s configurations are choices too."""
    try:
        file = KernelSource(source)
        declared, choices = file.tunables, file.choices
    except SourceError:
        return {}
    choices_of: Space = dict(autotune.choices(source)) if "autotune" in source else {}
    for name in list(declared)[:MOST_TUNABLES]:
        offered = choices.get(name)
        if not isinstance(offered, (list, tuple)) or not all(type(v) in (int, float, str) for v in offered):
            continue
        values = tuple(dict.fromkeys((declared[name], *offered[:MOST_CHOICES])))
        if len(values) > 1:
            choices_of[name] = values
    return choices_of


def values(source: str) -> dict[str, Value]:
    """Return the current values of the tunables that have choices."""
    return {name: choices[0] for name, choices in space(source).items()}


def candidate(population: Population, promising: float, busy: frozenset[str]) -> Trial | None:
    """Return the incumbent, or else the fastest kernel near it, that has tunables and is not part of any tuning yet.

    Near means at least `promising` times the incumbent's speed, by the estimate; 1 means only the incumbent. Kernels
    named in `busy` are excluded.
    """
    if (best := population.incumbent()) is None:
        return None
    excluded = population.tuned().keys() | busy
    enough = population.estimate(best) + math.log2(max(promising, 1e-9))
    ranking = population.ranking(MOST_NEAR) if promising < 1 else []
    for entry in (population.entry(best), *(one for one in ranking if population.estimate(one.name) >= enough)):
        if entry.tuned_from is None and entry.name not in excluded:
            trial = population.get(entry.name)
            if space(trial.kernel.source):
                return trial
    return None


def tune(
    kernel: Kernel, measure: Measure, tries: int, seed: int, is_tried: Callable[[str], bool], stop: Callable[[], bool]
) -> tuple[Try, ...]:
    """Try at most `tries` configurations; end early when there are no others or when `stop()` is true.

    A configuration is skipped if `is_tried` is true for its source, because it was evaluated as a separate kernel.
    """
    file, free, start = KernelSource(kernel.source), space(kernel.source), values(kernel.source)
    results: list[Try] = []

    def attempt(chosen: dict[str, Value]) -> float:
        source = configured(file, chosen)
        if chosen == start or is_tried(source):
            return 0.0
        results.append(measure(chosen, source))
        gain = results[-1].log2_ratio
        return FAILED if gain is None else gain

    if math.prod(len(choices) for choices in free.values()) <= tries + 1:
        every = [dict(zip(free, chosen, strict=True)) for chosen in itertools.product(*free.values())]
        for chosen in random.Random(seed).sample(every, len(every)):
            if not stop():
                attempt(chosen)
        return tuple(results)
    study, gains = _study(tries, seed), dict[tuple[Value, ...], float]()
    study.enqueue_trial(start)
    for _ in range(20 * tries):  # samplers may propose the same configuration again
        if len(results) >= tries or stop():
            break
        trial = study.ask()
        chosen = {name: trial.suggest_categorical(name, list(choices)) for name, choices in free.items()}
        key = tuple(chosen.values())
        if key not in gains:
            gains[key] = attempt(chosen)
        study.tell(trial, gains[key])
    return tuple(results)


def configured(file: KernelSource, chosen: Mapping[str, Value]) -> str:
    """Return a kernel's source with the chosen values."""
    text = file.with_tunables({k: v for k, v in chosen.items() if not k.startswith(autotune.PREFIX)}).text
    return autotune.with_configuration(text, chosen) if any(k.startswith(autotune.PREFIX) for k in chosen) else text


def winner(tries: tuple[Try, ...]) -> Try | None:
    """Return the fastest correct configuration; the first one if none is correct; None if none was tried."""
    timed = [t for t in tries if t.verdict is Verdict.OK and t.log2_ratio is not None]
    return max(timed, key=lambda t: t.log2_ratio or 0.0) if timed else next(iter(tries), None)


def _study(tries: int, seed: int) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(4, tries // 3), multivariate=True)
    return optuna.create_study(direction="maximize", sampler=sampler)
