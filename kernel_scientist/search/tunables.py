"""Numbers belong to a tuner: Optuna searches what a kernel declares as tunable, on the real clock.

The Scientist decides on structure; a kernel that stands says in `TUNABLES` and `CHOICES` which numbers may be chosen.
Small spaces are searched to the end, larger ones by Optuna's TPE. A configuration that was tried is never tried again.
"""

import itertools
import math
import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from kernel_scientist.compile import autotune
from kernel_scientist.compile.source import KernelSource, SourceError, Value
from kernel_scientist.population.lineage import Population, score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel, Try, Verdict

MOST_CHOICES, MOST_TUNABLES = 64, 32
FAILED = -20.0
"""What the sampler is told of a configuration that is wrong: log2 of its speed over the untuned kernel's."""

Space = dict[str, tuple[Value, ...]]
Measure = Callable[[Mapping[str, Value], str], Try]
"""Put a configuration (values, source) through the judge, timed beside the untuned kernel."""


def space(source: str) -> Space:
    """Return what may be chosen, what is set now first: tunables that are declared with choices, and which of
    `triton.autotune`'s configurations is used."""
    try:
        file = KernelSource(source)
        declared, choices = file.tunables, file.choices
    except SourceError:
        return {}
    found: Space = dict(autotune.choices(source)) if "autotune" in source else {}
    for name in list(declared)[:MOST_TUNABLES]:
        offered = choices.get(name)
        if not isinstance(offered, (list, tuple)) or not all(type(v) in (int, float, str) for v in offered):
            continue
        values = tuple(dict.fromkeys((declared[name], *offered[:MOST_CHOICES])))
        if len(values) > 1:
            found[name] = values
    return found


def values(source: str) -> dict[str, Value]:
    """Return what the tunables that may be chosen are set to."""
    return {name: choices[0] for name, choices in space(source).items()}


def candidate(population: Population, promising: float, busy: frozenset[str]) -> Trial | None:
    """Return the kernel that is worth tuning: the incumbent, else the fastest of those near it; with something to tune,
    and neither tuned yet nor tuned from another.

    Near is `promising` times the incumbent's speed or more; 1 means the incumbent alone. `busy` names kernels that are
    passed over.
    """
    best = population.best()
    if best is None:
        return None
    tuned = {t.kernel.tuned_from for t in population} | busy
    near = [t for t in population.ranked() if t is not best and score(t) >= promising * score(best)]
    for trial in (best, *(near if promising < 1 else ())):
        kernel = trial.kernel
        if kernel.tuned_from is None and kernel.name not in tuned and space(kernel.source):
            return trial
    return None


def tune(
    kernel: Kernel, measure: Measure, tries: int, seed: int, known: Callable[[str], bool], enough: Callable[[], bool]
) -> tuple[Try, ...]:
    """Try at most so many configurations; stop when there are no others, or when `enough` says so.

    `known` tells whether a source was tried before, as a kernel of its own; its configuration is passed over.
    """
    file, free, start = KernelSource(kernel.source), space(kernel.source), values(kernel.source)
    found: list[Try] = []

    def attempt(chosen: dict[str, Value]) -> float:
        source = configured(file, chosen)
        if chosen == start or known(source):
            return 0.0
        found.append(measure(chosen, source))
        gain = found[-1].log2_ratio
        return FAILED if gain is None else gain

    if math.prod(len(choices) for choices in free.values()) <= tries + 1:
        every = [dict(zip(free, chosen, strict=True)) for chosen in itertools.product(*free.values())]
        for chosen in random.Random(seed).sample(every, len(every)):
            if not enough():
                attempt(chosen)
        return tuple(found)
    study, gains = _study(tries, seed), dict[tuple[Value, ...], float]()
    study.enqueue_trial(start)
    for _ in range(20 * tries):  # samplers repeat themselves
        if len(found) >= tries or enough():
            break
        trial = study.ask()
        chosen = {name: trial.suggest_categorical(name, list(choices)) for name, choices in free.items()}
        key = tuple(chosen.values())
        if key not in gains:
            gains[key] = attempt(chosen)
        study.tell(trial, gains[key])
    return tuple(found)


def configured(file: KernelSource, chosen: Mapping[str, Value]) -> str:
    """Return a kernel's file with these choices made."""
    text = file.with_tunables({k: v for k, v in chosen.items() if not k.startswith(autotune.PREFIX)}).text
    return autotune.chosen(text, chosen) if any(k.startswith(autotune.PREFIX) for k in chosen) else text


def winner(tries: tuple[Try, ...]) -> Try | None:
    """Return the fastest configuration that is right; the first one when none is; None when none was tried."""
    right = [t for t in tries if t.verdict is Verdict.OK and t.log2_ratio is not None]
    return max(right, key=lambda t: t.log2_ratio or 0.0) if right else next(iter(tries), None)


def _study(tries: int, seed: int) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(4, tries // 3), multivariate=True)
    return optuna.create_study(direction="maximize", sampler=sampler)
