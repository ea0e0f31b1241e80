"""Commands about machines: capabilities, web interfaces, compilation for absent GPUs, calibration of the model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel_scientist.cli import progress
from kernel_scientist.cli.common import (
    JSON,
    UNDECIDED,
    ParamOptions,
    not_empty,
    show,
    text_option,
    with_params,
    written,
)
from kernel_scientist.records.errors import SetupError

if TYPE_CHECKING:
    from kernel_scientist.calibrate.history import Calibration

PORT = click.IntRange(1, 65535)
NO_GPU = "torch finds no GPU here: these are the figures of each machine's last calibration"


@click.command()
@JSON
def doctor(as_json: bool) -> None:
    """Print the capabilities of this machine.

    Example: kernel-scientist doctor
    """
    with progress.shown():
        from kernel_scientist import api
        from kernel_scientist.report import tables

        found = api.doctor()
    show([one.model_dump() for one in found], as_json, tables.capabilities(found))
    sys.exit(0 if all(one.ok or not one.needed for one in found) else 2)


@click.command()
@click.option("--prefect-port", default=4200, type=PORT, show_default=True, help="Port of the Prefect server.")
@click.option("--mlflow-port", default=5000, type=PORT, show_default=True, help="Port of the MLflow server.")
def ui(prefect_port: int, mlflow_port: int) -> None:
    """Serve the Prefect UI and the MLflow UI until Ctrl-C.

    Example: kernel-scientist ui --mlflow-port 5001
    """
    from kernel_scientist.tracking.web_servers import serve

    if prefect_port == mlflow_port:
        raise SetupError(f"both servers cannot have port {mlflow_port}: give one of them another")
    serve(prefect_port, mlflow_port)


@click.command()
@click.argument("file", callback=not_empty, help="A kernel, or any file with Triton kernels.")
@text_option(
    "--problem", "NAME", "Problem whose cases the submission is called on; default: the first whose inputs it accepts."
)
@text_option("--entry", "NAME", "Function, or model class, that gets the inputs.")
@text_option("--inputs", "LIST", "Its arguments, such as x:fp16[4096,4096],n:int=4096,flag:bool=true.")
@click.option("--arch", default="", metavar="ARCH", help="gfx942, gfx950, sm_90; default: gfx942.")
@click.option("--machine", default="", metavar="NAME", help="mi300x, mi325x, mi355x, h100, ...; default: the arch's.")
@click.option(
    "--asm",
    "folder",
    callback=written(is_folder=True),
    metavar="FOLDER",
    help="Also write the assembly of every code object there.",
)
@click.option(
    "--lines/--no-lines",
    default=True,
    help="Whether samples of one timed case are executed on this CPU, for a profile by source line (AMD's GPUs).",
)
@with_params
@JSON
def compile(
    file: str,
    arch: str,
    machine: str,
    folder: str | None,
    lines: bool,
    call: ParamOptions,
    as_json: bool,
    **named: str | None,
) -> None:
    """Compile a Triton or HIP file for a GPU that need not be present; report its code objects.

    A submission (custom_kernel) is called on a problem's cases. Of any other file the entry is called with the inputs,
    or with those of its get_inputs(); without either, each Triton kernel is compiled with invented arguments. Modules
    of the file's package and modules beside it can be imported.

    Of a problem's submission for an AMD GPU, workgroups of one timed case are executed on this CPU and counted, for at
    most a minute: the last table says which source lines take the time and why, predicted. Values are not compared.

    Exit code: 0 something compiles, 1 nothing does, 2 the call or the set-up is wrong, 3 this machine lacks what it
    needs.

    Example: kernel-scientist compile problems/fp8-blockwise-gemm/seeds/triton_tiled.py --arch gfx942
    """
    from kernel_scientist import api
    from kernel_scientist.records.kernel import Verdict
    from kernel_scientist.report import compilation

    with progress.shown():
        found = api.compile(file, machine=machine, arch=arch, lines=lines, **named, **call.settings)
    if folder:
        found = compilation.with_assembly(found, Path(folder))
    show(found, as_json, compilation.lines(found))
    sys.exit(0 if found.ok else UNDECIDED if found.verdict is Verdict.INFRASTRUCTURE else 1)


@click.command()
@click.option("--machine", default="", metavar="NAME", help="mi300x, mi325x, ...; default: as the driver reports.")
@click.option("--published", is_flag=True, help="Fit the MI300X's constants to the times in data/published; no GPU.")
@click.option("--from", "source", metavar="FILE", help="Fit to times that an earlier run wrote; no GPU.")
@click.option(
    "--times", callback=written(), metavar="FILE", help="Write times there; default: data/calibration/MACHINE.jsonl."
)
@click.option("--seconds", type=click.FloatRange(1), help="Limit of compiling and timing; default: 300.")
@JSON
def calibrate(
    machine: str,
    published: bool,
    source: str | None,
    times: str | None,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Time a suite of kernels on this GPU, fit the model's constants to one half, report errors on the other half.

    With --published the times are those of data/published, and the constants go to calibration.json there; a
    calibration on a device takes precedence. Without a GPU it prints the last calibrations.

    Each time is written when it is measured, so --from can fit to those of a run that was ended. NVIDIA's GPUs have no
    model: their code is not executed without them.

    Exit code: 0 the goal is met (Spearman's rho at least 0.9 and a top-1 regret of at most 10 % within every family) or
    there is no GPU, 1 it is not met, 2 the set-up is wrong.

    Example: kernel-scientist calibrate --seconds 120
    """
    from kernel_scientist.calibrate import history, measure
    from kernel_scientist.hardware import gpus

    if published:
        from kernel_scientist.calibrate import published as tables

        fitted = tables.calibrate(lambda line: click.echo(line, err=True))
        show(fitted.model_dump(mode="json", exclude={"missed"}), as_json)
        return
    if source:
        from kernel_scientist.calibrate import times as files

        _show_calibration(history.fitted(files.read(Path(source)), _progress), as_json)
        return
    here = measure.present()
    if here is None:
        rows = [history.row(name) for name in ([gpus.named(machine).name.lower()] if machine else gpus.GPUS)]
        show({"gpu": None, "why": NO_GPU, "machines": rows}, as_json)
        return
    known, file = measure.known(here, machine), Path(times) if times else None
    _show_calibration(history.calibrate(here, known, _progress, seconds or measure.SECONDS, file), as_json)


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _show_calibration(calibration: "Calibration", as_json: bool) -> None:
    """Print a calibration and end the process with its exit code."""
    from kernel_scientist.calibrate import history
    from kernel_scientist.report.output import parts

    fit = calibration.fit
    text = {
        "families": [family.model_dump() for family in fit.families],
        "constants": fit.constants,
        "defaults kept": fit.kept,
        "left out": calibration.dropped,
        "calibration": [history.row(calibration.machine)],
    }
    show({**calibration.model_dump(mode="json"), "met": fit.met}, as_json, parts(text))
    sys.exit(0 if fit.met else 1)
