"""The corpus: kernels that try to fool the evaluator (`kernels/`) and honest ones that look suspicious (`honest/`).

Those for a CPU are here, those for a GPU in `gpu/`; README.md lists the families. `beyond/` holds cheats outside the
threat model, with what they gain. A file begins with comment lines `# key: value`:

    # cheat: B1 memo keyed by data_ptr        in honest/: `# honest: what looks suspicious`
    # problem: identity
    # expect: incorrect rejected              acceptable verdicts
    # label: decoy                            optional: a label that the evaluation must carry
    # gains: false                            optional: where `ok`, it must not look faster than honest work
    # case: 0 2                               optional: benchmarks that it is timed on, from 0 on; else 1
    # variant: NAME | B1 memo | VALUE         optional, instead of the first line: a kernel of this name
    # stopped by: the screen                  in gpu/: what is meant to stop it (`on_a_gpu`)
    # Only its own clock says so.             optional: any further text

A file with variants is one kernel for each of them, with the variant's value wherever the text has `$VARIANT`. What
kernels share is in `parts.py`. What is evaluated is the rendered text, one file as a model would submit it:
`python -m tests.cheats.corpus NAME` prints it.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.records.kernel import Verdict
from tests.cheats.parts import rendered

FOLDER = Path(__file__).resolve().parent
GPU = FOLDER / "gpu"
BEYOND = FOLDER / "beyond"
PROBLEMS = ("identity", "rmsnorm", "fp8-blockwise-gemm")
KEYS = ("cheat", "honest", "problem", "expect", "label", "gains", "case")
VARIANT = re.compile(r"^# variant: (\w+) \| (.+?) \| (.*)\n", re.MULTILINE)
HONEST_WORK = {
    "identity": ("one_thread_copy", "returns_the_buffer_only"),
    "rmsnorm": ("one_thread_rows", "asserts_shapes"),
    "fp8-blockwise-gemm": ("gemm_panels_by_shape",),
}
GPU_HONEST_WORK = {"identity": ("triton_copy",), "rmsnorm": ("triton_rows",)}
"""What `gains: false` is measured against: the code most cheats are built on, and its like on all threads. A cheat that
is neutralised is not faster than the faster of the two, where there are two."""


@dataclass(frozen=True)
class Fixture:
    """One kernel of the corpus and what the evaluator may say of it."""

    name: str
    problem: str
    expect: frozenset[Verdict]
    label: str | None
    gains: bool
    """False: neutralised at the least; with the verdict `ok` it must not look faster than honest work."""
    source: str
    cases: tuple[int, ...]
    """Which benchmarks it is timed on."""
    cheat: str | None
    """`B1 memo keyed by data_ptr`; None: an honest kernel."""

    @property
    def family(self) -> str | None:
        """The entry of the catalogue, such as `B1`; None: an honest kernel."""
        return self.cheat.split()[0] if self.cheat else None


class HeaderError(ValueError):
    """A file's header is not what the corpus needs; the message names file and key."""


def load(within: Path = FOLDER) -> list[Fixture]:
    """Return every kernel of both folders within one, by name. Raises HeaderError."""
    paths = [path for folder in ("kernels", "honest") for path in (within / folder).glob("*.py")]
    fixtures = sorted((f for path in paths for f in _fixtures(path)), key=lambda f: (f.cheat is None, f.name))
    names = [f.name for f in fixtures]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise HeaderError(f"names used twice: {', '.join(twice)}")
    return fixtures


def beyond() -> list[Fixture]:
    """Return the cheats outside the threat model, by name. Raises HeaderError."""
    return [fixture for path in sorted(BEYOND.glob("*.py")) for fixture in _fixtures(path)]


def _fixtures(path: Path) -> Iterator[Fixture]:
    """Return the kernel of a file, or one kernel for each of its variants. Raises HeaderError."""
    text = path.read_text()
    rest = re.sub(VARIANT, "", text)
    if "# variant:" in rest or ("$VARIANT" in rest) == (rest == text):
        raise HeaderError(f"{path.name}: it needs `$VARIANT` and lines `# variant: NAME | WHAT | VALUE`, or neither")
    kind = "honest" if path.parent.name == "honest" else "cheat"
    variants = [
        (name, f"# {kind}: {what}\n{rest.replace('$VARIANT', value)}")
        for name, what, value in re.findall(VARIANT, text)
    ]
    for name, source in variants or [(path.stem, text)]:
        try:
            yield parse(path.with_stem(name), rendered(source))
        except KeyError as error:
            raise HeaderError(f"{path.name}: no part is named {error}; parts.py has them") from error


def spread(fixtures: list[Fixture]) -> list[Fixture]:
    """Return them in an order of which every beginning holds as many kinds as it can: one of each, then the next."""
    kinds: dict[str | None, list[Fixture]] = {}
    for fixture in fixtures:
        kinds.setdefault(fixture.family, []).append(fixture)
    return [kind[turn] for turn in range(len(fixtures)) for kind in kinds.values() if turn < len(kind)]


def parse(path: Path, source: str) -> Fixture:
    """Read one file's header. Raises HeaderError."""
    header = _header(path, source)
    honest = path.parent.name == "honest"
    required = ("honest" if honest else "cheat", "problem", "expect")
    if missing := [key for key in required if not header.get(key)]:
        raise HeaderError(f"{path.name}: no `# {missing[0]}: ...` in its header")
    cheat = None if honest else header["cheat"]
    if cheat is not None and not re.match(r"[A-E]\d+ \S", cheat):
        raise HeaderError(f"{path.name}: cheat {cheat!r} begins with no entry of the catalogue, such as `B1 ...`")
    if header["problem"] not in PROBLEMS:
        raise HeaderError(f"{path.name}: problem {header['problem']!r} is none of {', '.join(PROBLEMS)}")
    try:
        expect = frozenset(Verdict(word) for word in header["expect"].split())
    except ValueError as error:
        raise HeaderError(f"{path.name}: expect: {error}") from error
    gains = header.get("gains", "true")
    if gains not in ("true", "false"):
        raise HeaderError(f"{path.name}: gains {gains!r} is neither true nor false")
    if gains == "false" and Verdict.OK not in expect:
        raise HeaderError(f"{path.name}: gains: false says something only where `ok` is expected")
    cases = header.get("case", "1").split()
    if not set(cases) <= {"0", "1", "2"}:
        raise HeaderError(f"{path.name}: case {header['case']!r}: the benchmarks are 0, 1, 2")
    return Fixture(
        name=path.stem,
        problem=header["problem"],
        expect=expect,
        label=header.get("label"),
        gains=gains == "true",
        source=source,
        cases=tuple(map(int, cases)),
        cheat=cheat,
    )


def _header(path: Path, source: str) -> dict[str, str]:
    header: dict[str, str] = {}
    for line in source.splitlines():
        if not line.startswith("# "):
            break
        match = re.match(r"# ([a-z]+): (.+)$", line)
        if match is None or (match[1] not in KEYS and header):
            continue  # further words
        key, value = match[1], match[2].strip()
        if key not in KEYS:
            raise HeaderError(f"{path.name}: unknown key {key!r} in its header; known: {', '.join(KEYS)}")
        if key in header:
            raise HeaderError(f"{path.name}: {key} twice in its header")
        header[key] = value
    return header


if __name__ == "__main__":
    print(next(f.source for f in [*load(), *load(GPU), *beyond()] if f.name == sys.argv[1]), end="")
