"""The Prefect server of a flow."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import lab_environment

SERVE = """
from flows import server
with server.serving():
    from prefect.client.orchestration import get_client
    with get_client(sync_client=True) as client:
        print(client.api_url, len(client.read_flows()))
"""


@pytest.mark.slow
def test_two_first_servers_of_a_folder_make_one_database(lab: Path) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SERVE],
            cwd=lab,
            env=lab_environment(lab, KERNEL_SCIENTIST_CACHE=str(lab / f"cache-{number}")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert all(out.startswith("http://") and out.endswith(" 0\n") for out, _ in said)
    assert (lab / ".prefect" / "prefect.db").exists()
