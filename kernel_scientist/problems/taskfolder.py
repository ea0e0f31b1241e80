"""GPU MODE task folders: `task.yml` and `reference.py`, with our `lab.yml` next to them.

The reference is trusted code. Its `device="cuda"` is replaced by the target's device, so a folder serves CPU and GPU.
"""

import ast
import functools
import inspect
import random
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, cast

from pydantic import ValidationError

from kernel_scientist.problems import published
from kernel_scientist.problems.expression import evaluate
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.records.base import Record, read_mapping
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Case, Work, digest

DEFAULT_SEED = 42
_import_lock = threading.Lock()


@dataclass(frozen=True)
class Profile:
    """Checking cases, timed cases, and held-out cases, which a search never sees."""

    tests: tuple[Case, ...]
    benchmarks: tuple[Case, ...]
    held_out: tuple[Case, ...]
    vary: dict[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])
    """(from, to, step) by size: ranges of random sizes on which a kernel is checked in addition to the listed cases."""

    def secret(self, rng: random.Random) -> Case | None:
        """Return a random case within `vary`; None if the problem has no ranges."""
        if not self.vary:
            return None
        sizes = {k: rng.randrange(a, b + 1, step) for k, (a, b, step) in self.vary.items()}
        return Case(sizes=sizes, seed=secret_seed(rng))


class Policy(Record):
    """Rules for kernels in addition to correctness (`policy` in lab.yml)."""

    library: bool = True
    """Whether a library (torch's operations, BLAS, ...) may do the work."""
    tampering: Literal["reject", "allow"] = "reject"
    """`reject` or `allow` (for research) kernels whose source tampers with their process."""
    threads: bool = True
    """Whether a kernel may use several threads."""
    graphs: bool = True
    """Whether CUDA or HIP graphs may be replayed."""
    aliases: bool = False
    """Whether the output may share memory with a read-only input."""
    static: tuple[int, ...] = ()
    """Positions of inputs that stay the same from call to call (weights); a kernel may prepare them once."""


class Leaderboard(Record):
    """Leaderboard for kernels of this problem (`leaderboard` in lab.yml)."""

    name: str = ""
    gpu: str = ""

    def header(self) -> str:
        """Return the header lines of a submission."""
        return f"#!POPCORN leaderboard {self.name}\n#!POPCORN gpu {self.gpu}\n" if self.name else ""


class Controls(Record):
    """Known wrong outputs that the problem's check must reject at its admission (`controls` in lab.yml)."""

    reduction: tuple[int, int] | None = None
    """(position of an input, dimension) of the reduction: an output from half of it must fail."""
    precision: str | None = None
    """Type that is too narrow: an output from inputs rounded to it must fail."""
    exempt: tuple[str, ...] = ()
    """Names of controls whose output is correct for this problem by definition."""


