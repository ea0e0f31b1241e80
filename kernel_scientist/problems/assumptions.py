"""What holds for a problem that has no lab.yml: found out by running its reference at small sizes, and kept.

writes, updates   inputs that the reference changes; those whose earlier content matters to it are updates
cpu profile       the cases of task.yml with smaller sizes (`shrink`), within bounds of bytes and flops
work              flops counted by torch while the reference runs, bytes of inputs and outputs
"""

import dataclasses
import itertools
import logging
import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from kernel_scientist.problems import counted, shrink
from kernel_scientist.problems.dependence import is_constant
from kernel_scientist.problems.problem import Problem, Profile
from kernel_scientist.problems.trees import cloned, items, same, tensors
from kernel_scientist.records import environment, layout
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError, one_line
from kernel_scientist.records.kernel import Case, digest

if TYPE_CHECKING:
    import torch

progress = logging.getLogger("kernel_scientist.progress")
TESTS, BENCHMARKS, HELD_OUT = 4, 6, 2
"""Most cases of a CPU profile."""
TEST_BYTES, TEST_FLOPS = 1 << 20, 5e7
BYTES, FLOPS = 4 << 20, 2e8
"""Most bytes of inputs and flops of a checked and of a timed case on a CPU, if the smallest sizes stay below."""
ROOM = 10
"""How far cases may exceed these bounds so that sizes keep what all listed ones have in common."""
SLOW_S = 2.0
"""CPU time of the reference on all cores at which sizes are not increased further, in seconds."""
GARBAGE = 0x5A
DTYPES = {"float8": "fp8", "bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}


class AssumedLab(Record):
    """What was found out."""

    writes: tuple[int, ...]
    updates: tuple[int, ...]
    dtype: str
    exempt: tuple[str, ...]
    grain: int
    together: bool
    """Whether all sizes of a case were halved equally often."""
    common: bool
    """Whether sizes keep the power of two that all listed values have in common."""
    tests: tuple[Case, ...]
    benchmarks: tuple[Case, ...]
    held_out: tuple[Case, ...]
    full_held_out: tuple[Case, ...]


def completed(problem: Problem) -> Problem:
    """Return a problem with what its missing lab.yml would say. Raises SetupError if its reference runs at no sizes."""
    parts = (problem.digest, problem.device, environment.sources_digest("problems", "records"))
    kept = environment.cache_folder() / "assumptions" / f"{digest(chr(0).join(parts))}.json"
    if kept.exists():
        return _with(problem, AssumedLab.model_validate_json(kept.read_text()))
    progress.debug("finding small sizes for %s, which has no lab.yml", problem.name)
    found = _find(problem)
    environment.keep(kept, found.model_dump_json())
    return _with(problem, found)


def lab(problem: Problem) -> str:
    """Return the text of a lab.yml that says what was found out."""
    cpu, full = problem.profiles["cpu"], problem.profiles["full"]
    uses = {"tests": cpu.tests, "benchmarks": cpu.benchmarks, "held_out": cpu.held_out}
    named = {use: [{**c.sizes, "seed": c.seed} for c in cases] for use, cases in uses.items()}
    content = {
        "dtype": problem.dtype,
        "writes": list(problem.writes),
        "updates": list(problem.updates),
        "seed_bits": problem.seed_bits,
        "controls": {"exempt": list(problem.controls.exempt)},
        "profiles": {"full": {}, "cpu": named},
        "held_out": [{**c.sizes, "seed": c.seed} for c in full.held_out],
    }
    head = "".join(f"# {sentence}\n" for sentence in problem.assumed)
    return head + yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)


def _with(problem: Problem, found: AssumedLab) -> Problem:
    full = problem.profiles["full"]
    cpu = Profile(tests=found.tests, benchmarks=found.benchmarks, held_out=found.held_out)
    return dataclasses.replace(
        problem,
        writes=found.writes,
        updates=found.updates,
        dtype=found.dtype,
        controls=problem.controls.model_copy(update={"exempt": found.exempt}),
        profiles={"full": dataclasses.replace(full, held_out=found.full_held_out), "cpu": cpu},
        assumed=_sentences(problem, found),
    )


