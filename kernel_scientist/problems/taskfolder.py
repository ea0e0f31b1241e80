"""GPU MODE task folders: `task.yml`, `reference.py` and what it imports, with our `lab.yml` next to them if any.

The reference is trusted code. Its `device="cuda"` is replaced by the target's device, so a folder serves CPU and GPU.
Format: `task.yml` of github.com/gpu-mode/reference-kernels.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from kernel_scientist.problems import assumptions, counted, published, requirements
from kernel_scientist.problems.device_names import on_device
from kernel_scientist.problems.problem import SEED_BITS, Controls, Leaderboard, Policy, Problem, Profile
from kernel_scientist.records.errors import SetupError, one_line
from kernel_scientist.records.kernel import Case, Size
from kernel_scientist.records.yaml_text import read_mapping

DEFAULT_SEED = 42
SMALL_SEED_BITS = 14
"""Bits of secret seeds without a lab.yml: about those of the seeds that folders list. GPU MODE's sort adds its seed to
its inputs, and float32 has no digits left for them at 2^30."""
SUBMISSION = "@SUBMISSION@"
"""Source of the file that a submission takes the place of."""
RANKINGS = ("last", "mean", "geom")
MALFORMED = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What reading a task folder raises if a value is of another kind than is expected there."""
LAB = (
    *("dtype", "work", "writes", "updates", "stress", "parts", "held_out", "profiles", "published", "policy"),
    *("controls", "leaderboard", "seed_bits"),
)
"""Keys of lab.yml."""
_FIELDS = ("tests", "benchmarks", "held_out")


def load(folder: Path, device: str = "cpu", compat: str = "intended", name: str = "") -> Problem:
    """Return the problem in a task folder. Raises SetupError that names the file and what is wrong in it.

    compat: see `Problem.compat`. Without a lab.yml the reference is run at small sizes to find out what lab.yml would
    say (`assumptions`); that is kept.
    """
    try:
        problem = _read(folder, device, compat, name)
    except MALFORMED as error:  # a value of another kind than is expected
        raise malformed(folder, error) from error
    return problem if (folder / "lab.yml").exists() else assumptions.completed(problem)


def malformed(folder: Path, error: Exception) -> SetupError:
    """Return the error for a task folder in which a value is of another kind than is expected there."""
    return SetupError(f"{folder}: task.yml or lab.yml has a value of a wrong kind: {one_line(error)}")


def _read(folder: Path, device: str, compat: str, name: str) -> Problem:
    task = read_mapping(folder / "task.yml")
    lab_file, with_lab = folder / "lab.yml", (folder / "lab.yml").exists()
    lab = read_mapping(lab_file) if with_lab else {}
    if unknown := next((key for key in lab if key not in LAB), None):
        raise SetupError(f"{lab_file}: unknown key {unknown!r}; known: {', '.join(LAB)}")
    official = compat == "official"
    full = Profile(
        tests=_cases(task.get("tests") or [], folder / "task.yml", official),
        benchmarks=_cases(task.get("benchmarks") or [], folder / "task.yml", official),
        held_out=_cases(lab.get("held_out") or [], lab_file, official),
    )
    ranking = str(task.get("ranking_by") or ("geom" if with_lab else "last"))
    if ranking not in RANKINGS:
        raise SetupError(f"{folder / 'task.yml'}: ranking_by: {ranking!r} is none of {', '.join(RANKINGS)}")
    if official and ranking == "last":
        full = dataclasses.replace(full, benchmarks=full.benchmarks[-1:])
    files = python_files(task, folder)
    requirements.require(name or folder.name, requirements.of_task(task, files, device))
    return Problem(
        name=name or folder.name,
        folder=folder,
        description=str(task.get("description", "")),
        profiles=_profiles(lab, full, folder, official),
        dtype=str(lab.get("dtype") or "fp32"),
        work_expressions={k: str(v) for k, v in (lab.get("work") or {}).items()},
        writes=tuple(int(i) for i in lab.get("writes") or []),
        updates=tuple(int(i) for i in lab.get("updates") or []),
        policy=_section(Policy, lab.get("policy"), folder),
        controls=_section(Controls, lab.get("controls"), folder),
        leaderboard=_section(Leaderboard, lab.get("leaderboard"), folder),
        reference_file=files["reference"],
        files=(
            folder / "task.yml",
            files["reference"],
            lab_file,
            *(f for m, f in files.items() if m != "reference"),
        ),
        read_sources=functools.partial(_sources, files),
        count_work=counted.work,
        stress=tuple({int(k): float(v) for k, v in one.items()} for one in lab.get("stress") or []),
        parts=tuple({int(i): (int(d), int(n)) for i, (d, n) in one.items()} for one in lab.get("parts") or []),
        published=published.read(lab.get("published"), lab_file),
        device=device,
        compat=compat,
        ranking=ranking,
        seed_bits=_seed_bits(lab, lab_file) if with_lab else SMALL_SEED_BITS,
    )


