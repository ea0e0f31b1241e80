"""Prefect flows: the order of the tasks, and how many run at once."""

import logging

from kernel_scientist.records import environment

environment.prepare()  # before Prefect is imported: a Prefect worker imports flows without the command line
DROPPED = (
    "but the task is running in a worker thread",  # a kernel's process has deadlines of its own
    *("SetupError", "StoppedError", "KeyboardInterrupt"),  # the command line reports them in one sentence
)
"""Prefect's warnings and tracebacks with these words are not logged."""


def _is_logged(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    return not any(words in message for words in DROPPED)


for _name in ("prefect.task_runs", "prefect.flow_runs"):
    logging.getLogger(_name).addFilter(_is_logged)