def _sentences(problem: Problem, found: AssumedLab) -> tuple[str, ...]:
    def positions(numbers: Sequence[int]) -> str:
        return ", ".join(map(str, numbers)) or "none"

    told = f"There is no {problem.folder / 'lab.yml'}, so this was assumed; `problems show --write-lab` writes it down."
    sizes = "the file's sizes" if problem.adapter else "sizes of task.yml"
    common = " and of the power of two that all listed values have in common" if found.common else ""
    return (
        "The file does not say the following, so it was assumed." if problem.adapter else told,
        f"Output buffers among the inputs: {positions(found.writes)}; inputs that are changed in place: "
        f"{positions(found.updates)}. The reference was observed.",
        f"Arithmetic type: {found.dtype}, that of the largest input. Work is counted while the reference runs: it is "
        "the reference's work, not the least possible. Flops are those of matrix products, convolutions and attention; "
        "none are shown where there are none, or where a large case cannot be followed without values.",
        f"Profile cpu: {sizes} halved, {'all equally often' if found.together else 'each by itself'}, while they stay "
        f"multiples of their factor of {found.grain}{common}, until a call moves at most "
        f"{BYTES >> 20} MiB and makes {FLOPS:g} flops (checks: {TEST_BYTES >> 20} MiB, {TEST_FLOPS:g}) or twice what "
        "it does at the smallest sizes.",
        "Held-out cases: the size that was halved most, about half as large again; if none was, the largest, about a "
        "quarter smaller; if the reference does not accept that or nothing changes by it, the next one.",
        *(["A copy of an input is a right output, so the control `copy` is left out."] if found.exempt else []),
    )


def _find(problem: Problem) -> AssumedLab:
    full = problem.profiles["full"]
    listed = full.tests or full.benchmarks
    if not listed:
        raise SetupError(f"{problem.folder / 'task.yml'} lists neither tests nor benchmarks")
    grain, rule = _rule(problem, (*full.tests, *full.benchmarks))
    data = problem.generate(rule.smallest(listed[0]))
    writes, updates = _roles([_changes(problem, data)])
    known = dataclasses.replace(problem, writes=writes, updates=updates)
    tests = _sized(known, _spread(listed, TESTS), rule, TEST_BYTES, TEST_FLOPS)
    if writes:  # the smallest case may leave an input without effect
        writes, updates = _roles([_changes(problem, problem.generate(case)) for case, _ in tests])
        known = dataclasses.replace(problem, writes=writes, updates=updates)
    originals = _spread(full.benchmarks or listed, BENCHMARKS)
    benchmarks = _sized(known, originals, rule, BYTES, FLOPS)
    return AssumedLab(
        writes=writes,
        updates=updates,
        dtype=_dtype([item for place, item in enumerate(data) if place not in writes] if writes else data),
        exempt=("copy",) if _is_copy(known, data) else (),
        grain=grain,
        together=rule.together,
        common=rule.common,
        tests=tuple(case for case, _ in tests),
        benchmarks=tuple(case for case, _ in benchmarks),
        held_out=tuple(_others(known, benchmarks, rule)),
        full_held_out=tuple(
            itertools.islice(_unlisted(full, shrink.others(originals[-1], originals[-1], rule.grains)), 1)
        ),
    )


