"""The steps of a flow as Prefect tasks: retries, caching, timeouts. Each body is one call into the package."""
