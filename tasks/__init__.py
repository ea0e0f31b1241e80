"""The steps of a flow as Prefect tasks: retries, caching, timeouts. Each body is one call into the package."""

import httpx

AWAY = (httpx.HTTPError, OSError)
"""Errors of a Prefect server that is being restarted."""
LASTING = range(400, 500)
"""Status codes that no waiting mends, except those of `PASSING`."""
PASSING = (408, 429)


def is_lasting(error: Exception) -> bool:
    """Whether an error of AWAY will be there again when the server is asked later."""
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 0
    return status in LASTING and status not in PASSING