def _rule(problem: Problem, cases: Sequence[Case]) -> tuple[int, shrink.Rule]:
    """Return the first rule by which the reference runs and passes its own check on every case, and its least grain.

    First all sizes of a case together, then each by itself, at coarser and coarser grains. What all listed values have
    in common is given up last: if the reference does not run with it, or cases are too large. A rule by which the first
    case's output hardly depends on its inputs is taken only if no other of CPU size is left: GroupNorm leaves little of
    channels that are as few as its groups.
    """
    finest, reason, constant = shrink.GRAINS[0], "", None
    tried, too_coarse = dict[frozenset[str], bool](), {True: math.inf, False: math.inf}
    for grain, together, common in (
        (finest, True, True),
        *((grain, False, True) for grain in shrink.GRAINS),
        *((grain, False, False) for grain in shrink.GRAINS),
    ):
        if (common or constant) and grain >= too_coarse[common]:
            continue
        rule = shrink.Rule(shrink.grains(cases, grain, common), together, common)
        smallest = {case.name: case for case in map(rule.smallest, cases)}
        sizes, too_large = frozenset(smallest), False
        if constant and sizes in tried:
            too_coarse[common] = grain if tried[sizes] else too_coarse[common]
            continue
        try:
            for case in smallest.values():
                if common or constant:
                    flops, moved = counted.run(problem, case)
                    too_large = max(flops / FLOPS, moved / BYTES) > (1 if together else ROOM)
                    if too_large:
                        too_coarse[common] = too_coarse[common] if together else grain
                        raise ValueError(f"{case.name} is too large")
                _require_own_check(problem, case)
            if not is_constant(problem, rule.smallest(cases[0])):
                return grain, rule
            constant = constant or (grain, rule)
        except SetupError:
            raise
        except Exception as error:  # sizes that do not fit each other
            reason = f"{type(error).__name__}: {one_line(error)}"
        tried[sizes] = too_large and not together
    if constant:
        return constant
    where = "no sizes were found at which the reference runs and passes its own check"
    raise SetupError(f"{problem.reference_file}: {where}: {reason}")


def _require_own_check(problem: Problem, case: Case) -> None:
    """Raise ValueError if the reference's output fails the problem's check."""
    data = problem.generate(case)
    good, reason = problem.check(cloned(data), problem.reference(cloned(data)))
    if not good:
        raise ValueError(f"its own output fails its check on {case.name} (is it random?): {reason}")


