"""Prefect flows: the order of the tasks, and how many run at once."""

import logging

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError, StoppedError

environment.prepare()  # before Prefect is imported: a Prefect worker imports flows without the command line
DROPPED = (
    "but the task is running in a worker thread",  # a kernel's process has deadlines of its own
    *("SetupError", "StoppedError", "KeyboardInterrupt"),  # the command line reports them in one sentence
    "was aborted by an interrupt signal",
)
"""Prefect's warnings and tracebacks with these words are not logged."""
OF_A_WORKER = "Engine execution exited with unexpected exception"
"""What only a worker's process logs of a run that failed, with the traceback."""


def _is_logged(record: logging.LogRecord) -> bool:
    """Whether a record of Prefect is logged. Why a worker's run failed is logged as a sentence, without a traceback."""
    message, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
    if message.startswith(OF_A_WORKER) and isinstance(error, SetupError):
        record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
        return True
    if isinstance(error, (SetupError, StoppedError)) or type(error).__name__ == "ParameterTypeError":
        return False  # the latter's message was logged before
    return not any(words in message for words in DROPPED)


progress = logging.getLogger("kernel_scientist.progress")
if progress.level == logging.NOTSET:  # a worker's: its log shows what the work is at, but not every kernel's steps
    progress.setLevel(logging.INFO)
for _name in ("prefect.task_runs", "prefect.flow_runs", "prefect.engine"):
    logging.getLogger(_name).addFilter(_is_logged)
