"""MLflow's web pages: their addresses, the view of a runs table that shows what decides, a kernel's description.

MLflow keeps a shared view as a tag of the experiment and opens it by its key in the address (checked with 3.17).
"""

import json

from kernel_scientist.population.entry import over_base, score
from kernel_scientist.population.lineage import Population
from kernel_scientist.records import environment
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.factors import percent
from kernel_scientist.records.kernel import REFERENCE, Verdict
from kernel_scientist.scientist.context.outcomes import NOT_PAIRED

LOCAL = "http://127.0.0.1:5000"
"""Where `kernel-scientist ui` serves a store that is a database, if no other port was asked for."""
VIEW = "kernels"
"""Key of the saved view."""
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
"""Tag of an experiment that holds it."""
COLUMNS = (  # as many as fit on a screen
    "metrics.`speedup`",
    "metrics.`speedup_low`",
    "metrics.`speedup_high`",
    "metrics.`geomean_us`",
    "tags.`verdict`",
    "params.`experiment`",
    "params.`base`",
)
ORDER = "metrics.`order_estimate`"
"""What kernels are sorted by: speedups are of different runs."""
PREDICTED = ("metrics.`predicted_roofline_fraction`", "metrics.`predicted_geomean_us`", *COLUMNS[-3:])
"""Columns of an experiment on a model target, where nothing is measured."""
MOST = 1000
"""Most characters of one part of a description."""


def view(by_model: bool) -> str:
    """Return the saved view of an experiment."""
    columns = PREDICTED if by_model else COLUMNS
    state = {
        "searchFilter": "tags.kind = 'kernel'",
        "orderByKey": columns[0] if by_model else ORDER,
        "orderByAsc": False,
        "selectedColumns": [*columns],
        "columnOrder": ["attributes.`Run Name`", *columns],
    }
    return json.dumps(state)


def server(uri: str) -> str:
    """Return the address of the web interface of a store; for a database where `kernel-scientist ui` serves it."""
    if known := environment.mlflow_pages(uri):
        return known
    return uri.rstrip("/") if uri.startswith(("http://", "https://")) else LOCAL


def runs_table(experiment_id: str, address: str = LOCAL) -> str:
    """Return the address of an experiment's kernels: sorted by the estimate, with verdict, experiment and base."""
    return f"{address}/#/experiments/{experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={VIEW}"


def run(experiment_id: str, run_id: str, address: str = LOCAL) -> str:
    """Return the address of a run. An empty `address` makes it relative, for texts that MLflow shows."""
    page = f"#/experiments/{experiment_id}/runs/{run_id}"
    return f"{address}/{page}" if address else page


def campaign_description(run_page: str, flow_link: str) -> str:
    """Return a campaign's description: links to its Prefect run (`flow_link`, empty without one) and its report.

    Only this description holds an address of a Prefect server: others lead here, so that one change corrects all.
    """
    links = [f"[Prefect run]({flow_link})"] if flow_link else []
    return ", ".join([*links, f"[report]({run_page}/artifacts/report.html)"])


def description(trial: Trial, population: Population, base_link: str, campaign_link: str) -> str:
    """Return a kernel's description: links to its base and its campaign's run, hypothesis, outcome.

    `base_link`, `campaign_link`: addresses; empty if there is none.
    """
    made, experiment = trial.kernel, trial.kernel.experiment
    base = f"[{made.base}]({base_link})" if base_link else made.base
    links = [f"Base {base}"] if base else []
    links += [f"[campaign, with its Prefect run]({campaign_link})"] if campaign_link else []
    if experiment:
        low, high = experiment.uplift
        why = f"**Hypothesis.** {experiment.description[:MOST]} Predicted uplift: {low:+g} to {high:+g} %."
    else:
        why = f"**{'Seed' if made.is_seed else 'Standing champion'}.** {made.report[:MOST]}"
    # links first: MLflow folds a long text and lays a gradient over its end
    return "\n\n".join(filter(None, (", ".join(links), why, f"**Outcome.** {_outcome(trial, population)}")))


def _outcome(trial: Trial, population: Population) -> str:
    evaluation, base = trial.evaluation, trial.kernel.base
    if evaluation.verdict is not Verdict.OK:
        return evaluation.verdict.because(evaluation.reason[:MOST])
    if evaluation.by_model:
        shown = f"{100 * score(trial):.3g} % of the roofline, {evaluation.predicted_us or 0:.5g} us, predicted."
    elif speedup := evaluation.speedup_over(REFERENCE):
        shown = f"{speedup} the reference's speed, {evaluation.geomean_us or 0:.5g} us."
    else:
        return "correct, not timed"
    if ratio := population.predicted_gain(trial):
        shown += f" {100 * (ratio - 1):+.1f} % over {base}, predicted."
    elif pair := over_base(trial):
        shown += f" {percent(pair.ratio, pair.interval)} over {base}, in one run."
    elif base and not evaluation.by_model:
        shown += f" {NOT_PAIRED[0].upper()}{NOT_PAIRED[1:]}."
    test = evaluation.test
    shown += f" Faster than {test.against} by the test." if test and test.faster and test.against != REFERENCE else ""
    return shown + (f" {evaluation.busy[0].upper()}{evaluation.busy[1:]}." if evaluation.busy else "")
