"""Imports of others' kernels: as a seed of campaigns, or as a bar beside their champions."""

import posixpath
from collections.abc import Iterator

from kernel_scientist import problems
from kernel_scientist.compilers.source import KernelSource, SourceError, language_of, read_kernel
from kernel_scientist.problems import reference_kernels
from kernel_scientist.problems.imports import dvc_program, importing, provenance, source
from kernel_scientist.problems.imports.provenance import Provenance
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.problem_result import KernelImport


def bring(
    named: str, problem: str, use: str, path: str | None = None, rev: str | None = None, name: str | None = None
) -> Provenance:
    """Import one kernel file for a problem. `use`: `seed` or `bar`.

    Raises SetupError, e.g. if the file defines no `custom_kernel(data)`; then nothing changed.
    """
    dvc_program.require()
    of = problems.find(problem).name
    with source.opened(named, path, rev) as found:
        if not found.is_file(found.path):
            raise SetupError(f"{found.path!r} of {found.address} is no file: name the kernel's file with --path")
        text = found.read(found.path)
        where = found.path if found.path == found.address else f"{found.path} of {found.address}"
        if not text.strip():
            raise SetupError(f"cannot read {where}: it is empty")
        if not _is_kernel(text):
            raise SetupError(f"{where} defines no custom_kernel(data): it is no kernel")
        chosen = (name or posixpath.basename(found.path)).removesuffix(".py")
        language = language_of(text)
        if use == reference_kernels.SEED and not chosen.startswith(f"{language}_"):
            chosen = f"{language}_{chosen}"
        importing.require_name(chosen, folders=False)
        return importing.bring(found, found.path, reference_kernels.place(of, use, chosen))


def _is_kernel(text: str) -> bool:
    try:
        return KernelSource(text).defines("custom_kernel")
    except SourceError:
        return False


def listed(problem: str | None = None) -> Iterator[KernelImport]:
    """Yield the imported kernels."""
    wanted = problems.find(problem).name if problem else None
    for name, use, file in reference_kernels.kept(wanted):
        origin = provenance.of(file)
        language = language_of(read_kernel(file)) if file.is_file() else "not here: run `dvc pull --allow-missing`"
        known = origin.origin if origin else None
        yield KernelImport(kernel=reference_kernels.name(file), problem=name, use=use, language=language, origin=known)


def update(name: str, rev: str | None = None) -> Provenance:
    """Bring an imported kernel to the newest revision, or to `rev`. Raises SetupError for an unknown name."""
    files = {reference_kernels.name(file): file for _, _, file in reference_kernels.kept()}
    if name not in files:
        raise SetupError(f"no kernel {name!r} is imported; imported: {', '.join(files) or 'none'}")
    return importing.update(files[name], rev)