@dataclass(frozen=True)
class Problem:
    """A problem: inputs, reference, check, cases. Equality and hash are by folder."""

    name: str
    folder: Path
    description: str
    profiles: dict[str, Profile]
    dtype: str
    work_expressions: dict[str, str]
    writes: tuple[int, ...]
    policy: Policy
    controls: Controls
    leaderboard: Leaderboard
    stress: tuple[dict[int, float], ...] = ()
    """Scale factors by input position, for checks on inputs outside the generator's usual range."""
    parts: tuple[dict[int, tuple[int, int]], ...] = ()
    """By dimension of the output: the dimension of each input (by position) that its indices select from, and the
    number of indices per element of that dimension. Empty: an element may depend on all inputs."""
    published: tuple[PublishedTime, ...] = ()
    """Times that others measured."""
    device: str = "cpu"

    def __hash__(self) -> int:
        return hash((self.folder, self.device))

    def profile(self, name: str) -> Profile:
        """Return a profile by name. `auto` is `cpu` on a CPU if the problem has it, else `full`.

        Raises SetupError if the name is unknown.
        """
        if name == "auto":
            name = "cpu" if self.device == "cpu" and "cpu" in self.profiles else "full"
        if name not in self.profiles:
            raise SetupError(f"problem {self.name} has no profile {name!r}; it has: {', '.join(self.profiles)}")
        return self.profiles[name]

    def generate(self, case: Case, seed: int | None = None) -> tuple[Any, ...]:
        """Return a case's inputs, generated with `seed` or else the case's own seed."""
        return self._module.generate_input(**case.sizes, seed=case.seed if seed is None else seed)

    def reference(self, data: Any) -> Any:
        """Return the reference's output. The reference may write to the inputs."""
        return self._module.ref_kernel(data)

    def golden(self, data: Any) -> Any:
        """Return the output of the double-precision reference (`golden_kernel`) if present, else of the reference."""
        return getattr(self._module, "golden_kernel", self._module.ref_kernel)(data)

    def check(self, data: Any, output: Any) -> tuple[bool, str]:
        """Return (whether `output` is correct for `data`, the reason if not), by the problem's own check."""
        answer = self._module.check_implementation(data, output)
        if isinstance(answer, tuple):
            good, message = cast(tuple[Any, Any], answer)
            return bool(good), str(message)
        return not answer, str(answer or "")

    def part(self, data: Any, box: Sequence[slice], shape: Sequence[int]) -> tuple[Any, tuple[slice, ...]]:
        """Return the inputs that a box of the output depends on, and the box widened to whole blocks of inputs.

        shape: of the output. Buffers to be written are replaced, so that the reference does not change `data`.
        """
        widened = [slice(0, size) for size in shape]
        if not isinstance(data, tuple):
            return data, tuple(widened)
        import torch  # it takes seconds, and not every command needs it

        items = [torch.empty_like(x) if i in self.writes else x for i, x in enumerate(cast(tuple[Any, ...], data))]
        for dim, sources in enumerate(self.parts):
            block = max(each for _, each in sources.values())
            first, end = box[dim].start // block * block, min(-(-box[dim].stop // block) * block, shape[dim])
            widened[dim] = slice(first, end)
            for position, (source, each) in sources.items():
                items[position] = items[position].narrow(source, first // each, -(-end // each) - first // each)
        return tuple(items), tuple(widened)

    def work(self, case: Case) -> Work:
        """Return a case's minimum work, for the roofline. Raises SetupError for an invalid expression in lab.yml."""
        try:
            counts = {k: float(evaluate(text, case.sizes)) for k, text in self.work_expressions.items()}
            return Work(flops=counts["flops"], bytes=counts["bytes"], dtype=self.dtype)
        except (ValueError, KeyError) as error:
            raise SetupError(f"{self.folder / 'lab.yml'}: work: {error}") from error

    @functools.cached_property
    def reference_source(self) -> str:
        """Source of the reference in the form of a kernel, so that it can be timed like one."""
        return f"{_source_for(self.folder / 'reference.py', self.device)}\n\ncustom_kernel = ref_kernel\n"

    def seeds(self, language: str) -> list[Path]:
        """Return the seed kernels' files of a language: naive ones first, then the others by name."""
        files = sorted((self.folder / "seeds").glob(f"{language}_*.py"))
        return sorted(files, key=lambda f: (not f.stem.endswith("naive"), f.name))

    @functools.cached_property
    def digest(self) -> str:
        """sha256 over the files that define the problem (seeds excluded)."""
        files = [self.folder / f for f in ("task.yml", "reference.py", "lab.yml")]
        return digest("\0".join(f.read_text() for f in files if f.exists()))

    @functools.cached_property
    def _module(self) -> Any:
        return _import_reference(self.folder, self.device)


def load(folder: Path, device: str = "cpu") -> Problem:
    """Return the problem in a task folder. Raises SetupError that names the file and what is wrong in it."""
    task = read_mapping(folder / "task.yml")
    lab = read_mapping(folder / "lab.yml") if (folder / "lab.yml").exists() else {}
    full = Profile(
        tests=_cases(task.get("tests", []), folder / "task.yml"),
        benchmarks=_cases(task.get("benchmarks", []), folder / "task.yml"),
        held_out=_cases(lab.get("held_out", []), folder / "lab.yml"),
    )
    profiles: dict[str, Profile] = {}
    for name, given in {"full": {}, **lab.get("profiles", {})}.items():
        chosen: dict[str, Any] = given or {}
        profiles[name] = Profile(
            **{f: _cases(chosen[f], folder / "lab.yml") if f in chosen else getattr(full, f) for f in _FIELDS},
            vary=_ranges(chosen.get("vary", {}), folder),
        )
    work = lab.get("work", {"flops": "0", "bytes": "0"})
    return Problem(
        name=folder.name,
        folder=folder,
        description=str(task.get("description", "")),
        profiles=profiles,
        dtype=str(lab.get("dtype", "fp32")),
        work_expressions={k: str(v) for k, v in work.items()},
        writes=tuple(int(i) for i in lab.get("writes", [])),
        policy=_section(Policy, lab.get("policy"), folder),
        controls=_section(Controls, lab.get("controls"), folder),
        leaderboard=_section(Leaderboard, lab.get("leaderboard"), folder),
        stress=tuple({int(k): float(v) for k, v in one.items()} for one in lab.get("stress", [])),
        parts=tuple({int(i): (int(d), int(n)) for i, (d, n) in one.items()} for one in lab.get("parts", [])),
        published=published.read(lab.get("published"), folder / "lab.yml"),
        device=device,
    )


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


_FIELDS = ("tests", "benchmarks", "held_out")


def _cases(items: list[Mapping[str, Any]], path: Path) -> tuple[Case, ...]:
    cases: list[Case] = []
    for item in items:
        sizes = {k: v for k, v in item.items() if k != "seed"}
        if wrong := next((k for k, v in sizes.items() if not isinstance(v, int)), None):
            raise SetupError(f"{path}: case {dict(item)}: {wrong!r} is not a whole number")
        cases.append(Case(sizes=sizes, seed=int(item.get("seed", DEFAULT_SEED))))
    return tuple(cases)


class _DeviceNames(ast.NodeTransformer):
    """Transformer that replaces the constant "cuda" (or "cuda:0") by the target's device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and (node.value == "cuda" or node.value.startswith("cuda:")):
            return ast.copy_location(ast.Constant(self.device), node)
        return node


def _source_for(path: Path, device: str) -> str:
    try:
        tree = ast.parse(path.read_text(), str(path))
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from error
    except SyntaxError as error:
        raise SetupError(f"{path}:{error.lineno}: {error.msg}") from error
    return ast.unparse(ast.fix_missing_locations(_DeviceNames(device).visit(tree)))


def _import_reference(folder: Path, device: str) -> ModuleType:
    """Import reference.py. During the import, `task` in its folder and `utils` one folder up are importable."""
    path = folder / "reference.py"
    module = ModuleType(f"reference_{folder.name.replace('-', '_')}")
    module.__file__ = str(path)
    paths = [str(folder), str(folder.parent)]
    with _import_lock:
        before = set(sys.modules)
        sys.path[:0] = paths
        try:
            exec(compile(_source_for(path, device), str(path), "exec"), module.__dict__)
        except ImportError as error:
            raise SetupError(f"{path}: {error}") from error
        finally:
            del sys.path[: len(paths)]
            for name in set(sys.modules) - before:
                if Path(getattr(sys.modules[name], "__file__", None) or "/").parent in (folder, folder.parent):
                    del sys.modules[name]
    for name in ("generate_input", "ref_kernel", "check_implementation"):
        if not callable(getattr(module, name, None)):
            raise SetupError(f"{path} defines no {name}()")
    if "seed" not in inspect.signature(module.generate_input).parameters:
        raise SetupError(f"{path}: generate_input() takes no seed")
    return module


def secret_seed(rng: random.Random) -> int:
    """Return a random seed that no published case uses."""
    return rng.randrange(1 << 40, 1 << 62)