def _roles(observed: Sequence[dict[int, tuple[bool, bool]]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the positions of output buffers, and those of inputs that the reference changes in place.

    An output buffer is without effect in every case that was observed (see `_changes`).
    """
    places = sorted({place for one in observed for place in one})
    ignored = [place for place in places if all(one.get(place, (False, False))[1] for one in observed)]
    changed = [place for place in places if any(one.get(place, (False, False))[0] for one in observed)]
    return tuple(ignored), tuple(place for place in changed if place not in ignored)


def _changes(problem: Problem, data: Any) -> dict[int, tuple[bool, bool]]:
    """Return, for inputs that may be output buffers, whether the reference changes them and whether it ignores them."""
    if not isinstance(data, (tuple, list)):
        return {}
    before = cloned(data)
    right = problem.reference(data)
    returned = [_place(t) for t in tensors(right)]
    sizes = {t.numel() for t in tensors(right)}
    right = cloned(right)
    found = dict[int, tuple[bool, bool]]()
    for place, (now, earlier) in enumerate(zip(items(data), items(before), strict=True)):
        own = [_place(t) for t in tensors(now)]
        shared = any(start < last and first < end for start, end in own for first, last in returned)
        changed = shared or not same(now, earlier)
        fits = hasattr(now, "numel") and now.numel() in sizes  # a buffer that this reference leaves alone
        if not changed and not fits:
            continue
        other = cloned(before)
        for one in tensors(items(other)[place]):
            layout.elements(one).fill_(GARBAGE)
        found[place] = changed, _ignores(problem, other, right)
    return found


def _place(tensor: "torch.Tensor") -> tuple[int, int]:
    """Return the first address of a tensor's elements, and the end."""
    start, end = layout.View.of(tensor).span
    return tensor.data_ptr(), tensor.data_ptr() + end - start


def _ignores(problem: Problem, data: Any, right: Any) -> bool:
    """Whether the reference returns the right output for inputs of which one is garbage."""
    try:
        return same(problem.reference(data), right)
    except Exception:
        return False


def _is_copy(problem: Problem, data: Any) -> bool:
    """Whether an input is a right output."""
    right = tensors(problem.reference(cloned(data)))
    inputs = [t for place, item in enumerate(items(data)) if place not in problem.writable for t in tensors(item)]
    if len(right) != 1:
        return False
    shaped = [t.contiguous().reshape(right[0].shape) for t in inputs if t.numel() == right[0].numel()]
    return any(same(one, right[0]) for one in shaped)


def _sized(
    problem: Problem, cases: Sequence[Case], rule: shrink.Rule, most_bytes: float, most_flops: float
) -> list[tuple[Case, Case]]:
    """Return a version of each case whose sizes are as large as the bounds allow, and the case; each version once."""
    found = [(_grown(problem, case, rule, most_bytes, most_flops), case) for case in cases]
    return list({sized.name: (sized, case) for sized, case in found}.values())


def _grown(problem: Problem, original: Case, rule: shrink.Rule, most_bytes: float, most_flops: float) -> Case:
    """Return the smallest version of a case with its sizes doubled while it stays within the bounds.

    First all together, as sizes may have to fit each other, then each in turn, if the rule allows it.
    """
    case = rule.smallest(original)
    flops, moved = counted.run(problem, case)
    most_bytes, most_flops = max(most_bytes, 2 * moved), max(most_flops, 2 * flops)
    growing = [tuple(original.sizes), *((name,) for name in original.sizes if not rule.together)]
    while growing:
        candidate = shrink.larger(case, original, rule.grains, growing[0])
        if candidate is not None and _fits(problem, candidate, most_bytes, most_flops):
            case = candidate
            if len(growing) <= len(original.sizes):
                growing.append(growing.pop(0))
        else:
            growing.pop(0)
    return case


def _fits(problem: Problem, case: Case, most_bytes: float, most_flops: float) -> bool:
    start = time.process_time()  # not the clock, which a busy machine would change
    try:
        flops, moved = counted.run(problem, case)
    except Exception:  # sizes that do not fit each other
        return False
    return flops <= most_flops and moved <= most_bytes and time.process_time() - start < SLOW_S


def _others(problem: Problem, cases: Sequence[tuple[Case, Case]], rule: shrink.Rule) -> list[Case]:
    """Return cases of sizes that are not listed and that the reference accepts. cases: see `_sized`."""
    listed = {case.name for case, _ in cases}
    found = dict[str, Case]()
    for case, original in reversed(cases):
        candidates = (c for c in shrink.others(case, original, rule.grains) if c.name not in listed)
        if candidate := next((c for c in candidates if _differs(problem, c, case)), None):
            found[candidate.name] = candidate
        if len(found) == HELD_OUT:
            break
    return list(found.values())


def _unlisted(profile: Profile, cases: Iterator[Case]) -> Iterator[Case]:
    listed = [case.sizes for case in (*profile.tests, *profile.benchmarks)]
    return (case for case in cases if case.sizes not in listed)


def _differs(problem: Problem, case: Case, other: Case) -> bool:
    """Whether the reference accepts a case and moves other bytes than in another: a size may be without effect."""
    try:
        return counted.run(problem, case)[1] != counted.run(problem, other)[1]
    except Exception:  # sizes that do not fit each other
        return False


def _spread(cases: Sequence[Case], most: int) -> list[Case]:
    """Return up to so many of the cases, evenly, the first and the last among them."""
    if len(cases) <= most:
        return list(cases)
    return [cases[round(i * (len(cases) - 1) / (most - 1))] for i in range(most)]


def _dtype(data: Any) -> str:
    floating = [t for t in tensors(data) if t.is_floating_point()]
    if not floating:
        return "fp32"
    name = str(max(floating, key=lambda t: t.nbytes).dtype).removeprefix("torch.")
    return next((short for long, short in DTYPES.items() if name.startswith(long)), "fp32")
