"""Commands about machines: what this one can do, what a kernel becomes on one that is not here, the interfaces."""

import sys
from pathlib import Path

import click

from kernel_scientist.cli.common import INFRASTRUCTURE, JSON, PARAMS, SET, load, not_empty, show


@click.command()
@JSON
def doctor(as_json: bool) -> None:
    """Say what this machine can do.

    Example: kernel-scientist doctor
    """
    from kernel_scientist.report.doctor import examine

    found = examine()
    if as_json:
        show(found, True)
    else:
        for row in found:
            click.echo(f"{'ok ' if row['ok'] else 'no '} {row['what']:12} {row['detail']}")
    sys.exit(0 if all(row["ok"] or not row["needed"] for row in found) else 2)


@click.command()
@click.option("--prefect-port", default=4200, show_default=True, help="Port of the Prefect server.")
@click.option("--mlflow-port", default=5000, show_default=True, help="Port of the MLflow server.")
def ui(prefect_port: int, mlflow_port: int) -> None:
    """Serve the Prefect and the MLflow UI over this laboratory's store until Ctrl-C.

    Example: kernel-scientist ui --mlflow-port 5001
    """
    from kernel_scientist.report.ui import serve

    serve(prefect_port, mlflow_port)


@click.command()
@click.argument("file", callback=not_empty)
@click.option(
    "--problem",
    callback=not_empty,
    metavar="NAME",
    help="Whose cases it is called on; default: the problem that it fits.",
)
@click.option("--arch", default="", metavar="ARCH", help="gfx942, gfx950, sm_90; default: gfx942.")
@click.option("--machine", default="", metavar="NAME", help="mi300x, mi325x, mi355x, h100, ...; default: the arch's.")
@click.option("--asm", "folder", metavar="FOLDER", help="Also write the assembly of every code object there.")
@SET
@PARAMS
@JSON
def compile(  # the command's name
    file: str,
    problem: str | None,
    arch: str,
    machine: str,
    folder: str | None,
    overrides: tuple[str, ...],
    params_file: str | None,
    as_json: bool,
) -> None:
    """Compile a Triton or HIP submission for a GPU that need not be here; say what its code objects tell.

    Exit code: 0 it compiles, 1 it does not, 2 the call or the set-up is wrong, 3 this machine lacks what it needs.

    Example: kernel-scientist compile problems/fp8-blockwise-gemm/seeds/triton_tiled.py --arch gfx942
    """
    from kernel_scientist.compile.source import read_kernel
    from kernel_scientist.hardware import gpus
    from kernel_scientist.records.errors import SetupError
    from kernel_scientist.report import compilation, resources
    from kernel_scientist.sandbox.failure import KernelFailure

    params = load(overrides, params_file)
    gpu = gpus.named(machine) if machine else gpus.of_arch(arch or "gfx942")
    gpus.require(gpu, arch)
    source = read_kernel(Path(file))
    if "kernel_scientist.languages.cpp" in source or "from kernel_scientist import" in source:
        raise SetupError(f"{file} is a C++ kernel for the CPU: `kernel-scientist evaluate` compiles it")
    try:
        found = compilation.compiled(Path(file), source, gpu, problem, params)
    except KernelFailure as failure:
        found = {
            "ok": False,
            "verdict": failure.verdict.value,
            "reason": failure.reason,
            "tried": [e for e in failure.evidence if e],
        }
    if folder and found.get("launches"):
        found["assembly"] = compilation.write_assembly(found, Path(folder))
    if as_json:
        show(found, True)
    else:
        for line in resources.lines(found):
            click.echo(line)
    sys.exit(0 if found["ok"] else INFRASTRUCTURE if found.get("verdict") == "infrastructure" else 1)
