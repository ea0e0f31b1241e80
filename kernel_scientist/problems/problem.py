"""A problem: inputs, reference, check, cases, and the rules for its kernels."""

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast

from kernel_scientist.problems import compiled_text, modules, parts, reference_calls, reference_kernels, trees
from kernel_scientist.problems.expression import evaluate
from kernel_scientist.problems.published import PublishedTime
from kernel_scientist.records import environment, objects
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError, one_line
from kernel_scientist.records.kernel import Case, Work, digest
from kernel_scientist.records.names import slug

REFERENCE_KERNEL = "reference_as_kernel"
"""Name of the seed of a problem without any: the reference in the form of a kernel."""
SEED_BITS = 31
"""Bits of secret seeds: numpy takes no larger ones."""


@dataclass(frozen=True)
class Profile:
    """Checking cases, timed cases, and held-out cases, which a search never sees."""

    tests: tuple[Case, ...]
    benchmarks: tuple[Case, ...]
    held_out: tuple[Case, ...]
    vary: dict[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])
    """(from, to, step) by size: ranges of random sizes on which a kernel is checked in addition to the listed cases."""

    def times(self, case: Case) -> bool:
        """Whether a case of these sizes is timed."""
        return any(case.sizes == timed.sizes for timed in self.benchmarks)

    def secret(self, rng: random.Random) -> Case | None:
        """Return a random case within `vary`; None if the problem has no ranges."""
        if not self.vary:
            return None
        sizes = {k: rng.randrange(a, b + 1, step) for k, (a, b, step) in self.vary.items()}
        return Case(sizes={**sizes}, seed=_seed(rng, SEED_BITS))


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
    """A problem. Equality and hash are by reference, name, device and compatibility."""

    name: str
    folder: Path
    description: str
    profiles: dict[str, Profile]
    dtype: str
    work_expressions: dict[str, str]
    """Flops and bytes of a case; empty: they are counted (`count_work`)."""
    writes: tuple[int, ...]
    """Positions of output buffers in the inputs: a kernel may write to them and return them."""
    policy: Policy
    controls: Controls
    leaderboard: Leaderboard
    reference_file: Path
    files: tuple[Path, ...]
    """All files that define the problem."""
    read_sources: Callable[[str], dict[str, str]]
    """Returns the Python files' text for a device, by module name."""
    updates: tuple[int, ...] = ()
    """Positions of inputs that a kernel may change in place, such as a KV cache."""
    count_work: "Callable[[Problem, Case], tuple[float, float]] | None" = None
    stress: tuple[dict[int, float], ...] = ()
    """Scale factors by input position, for checks on inputs outside the generator's usual range."""
    parts: tuple[dict[int, tuple[int, int]], ...] = ()
    """By dimension of the output: the dimension of each input (by position) that its indices select from, and the
    number of indices per element of that dimension. Empty: an element may depend on all inputs."""
    published: tuple[PublishedTime, ...] = ()
    """Times that others measured."""
    device: str = "cpu"
    compat: str = "intended"
    """`official`: cases are passed as the official harness passes them; `intended`: as their author meant them."""
    ranking: str = "geom"
    """How the leaderboard makes one figure of the benchmarks: `last`, `mean` or `geom`."""
    adapter: str = ""
    """Python text that makes `custom_kernel` of a file that defines `ModelNew` only."""
    compiling: str = "custom_kernel = torch.compile(ref_kernel, dynamic=False)\n"
    """Python text that makes `custom_kernel` of the reference, compiled by torch.compile."""
    assumed: tuple[str, ...] = ()
    """Sentences on what was assumed because no lab.yml says it."""
    seed_bits: int = SEED_BITS
    """Secret seeds have as many bits: fewer where the generator may use its seed as a value, as some of GPU MODE do."""

    def __hash__(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._identity == other._identity

    @property
    def _identity(self) -> tuple[Path, str, str, str]:
        return self.reference_file, self.name, self.device, self.compat

    @property
    def boolean_texts(self) -> tuple[str, ...]:
        """Names of sizes that are booleans in task.yml, and texts as the official harness passes them."""
        if self.compat != "official":
            return ()
        cases = (case for profile in self.profiles.values() for case in (*profile.tests, *profile.benchmarks))
        names = (name for case in cases for name, value in case.sizes.items() if value in ("True", "False"))
        return tuple(dict.fromkeys(names))

    @property
    def work_is_least(self) -> bool:
        """Whether `work` is a lower bound: lab.yml says so. Counted work is the reference's, which may do more."""
        return bool(self.work_expressions)

    @property
    def slug(self) -> str:
        """The name for files and registries."""
        return slug(self.name)

    @property
    def writable(self) -> tuple[int, ...]:
        """Positions of inputs that a kernel may write to."""
        return (*self.writes, *self.updates)

    def profile(self, name: str) -> Profile:
        """Return a profile by name. `auto` is `cpu` on a CPU if the problem has it, else `full`.

        Raises SetupError if the name is unknown.
        """
        if name == "auto":
            name = "cpu" if self.device == "cpu" and "cpu" in self.profiles else "full"
        if name not in self.profiles:
            raise SetupError(f"problem {self.name} has no profile {name!r}; it has: {', '.join(self.profiles)}")
        return self.profiles[name]

    def secret_seed(self, rng: random.Random) -> int:
        """Return a random seed that no listed case uses."""
        listed = {case.seed for profile in self.profiles.values() for case in (*profile.tests, *profile.benchmarks)}
        while (seed := _seed(rng, self.seed_bits)) in listed:
            pass
        return seed

    def generate(self, case: Case, seed: int | None = None) -> Any:
        """Return a case's inputs as plain data, generated with `seed` or else the case's own seed.

        Raises SetupError for inputs that a worker cannot get as they are (`objects`, `layout.refusal`).
        """
        data = self._module.generate_input(**case.sizes, seed=case.seed if seed is None else seed)
        try:
            plain = objects.plain_inputs(data, self.device)
            trees.require_own_memory(plain, self.writable, self.policy.static)
        except objects.ObjectError as error:
            raise SetupError(f"problem {self.name} cannot be evaluated: {error}") from error
        return plain

    def reference(self, data: Any) -> Any:
        """Return the reference's output. The reference may write to output buffers among the inputs."""
        return self._module.ref_kernel(self._official(data))

    def golden(self, data: Any) -> Any:
        """Return the output of the double-precision reference (`golden_kernel`) if present, else of the reference."""
        return getattr(self._module, "golden_kernel", self._module.ref_kernel)(self._official(data))

    def check(self, data: Any, output: Any, tell: Callable[[Any], None] | None = None) -> tuple[bool, str]:
        """Return (whether `output` is correct for `data`, the reason if not), by the problem's own check.

        tell: called once with the reference's output, as soon as the check computes it; if it does not, afterwards.
        What it raises counts before what the check says or raises.
        """
        official = self._official(data, self.writable)
        if tell is None:
            return self._checked(official, output)
        listener = reference_calls.Listener(official, self.writes, tell)
        try:
            with reference_calls.heard(listener):
                return self._checked(official, output)
        finally:
            if listener.error:
                raise listener.error
            if not listener.told:
                tell(self.reference(data))

    def _checked(self, official: Any, output: Any) -> tuple[bool, str]:
        try:
            answer = self._module.check_implementation(official, output)
        except AssertionError as error:  # as torch.testing.assert_close does
            return False, one_line(error)
        except Exception as error:  # it is a fault of the output if the reference's passes
            self._module.check_implementation(*self._right())
            return False, f"the problem's check fails on it: {type(error).__name__}: {one_line(error)}"
        if isinstance(answer, tuple):
            good, message = cast(tuple[Any, Any], answer)
            return bool(good), str(message)
        return not answer, str(answer or "")

    def _right(self) -> tuple[Any, Any]:
        """Return the inputs of a checking case, and the reference's output."""
        data = self.generate(next(case for profile in self.profiles.values() for case in profile.tests))
        return self._official(data, self.writable), trees.cloned(self.reference(data))

    def _official(self, data: Any, copied: Sequence[int] | None = None) -> Any:
        """Return inputs as the reference expects them; what it may change is a copy."""
        positions = self.updates if copied is None else copied
        parts = [item for place, item in enumerate(trees.items(data)) if place in positions]
        found = trees.cloned(data, parts) if parts else data
        return objects.revived(found, vars(self._module)) if objects.has_objects(found) else found

    def part(self, data: Any, box: Sequence[slice], shape: Sequence[int]) -> tuple[Any, tuple[slice, ...]]:
        """Return the inputs that a box of the output depends on, and the box widened (see `parts.part`)."""
        return parts.part(self.parts, self.writes, data, box, shape)

    def has_extent(self, data: Any, shape: Sequence[int]) -> bool:
        """Whether an output's shape agrees with the inputs in the dimensions of `parts`. Of which part of an output is
        right one cannot see that. True where not even the reference's agrees, on a checking case."""
        return parts.agree(self.parts, data, shape) or not self._agrees

    @functools.cached_property
    def _agrees(self) -> bool:
        data, right = self._right()
        found = trees.tensors(right)
        return len(found) == 1 and parts.agree(self.parts, data, found[0].shape)

    def work(self, case: Case) -> Work:
        """Return a case's minimum work, for the roofline. Raises SetupError for an invalid expression in lab.yml."""
        if not self.work_expressions and self.count_work is not None:
            flops, moved = self.count_work(self, case)
            return Work(flops=flops, bytes=moved, dtype=self.dtype)
        sizes = {name: float(size) for name, size in case.sizes.items() if isinstance(size, (int, float))}
        try:
            counts = {k: float(evaluate(text, sizes)) for k, text in self.work_expressions.items()}
            return Work(flops=counts.get("flops", 0.0), bytes=counts.get("bytes", 0.0), dtype=self.dtype)
        except ValueError as error:
            raise SetupError(f"{self.folder / 'lab.yml'}: work: {error}") from error

    @functools.cached_property
    def sources(self) -> dict[str, str]:
        """Text of the problem's Python files for its device, by module name; kernels may import them."""
        return self.read_sources(self.device)

    @functools.cached_property
    def reference_text(self) -> str:
        """The reference as its author wrote it, for prompts."""
        return self.reference_file.read_text()

    @functools.cached_property
    def reference_source(self) -> str:
        """Source of the reference in the form of a kernel, so that it can be timed like one."""
        return f"{self.sources['reference']}\n\ncustom_kernel = ref_kernel\n"

    @functools.cached_property
    def compiled_source(self) -> str:
        """Source of the reference as `torch.compile` compiles it, in the form of a kernel.

        Each case has code of its own. A call fails if nothing was compiled: torch would run the reference as it is.
        """
        return f"{self.sources['reference']}\n\n{compiled_text.BEFORE}{self.compiling}{compiled_text.AFTER}"

    def adapted(self, source: str) -> str:
        """Return a kernel's file; one that defines `ModelNew` only gets a `custom_kernel`."""
        return source if "custom_kernel" in source else source + self.adapter

    def seeds(self, language: str) -> list[Path]:
        """Return the seed kernels' files of a language: naive ones, imported ones, then the others by name.

        Without a folder of seeds: imported ones, or the starter `submission.py` beside the reference, or the reference
        as a kernel.
        """
        imported = reference_kernels.files(self.name, reference_kernels.SEED, f"{language}_*.py")
        if self.adapter or not (self.folder / "seeds").is_dir():
            starter = self.folder / "submission.py"
            return imported or [starter if starter.is_file() and not self.adapter else self._reference_kernel()]
        own = sorted((self.folder / "seeds").glob(f"{language}_*.py"))
        naive = [f for f in own if f.stem.endswith("naive")]
        return [*naive, *imported, *(f for f in own if f not in naive)]

    def _reference_kernel(self) -> Path:
        """Return a file with the reference in the form of a kernel."""
        kernel = "class ModelNew(Model):\n    pass\n" if self.adapter else "custom_kernel = ref_kernel\n"
        file = environment.cache_folder() / "seeds" / self.digest / f"{REFERENCE_KERNEL}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{self.reference_text}\n\n{kernel}")
        return file

    @functools.cached_property
    def digest(self) -> str:
        """sha256 over the files that define the problem (seeds excluded)."""
        texts = [f.read_text() for f in self.files if f.exists()]
        variant = [self.compat] if self.compat != "intended" else []
        variant += [self.name] if "@" in self.name else []
        return digest("\0".join([*texts, *variant]))

    @functools.cached_property
    def _module(self) -> Any:
        module = modules.imported("reference", self.sources, self.reference_file)
        return reference_calls.told(_complete(module, self.reference_file))


def _complete(module: ModuleType, path: Path) -> ModuleType:
    for name in ("generate_input", "ref_kernel", "check_implementation"):
        if not callable(getattr(module, name, None)):
            raise SetupError(f"{path} defines no {name}()")
    code = getattr(module.generate_input, "__code__", None)
    if code is not None and "seed" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        raise SetupError(f"{path}: generate_input() takes no seed")
    return module


def _seed(rng: random.Random, bits: int) -> int:
    return rng.randrange(1 << (bits - 1), 1 << bits)
