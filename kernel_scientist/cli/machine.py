"""Commands about this machine: what it can do, and the two user interfaces."""

import sys

import click

from kernel_scientist.cli.common import JSON, show


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
