"""A campaign as it is recorded: read from the notebook that the parameters name."""

from dataclasses import dataclass

from kernel_scientist import problems
from kernel_scientist.hardware import targets
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.tracking.mlflow_store import CampaignRun, Notebook, open_for


@dataclass(frozen=True)
class Recorded:
    """A campaign's run and kernels, and whose they are."""

    notebook: Notebook
    run: CampaignRun
    population: Population
    problem: str
    target: str


def read(params: Params, campaign: str | None) -> Recorded:
    """Return a campaign, the latest when none is named. Raises SetupError when there is no such campaign."""
    target = targets.resolve(params.target, params.language)
    problem = problems.find(params.problem, target.device)
    notebook = open_for(problem.name, target.name, params.tracking.uri, params.tracking.experiment)
    run = notebook.latest(campaign)
    if run is None:
        raise SetupError(
            f"no campaign {campaign or 'of ' + problem.name} on {target.name} in {notebook.uri}: run "
            "`kernel-scientist optimize`, or name its problem with --set problem=NAME"
        )
    return Recorded(notebook, run, notebook.population(run), problem.name, target.name)
