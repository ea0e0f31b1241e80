"""Links from artifacts of Prefect runs to MLflow's pages. They follow the port of `kernel-scientist ui`.

The other direction is `flow_links`.
"""

import json
import re
import urllib.request
from typing import Any

KINDS = ("progress-", "leaderboard-", "report-")
"""Beginnings of the keys of artifacts that link to MLflow (`flows/progress.py`)."""
MOST = 200
"""Artifacts of each kind whose links are followed: the latest. It is the most that Prefect returns at once."""
_PAGE = re.compile(r"http://(?:127\.0\.0\.1|localhost):\d+(?=/#/experiments/)")


def follow(api: str, server: str) -> None:
    """Let the artifacts on a Prefect server, whose API is at `api`, lead to MLflow's pages at `server`, on this host.

    Raises OSError if the server does not answer.
    """
    for kind in KINDS:
        wanted = {"artifacts": {"key": {"like_": kind}}, "sort": "CREATED_DESC", "limit": MOST}
        for artifact in json.loads(_asked(f"{api}/artifacts/filter", wanted)):
            shown = {name: artifact[name] for name in ("description", "data") if isinstance(artifact[name], str)}
            led = {name: _PAGE.sub(server, text) for name, text in shown.items()}
            if led != shown:
                _asked(f"{api}/artifacts/{artifact['id']}", led, "PATCH")


def _asked(address: str, body: dict[str, Any], method: str = "POST") -> bytes:
    header = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), header, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()
