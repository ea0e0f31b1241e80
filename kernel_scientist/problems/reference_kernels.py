"""Others' kernels of a problem, in `reference-kernels/PROBLEM/`, as DVC imported them.

seeds/LANGUAGE_NAME.py     seed kernels of campaigns, beside the problem's own
bars/NAME.py               bars: timed beside a campaign's champion, never a base of experiments
"""

from collections.abc import Iterator
from pathlib import Path

from kernel_scientist.records import environment

SEED, BAR = "seed", "bar"
USES = (SEED, BAR)


def folder() -> Path:
    """Return the folder of all imported kernels."""
    return environment.root() / "reference-kernels"


def place(problem: str, use: str, stem: str) -> Path:
    """Return the file of an imported kernel. `problem`: the problem's name."""
    return folder() / problem / f"{use}s" / f"{stem}.py"


def files(problem: str, use: str, pattern: str = "*.py") -> list[Path]:
    """Return the files of a problem's imported kernels, by name."""
    return sorted((folder() / problem / f"{use}s").glob(pattern))


def name(file: Path) -> str:
    """Return the name of an imported kernel: PROBLEM/seeds/NAME or PROBLEM/bars/NAME."""
    return file.relative_to(folder()).with_suffix("").as_posix()


def kept(problem: str | None = None) -> Iterator[tuple[str, str, Path]]:
    """Yield (problem, use, file) of every imported kernel, also of those that `dvc pull` would bring."""
    for record in sorted(folder().rglob("*.py.dvc")):
        use = record.parent.name.removesuffix("s")
        of = record.parent.parent.relative_to(folder()).as_posix()
        if use in USES and problem in (None, of):
            yield of, use, record.with_name(record.name.removesuffix(".dvc"))
