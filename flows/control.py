"""The campaigns of a control, one after the other."""

from prefect import flow, task
from prefect.settings import PREFECT_API_URL

from kernel_scientist.campaign import campaign_process, stopping
from kernel_scientist.campaign.control import Control, ControlRun
from kernel_scientist.records.control_result import ControlCampaign


@task(task_run_name="{one.side} {one.place.stem} {one.seed}")
def control_campaign(control: Control, one: ControlRun) -> ControlCampaign:
    """Run or resume one campaign in a process of its own, on this flow's Prefect server."""
    return control.run(one, PREFECT_API_URL.value())


@flow(name="control", flow_run_name="control {name}")
def control(
    name: str,
    paths: list[str],
    first: list[str],
    second: list[str],
    repeats: int = 5,
    overrides: list[str] | None = None,
    params_file: str | None = None,
) -> list[ControlCampaign]:
    """Run campaigns of two ways of searching, in pairs.

    Args:
        name: Name of the control. A run with the name of an earlier one goes on with the campaigns that are left.
        paths: Task folders, KernelBench files and folders of them.
        first: Parameters of the first side, as `key.sub=value`.
        second: Parameters of the second side.
        repeats: Campaigns of each side on each problem.
        overrides: Parameters of both sides.
        params_file: Another params.yaml.
    """
    found = Control.of(name, paths, first, second, repeats, overrides or (), params_file)
    found.begin()
    stopping.began(campaign_process.GOING_ON)
    with stopping.stoppable(lambda: None):  # the process that runs is asked to end (`campaign_process.called`)
        return [control_campaign(found, one) for one in found.runs()]
