"""The steps of a flow as Prefect tasks: retries, caching, timeouts. Each body is one call into the package."""

import httpx

AWAY = (httpx.HTTPError, OSError)
"""Errors of a Prefect server that is being restarted."""
TRY_LATER = (408, 429)
"""Status codes that blame the request and are over when it is made again later."""


def is_lasting(error: Exception) -> bool:
    """Whether an error of AWAY will be there again when the server is asked later."""
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 0
    return 400 <= status < 500 and status not in TRY_LATER
