"""Commands about recorded campaigns: report, comparison, training data, evidence."""

import json
import sys

import click

from kernel_scientist.cli import progress
from kernel_scientist.cli.common import JSON, ParamOptions, not_empty, show, with_params, written
from kernel_scientist.records import environment
from kernel_scientist.records.text import number_of

OUT = written(below_root=True)
CAMPAIGN = "A campaign's id; default: the latest of the problem, language and target."


@click.command()
@click.argument("campaign", required=False, callback=not_empty, help=CAMPAIGN)
@click.option(
    "--out",
    "out",
    callback=OUT,
    metavar="FILE",
    help="The page to write; default: reports/CAMPAIGN.html.",
)
@click.option(
    "--metrics",
    callback=OUT,
    metavar="FILE",
    help="Also write the figures that DVC compares, and cases.csv next to them.",
)
@with_params
def report(campaign: str | None, out: str | None, metrics: str | None, call: ParamOptions) -> None:
    """Write the page of a campaign and print its tables.

    Example: kernel-scientist report --set problem=rmsnorm
    """
    from kernel_scientist.report.pages import campaign as page

    root = environment.root()
    page.report(call.params(), campaign, root / out if out else None, root / metrics if metrics else None)


@click.command()
@click.argument("first", callback=not_empty, help="Campaigns' ids, separated by commas.")
@click.argument("second", callback=not_empty, help="The campaigns to compare with.")
@click.option("--out", "out", callback=OUT, metavar="FILE", help="Also write the curves as a page (.html).")
@click.option("--recorded", is_flag=True, help="Time nothing; then no quotient of the two is stated.")
@with_params
@JSON
def compare(first: str, second: str, out: str | None, recorded: bool, call: ParamOptions, as_json: bool) -> None:
    """Compare two campaigns at equal budget, or two lists of repeats separated by commas.

    The incumbents of each pair are timed against each other in one run, on this host.

    Example: kernel-scientist compare CAMPAIGN1,CAMPAIGN2 CAMPAIGN3,CAMPAIGN4
    """
    from kernel_scientist import api
    from kernel_scientist.report import comparison

    with progress.shown():
        result = api.compare(first.split(","), second.split(","), recorded, **call.settings)
    if out:
        comparison.write_page(result, environment.root() / out)
    show(result.model_dump(mode="json"), as_json, comparison.shown(result))


@click.command()
@click.argument("campaign", required=False, callback=not_empty, help=CAMPAIGN)
@click.option("--out", "out", callback=OUT, metavar="FILE", help="Where to write; default: standard output.")
@click.option(
    "--evidence",
    "kernel",
    callback=not_empty,
    metavar="KERNEL",
    help="Write one archive for `verify` instead, with all that this kernel's figures rest on; "
    "default of --out: reports/CAMPAIGN-KERNEL.evidence.zip.",
)
@with_params
def export(campaign: str | None, out: str | None, kernel: str | None, call: ParamOptions) -> None:
    """Write a campaign as training data, one JSON line per kernel; or the evidence of one kernel.

    Example: kernel-scientist export --out data/training.jsonl
    """
    if kernel is not None:
        from kernel_scientist import api

        show(api.export_evidence(kernel, campaign, out, **call.settings).model_dump(mode="json"), False)
        return
    from kernel_scientist.report import output, training

    examples = training.of_campaign(call.params(), campaign)
    text = "".join(json.dumps(example, ensure_ascii=False) + "\n" for example in examples)
    if out is None:
        click.echo(text, nl=False)
        return
    output.write(environment.root() / out, text)
    click.echo(f"{number_of(len(examples), 'example')} in {out}", err=True)


@click.command()
@click.argument("archive", callback=not_empty, help="An archive that `export --evidence` wrote.")
@JSON
def verify(archive: str, as_json: bool) -> None:
    """Compute every figure of an archive of evidence again, offline, and say what could not be checked.

    Nothing of the archive is executed. Exit code: 0 everything that was compared agrees, 1 something differs, 2 it is
    not such an archive.

    Example: kernel-scientist verify reports/CAMPAIGN-k00007.evidence.zip
    """
    from kernel_scientist import api

    result = api.verify(archive)
    show(result.model_dump(mode="json"), as_json)
    sys.exit(0 if result.agrees else 1)