def _seed_bits(lab: Mapping[str, Any], lab_file: Path) -> int:
    """Return the bits of secret seeds. Raises SetupError for a number with which listed seeds could use them up."""
    bits = lab.get("seed_bits") or SEED_BITS
    if not isinstance(bits, int) or not SMALL_SEED_BITS <= bits <= SEED_BITS:
        raise SetupError(f"{lab_file}: seed_bits: {bits!r} is no number from {SMALL_SEED_BITS} to {SEED_BITS}")
    return bits


def python_files(task: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Return the Python files of a task by module name: those of `files` in task.yml, and those beside reference.py.

    Raises SetupError for a file that is named and missing.
    """
    found = {"reference": folder / "reference.py"}
    for place in (folder.parent, folder):
        found |= {name: place / f"{name}.py" for name in ("task", "utils") if (place / f"{name}.py").is_file()}
    for entry in cast(list[Mapping[str, Any]], task.get("files") or []):
        name, source = Path(str(entry.get("name", ""))), str(entry.get("source", ""))
        if source == SUBMISSION or name.suffix != ".py" or name.stem in ("eval", "submission"):
            continue
        path = (folder / source).resolve()
        if not path.is_file():
            raise SetupError(f"{folder / 'task.yml'}: files: {name} is {source}, and there is no file {path}")
        found[name.stem] = path
    return found


def _sources(files: Mapping[str, Path], device: str) -> dict[str, str]:
    try:
        return {name: on_device(path.read_text(), device) for name, path in files.items()}
    except OSError as error:
        raise SetupError(f"cannot read {error.filename}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        places = ", ".join(str(path) for path in files.values())
        raise SetupError(f"cannot read one of {places}: it is not text ({error})") from error


def _profiles(lab: Mapping[str, Any], full: Profile, folder: Path, official: bool) -> dict[str, Profile]:
    profiles: dict[str, Profile] = {}
    for name, given in {"full": {}, **(lab.get("profiles") or {})}.items():
        chosen: dict[str, Any] = given or {}
        read = {f: _cases(chosen[f], folder / "lab.yml", official) for f in _FIELDS if f in chosen}
        profiles[name] = dataclasses.replace(full, **read, vary=_ranges(chosen.get("vary") or {}, folder))
    _require_names(profiles, folder)
    return profiles


def _ranges(given: dict[str, Any], folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return the ranges of sizes. Raises SetupError that names an invalid range."""
    for name, range_ in given.items():
        good = isinstance(range_, list) and len(range_) == 3 and all(isinstance(n, int) and n > 0 for n in range_)
        if not good or range_[0] > range_[1]:
            raise SetupError(f"{folder / 'lab.yml'}: vary: {name}: {range_} is not [from, to, step]")
    return {name: (a, b, step) for name, (a, b, step) in given.items()}


_Section = TypeVar("_Section", Policy, Controls, Leaderboard)


def _section(kind: type[_Section], given: Any, folder: Path) -> _Section:
    """Return a section of lab.yml. Raises SetupError that names the wrong key."""
    try:
        return kind.model_validate(given or {})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in (kind.__name__.lower(), *first["loc"]))
        known = ", ".join(kind.model_fields)
        raise SetupError(f"{folder / 'lab.yml'}: {key}: {first['msg']}; known there: {known}") from error


def _cases(items: list[Mapping[str, Any]], path: Path, official: bool) -> tuple[Case, ...]:
    """Return cases. `official`: booleans become text, as on the leaderboard, where `False` is a text that is true."""
    cases: list[Case] = []
    for item in items:
        sizes: dict[str, Size] = {}
        for key, value in item.items():
            if key == "seed":
                continue
            if not isinstance(value, (bool, int, float, str, list)):
                raise SetupError(f"{path}: case {dict(item)}: {key!r} is no number, text, boolean or list")
            sizes[key] = str(value) if official and isinstance(value, bool) else value
        cases.append(Case(sizes=sizes, seed=int(item.get("seed", DEFAULT_SEED))))
    return _told_apart(cases)


def _told_apart(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return cases of which those of the same sizes have labels: their seeds, and a number if these are the same."""
    found, seen = list[Case](), Counter[str]()
    same = Counter(repr(case.sizes) for case in cases)
    for case in cases:
        seen[repr(case)] += 1
        again = seen[repr(case)]
        label = f"seed{case.seed}{f'-{again}' if again > 1 else ''}" if same[repr(case.sizes)] > 1 else ""
        found.append(case.model_copy(update={"label": label}))
    return tuple(found)


def _require_names(profiles: Mapping[str, Profile], folder: Path) -> None:
    """Raise SetupError if two cases of different sizes have the same name."""
    known = dict[str, dict[str, Size]]()
    for profile in profiles.values():
        for case in (*profile.tests, *profile.benchmarks, *profile.held_out):
            other = known.setdefault(case.name, case.sizes)
            if repr(other) != repr(case.sizes):
                raise SetupError(
                    f"{folder}: the cases {other} and {case.sizes} would both be named {case.name}: change one of them"
                )
