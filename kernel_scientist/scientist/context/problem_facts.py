"""Facts about a problem for the prompt templates: its data, sizes and rules, as its checker applies them."""

import ast
import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.problems.trees import cloned
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Case

MOST_LINES = 40
"""Tensors and values of one case that are described."""
MOST_OWN = 4
"""Cases of the problem's own that are named if others are timed."""
MOST_CHARACTERS = 200
"""Characters of a value that is no tensor."""
COPIES, ARITHMETIC = ("fills", "copies", "conversions", "concatenations"), ("sums", "elementwise operations")
"""Operations of torch whose time a performance model knows: those that a kernel may always use, and arithmetic."""


def problem(problem: Problem, profile: Profile) -> dict[str, Any]:
    """Return the problem's description, reference, data, cases and rules."""
    policy = problem.policy
    rules = [
        "Operators of PyTorch may do parts of the work, called from Python."
        if policy.library
        else "No library (torch, BLAS) may compute anything, sums of partial results included; torch may allocate, "
        "fill, copy, convert, view and concatenate.",
        "" if policy.threads else "Only one thread may be used.",
        "" if policy.graphs else "Graphs may not be replayed.",
        f"Inputs {', '.join(map(str, policy.static))} stay the same in all calls of a case." if policy.static else "",
    ]
    example = smallest(problem)
    return {
        "name": problem.name,
        "description": problem.description,
        "reference": problem.reference_text,
        "example": example.name,
        "data": data(problem, example),
        "tests": [c.name for c in profile.tests],
        "varied": ", ".join(f"{k} {a}-{b} (step {s})" for k, (a, b, s) in profile.vary.items()),
        "benchmarks": [c.name for c in profile.benchmarks],
        "sizes": ", ".join(example.sizes),
        "reduced": reduced(problem, profile),
        "from_file": bool(problem.adapter),
        "held_out": bool(profile.held_out),
        "hidden": any(not case.sizes for case in profile.benchmarks),
        "policy": " ".join(r for r in rules if r),
        "priced": ", ".join(COPIES + ARITHMETIC if policy.library else COPIES),
        "memory": _memory(problem),
    }


def _memory(problem: Problem) -> str:
    """Return which memory a kernel may write and return."""
    own = [f"data[{place}]" for place in sorted({*problem.writes, *problem.updates})]
    if problem.policy.aliases:
        return ""
    if own:
        return f"Of the inputs only {', '.join(own)} may be written."
    return (
        "Inputs are read-only. Each call returns a tensor of its own: not an input's memory, not a view of a larger "
        "buffer, not one that an earlier call returned, as the results of several calls are compared afterwards."
    )


def as_reference(problem: Problem, trial: Trial) -> dict[str, Any]:
    """Return whether a seed is the reference itself in the form of a kernel, as of a file without seeds, and what its
    file adds to the reference."""
    text, source = problem.reference_text.strip(), trial.kernel.source
    is_reference = trial.kernel.base is None and text in source
    added = " ".join(source.replace(text, "", 1).split()) if is_reference else ""
    return {"is_reference": is_reference, "added": added}


def smallest(problem: Problem) -> Case:
    """Return the smallest case that is timed on a CPU, or else that is checked."""
    profile = problem.profiles.get("cpu") or problem.profiles["full"]
    return min(profile.benchmarks or profile.tests, key=_extent)


def _extent(case: Case) -> float:
    sizes = [n for size in case.sizes.values() for n in (size if isinstance(size, list) else [size])]
    return math.prod(float(n) for n in sizes if isinstance(n, (int, float)) and n)


def reduced(problem: Problem, profile: Profile) -> str:
    """Return how the profile's cases differ from the problem's own: `rows 4096 -> 128` of a file, or the own cases."""
    own = problem.profiles.get("full", profile).benchmarks
    if {c.name for c in own} == {c.name for c in profile.benchmarks}:
        return ""
    if not problem.adapter or not own:
        return ", ".join([*(case.name for case in own[:MOST_OWN]), *(["..."] if len(own) > MOST_OWN else [])])
    now, before = profile.benchmarks[0].sizes, own[0].sizes
    return ", ".join(f"{name} {size} -> {now[name]}" for name, size in before.items() if now.get(name, size) != size)


@functools.lru_cache(maxsize=64)
def _known(problem: Problem, example: str) -> tuple[str, ...]:
    case = next(c for p in problem.profiles.values() for c in (*p.tests, *p.benchmarks) if c.name == example)
    here = dataclasses.replace(problem, device="cpu")  # the device is for timing
    lines = list[str]()
    with contextlib.suppress(Exception):  # sizes or types that this CPU cannot run: the reference's text remains
        inputs = here.generate(case)
        lines = list(_elements(here, inputs))
        output = list(_lines("returned", here.reference(cloned(inputs))))
        lines += output
    return tuple(lines[:MOST_LINES])


def data(problem: Problem, case: Case) -> tuple[str, ...]:
    """Return the elements of a case's `data` and what the reference returns, one per line; empty if unknown."""
    return _known(problem, case.name)


def _elements(problem: Problem, inputs: Any) -> Iterator[str]:
    items = cast(tuple[Any, ...], inputs) if isinstance(inputs, tuple) else (inputs,)
    names = [*_arguments(problem), "", "init_inputs"] if problem.adapter else []
    uses = dict.fromkeys(problem.policy.static, "the same in all calls of a case")
    uses |= dict.fromkeys(problem.updates, "may be changed in place")
    uses |= dict.fromkeys(problem.writes, "the buffer for the result")
    for place, item in enumerate(items):
        label = f"data[{place}]" if isinstance(inputs, tuple) else "data"
        label += f" ({names[place]})" if len(names) == len(items) and names[place] else ""
        yield from _lines(label, item, f"; {uses[place]}" if place in uses else "")


def _arguments(problem: Problem) -> list[str]:
    """Return the names of the arguments of a KernelBench file's `Model.forward`."""
    tree = ast.parse(problem.reference_text)
    model = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model")
    forward = next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None)
    return [a.arg for a in forward.args.args[1:]] if forward else []


def _lines(label: str, value: Any, note: str = "") -> Iterator[str]:
    """Yield a line per tensor of a tree, and one per other value."""
    if hasattr(value, "untyped_storage"):
        layout = "contiguous" if value.is_contiguous() else f"strides {list(value.stride())}"
        yield f"{label}: {str(value.dtype).removeprefix('torch.')} {list(value.shape)}, {layout}{note}"
    elif isinstance(value, Mapping) and value:
        for key, item in cast(Mapping[str, Any], value).items():
            yield from _lines(f"{label}[{key!r}]", item, note)
    elif isinstance(value, (list, tuple)) and any(hasattr(v, "untyped_storage") for v in cast(list[Any], value)):
        for place, item in enumerate(cast(list[Any], value)):
            yield from _lines(f"{label}[{place}]", item, note)
    else:
        yield f"{label}: {repr(value)[:MOST_CHARACTERS]}{note}"
