"""Problems with where they came from: what `problems list` and `problems show` print."""

from pathlib import Path
from typing import Any

from kernel_scientist.problems import folder, names, reference_kernels, within
from kernel_scientist.problems.imports import provenance
from kernel_scientist.report import problems


def listed() -> list[dict[str, Any]]:
    """Return a row per problem, with its source if it was imported; then the imports that are not in this folder."""
    origins = {name: provenance.of(place) for name, place in zip(names(), within(folder()), strict=True)}
    absent = [one for one in provenance.every(folder()) if not one.is_here]
    rows = [_with_origin(row, origins.get(row["problem"])) for row in problems.overview()]
    return rows + [
        {
            "problem": one.content.relative_to(folder()).as_posix(),
            "about": "imported, but not in this folder yet: run `dvc pull --allow-missing`",
            "needs": [],
            **one.row(),
        }
        for one in absent
    ]


def shown(name: str, write_lab: bool = False) -> dict[str, Any]:
    """Return a problem's description, its source if it was imported, and the imported kernels."""
    found = problems.described(name, write_lab)
    file = Path(f"{folder() / name}.py")
    kernels = {use: reference_kernels.files(found["problem"], use) for use in reference_kernels.USES}
    imported = {f"imported {use}s": [f.name for f in files] for use, files in kernels.items() if files}
    return {**_with_origin(found, provenance.of(file if file.is_file() else folder() / name)), **imported}


def _with_origin(row: dict[str, Any], origin: provenance.Provenance | None) -> dict[str, Any]:
    """Return a row with the source after the problem's name."""
    return {"problem": row["problem"], **origin.row(), **row} if origin else row
