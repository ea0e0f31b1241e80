"""The command that fits the performance model to the GPU at hand, or tells how good the last fits were."""

import sys

import click

from kernel_scientist.cli.common import JSON, show

NO_GPU = "torch finds no GPU here: these are the figures of each machine's last calibration"


@click.command()
@click.option("--machine", default="", metavar="NAME", help="mi300x, h100, ...; default: what the GPU's driver says.")
@JSON
def calibrate(machine: str, as_json: bool) -> None:
    """Time a suite of kernels on the GPU at hand, fit the model's constants on half, report on the other half.

    Without a GPU: the figures of the last calibrations. Exit code: 0 the goal is met (Spearman's rho at least 0.9 and a
    top-1 regret of at most 10 % within every family) or there is no GPU, 1 it is not met, 2 the set-up is wrong.

    Example: kernel-scientist calibrate
    """
    from kernel_scientist.calibrate import device, history
    from kernel_scientist.hardware import gpus

    found = device.present()
    if found is None:
        rows = history.table([gpus.named(machine).name.lower()] if machine else list(gpus.GPUS))
        if not as_json:
            click.echo(NO_GPU)
        show({"gpu": None, "why": NO_GPU, "machines": rows} if as_json else {"calibrations": rows}, as_json)
        return
    from kernel_scientist.calibrate import run

    calibration = run.calibrate(found, device.known(found, machine), lambda words: click.echo(words, err=True))
    fit = calibration.fit
    if as_json:
        show({**calibration.model_dump(mode="json"), "met": fit.met}, True)
    else:
        show({"families": [family.model_dump() for family in fit.families]}, False)
        show({"constants": fit.constants, "defaults kept": fit.kept, "left out": calibration.dropped}, False)
        show({"calibration": history.table([calibration.machine])}, False)
    sys.exit(0 if fit.met else 1)
