"""Address and id of the user at the leaderboard, from popcorn-cli's own file or the environment. Never logged."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from kernel_scientist.records.base import read_mapping
from kernel_scientist.records.errors import SetupError

URL = "https://site--bot--dxfjds728w5v.code.run"
"""popcorn-cli's default server."""
FILE = Path(".popcorn.yaml")
"""popcorn-cli's file in the home folder."""


@dataclass(frozen=True)
class Credentials:
    """Where the leaderboard is, and who asks."""

    url: str
    cli_id: str = field(repr=False)


def read() -> Credentials:
    """Return the user's credentials: `POPCORN_API_URL` and `POPCORN_CLI_ID`, else popcorn-cli's file.

    Raises SetupError if there is no id.
    """
    cli_id = os.environ.get("POPCORN_CLI_ID", "")
    file = Path.home() / FILE
    if not cli_id and file.is_file():
        cli_id = str(read_mapping(file).get("cli_id") or "")
    if not cli_id:
        raise SetupError(
            f"target 'kernelbot' needs your id at the leaderboard: run `popcorn register discord`, which writes "
            f"{file}, or set POPCORN_CLI_ID"
        )
    return Credentials(os.environ.get("POPCORN_API_URL", URL).rstrip("/"), cli_id)
