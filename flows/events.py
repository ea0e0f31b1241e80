"""Events of this project on a Prefect server, for automations (notifications.yaml) and the server's event feed.

The resource of each is the standing champion of a problem, a language and a target.
"""

import logging
from typing import Any

from prefect.events import emit_event

progress = logging.getLogger("kernel_scientist.progress")

NEW = "kernel-scientist.champion.new"
"""A champion was promoted."""
LOST = "kernel-scientist.champion.lost"
"""A standing champion was not confirmed again."""
DRIFT = "kernel-scientist.device.drift"
"""A standing champion was confirmed on another machine, driver or compiler than the one it was promoted with."""


def emit(event: str, problem: str, language: str, target: str, **payload: Any) -> None:
    """Send an event about a standing champion. Prefect relates it to the flow run that sends it.

    One that cannot be sent is a warning: what it announces has happened, and is recorded.
    """
    name = f"{problem}.{language}-{target}"
    resource = {"prefect.resource.id": f"kernel-scientist.champion.{name}", "prefect.resource.name": name}
    try:
        emit_event(event, resource=resource, payload=payload)
    except Exception as error:
        progress.warning("the event %s could not be sent to Prefect: %s", event, error)
