"""Commands about recorded campaigns: report, comparison, training data."""

import json

import click

from kernel_scientist.cli.common import JSON, PARAMS, SET, load, show
from kernel_scientist.records import environment


@click.command()
@click.argument("campaign", required=False)
@click.option("--out", "out", default="reports/report.html", metavar="FILE", help="The page to write.")
@SET
@PARAMS
def report(campaign: str | None, out: str, overrides: tuple[str, ...], params_file: str | None) -> None:
    """Write the page of a campaign (default: the latest) and print its tables.

    Example: kernel-scientist report --out reports/report.html
    """
    from kernel_scientist.report import page

    page.write(load(overrides, params_file), campaign, environment.root() / out)


@click.command()
@click.argument("first")
@click.argument("second")
@click.option("--out", "out", metavar="FILE", help="Also write the curves as a page (.html).")
@SET
@PARAMS
@JSON
def compare(
    first: str, second: str, out: str | None, overrides: tuple[str, ...], params_file: str | None, as_json: bool
) -> None:
    """Compare two campaigns at equal budget, or two lists of repeats separated by commas.

    Example: kernel-scientist compare CAMPAIGN1,CAMPAIGN2 CAMPAIGN3,CAMPAIGN4
    """
    from kernel_scientist.report import comparison

    params = load(overrides, params_file)
    result = comparison.compare_campaigns(params, first.split(","), second.split(","))
    if out:
        comparison.write(result, environment.root() / out)
    if not as_json:  # the curves are in the JSON and on the page
        curves = ("median", "low", "high")
        result["sides"] = [{k: v for k, v in side.items() if k not in curves} for side in result["sides"]]
    show(result, as_json)


@click.command()
@click.argument("campaign", required=False)
@click.option("--format", "form", type=click.Choice(["jsonl"]), default="jsonl", show_default=True)
@click.option("--out", "out", metavar="FILE", help="Where to write; default: standard output.")
@SET
@PARAMS
def export(
    campaign: str | None, form: str, out: str | None, overrides: tuple[str, ...], params_file: str | None
) -> None:
    """Write a campaign (default: the latest) as training data, one JSON line per kernel.

    Example: kernel-scientist export --format jsonl --out data/training.jsonl
    """
    from kernel_scientist.report import training

    del form  # only one so far
    lines = training.of_campaign(load(overrides, params_file), campaign)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if out is None:
        click.echo(text, nl=False)
        return
    path = environment.root() / out
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    click.echo(f"{text.count(chr(10))} examples in {out}", err=True)
